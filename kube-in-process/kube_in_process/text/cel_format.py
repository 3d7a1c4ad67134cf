"""The texts that CEL makes of values: ``string(x)`` and ``"%s".format([x])``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

Json = Any

_DIRECTIVE = re.compile(r"%(?:\.(?P<digits>\d+))?(?P<kind>[\s\S]?)")
_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_SPECIAL = ("Infinity", "-Infinity", "NaN")
_TYPES = {
    bool: "bool",
    int: "int",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    dict: "map",
    datetime: "google.protobuf.Timestamp",
    timedelta: "google.protobuf.Duration",
}


class CallFailed(ValueError):
    """A function failed. The text is the server's."""


def type_name(value: Json) -> str:
    """The name of a value's type in error texts."""
    return _TYPES.get(type(value), "null_type")


def as_text(value: Json) -> str:
    """``string(value)``. A number has the fewest digits that tell it from others."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, float):
        return _double(value)
    if isinstance(value, datetime):
        return _time(value)
    if isinstance(value, timedelta):
        seconds = Decimal(value // timedelta(microseconds=1)).scaleb(-6).normalize()
        return f"{seconds:f}s"
    if isinstance(value, (str, int)):
        return str(value)
    raise TypeError(f"no text of a {type_name(value)}")


def _double(value: float) -> str:
    """With an exponent from a million on, and below a ten-thousandth."""
    if value != value or value in (float("inf"), -float("inf")):
        return {"inf": "+Inf", "-inf": "-Inf"}.get(str(value), "NaN")
    shortest = Decimal(repr(value)).normalize()
    if value and not -4 <= shortest.adjusted() < 6:
        return f"{value:.{len(shortest.as_tuple().digits) - 1}e}"
    return f"{shortest:f}"


def _time(value: datetime) -> str:
    text = value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
    return text.rstrip("0").rstrip(".") + "Z"


def formatted(text: str, values: list[Json]) -> str:
    """``text.format(values)``.

    Raises:
        CallFailed
    """
    used = 0

    def shown(found: re.Match[str]) -> str:
        nonlocal used
        kind = found["kind"]
        if kind == "%":
            return "%"
        if not kind:
            raise CallFailed("unexpected end of string")
        if kind not in _CLAUSES:
            why = f'unrecognized formatting clause "{kind}"'
            raise CallFailed(f"could not parse formatting clause: {why}")
        if used >= len(values):
            raise CallFailed(f"index {used} out of range")
        value, used = values[used], used + 1
        return _CLAUSES[kind](value, int(found["digits"] or 6))

    return _DIRECTIVE.sub(shown, text)


def _unfit(what: str, value: Json) -> CallFailed:
    return CallFailed(f"error during formatting: {what}, was given {type_name(value)}")


def _is_whole(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _plain(value: Json, _: int) -> str:
    return _inner(value) if value is None or isinstance(value, (list, dict)) else as_text(value)


def _inner(value: Json) -> str:
    """A value in a list or a map."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{', '.join(map(_inner, value))}]"
    if isinstance(value, dict):
        pairs = sorted((_inner(key), _inner(item)) for key, item in value.items())
        return "{" + ", ".join(f"{key}:{item}" for key, item in pairs) + "}"
    if isinstance(value, float):
        return f"{value:.6f}"
    if isinstance(value, bytes):
        return f'b"{value.decode()}"'
    name = {datetime: "timestamp", timedelta: "duration"}.get(type(value))
    return f'{name}("{as_text(value)}")' if name else as_text(value)


def _decimal(value: Json, _: int) -> str:
    if not _is_whole(value):
        raise _unfit("decimal clause can only be used on integers", value)
    return str(value)


def _fixed(value: Json, digits: int) -> str:
    if isinstance(value, str) and value in _SPECIAL:
        value = float(value)
    if not isinstance(value, float):
        raise _unfit("fixed-point clause can only be used on doubles", value)
    return _special(value) or f"{value + 0.0:,.{digits}f}"


def _scientific(value: Json, _: int) -> str:
    """Always with six digits."""
    if isinstance(value, str) and value in _SPECIAL:
        value = float(value)
    if not isinstance(value, float):
        raise _unfit("scientific clause can only be used on doubles", value)
    if special := _special(value):
        return special
    mantissa, power = f"{value:.6e}".replace("+", "").split("e")
    return f"{mantissa}×10{power.translate(_SUPERSCRIPTS)}"


def _special(value: float) -> str:
    return {"inf": "∞", "-inf": "-∞", "nan": "NaN"}.get(str(value), "")


def _binary(value: Json, _: int) -> str:
    if not isinstance(value, int):
        raise _unfit("only integers and bools can be formatted as binary", value)
    return f"{value:b}"


def _hexadecimal(value: Json, _: int) -> str:
    if isinstance(value, str):
        return value.encode().hex()
    if isinstance(value, bytes):
        return value.hex()
    if not _is_whole(value):
        what = "only integers, byte buffers, and strings can be formatted as hex"
        raise _unfit(what, value)
    return f"{value:x}"


def _octal(value: Json, _: int) -> str:
    if not _is_whole(value):
        raise _unfit("octal clause can only be used on integers", value)
    return f"{value:o}"


_CLAUSES: dict[str, Callable[[Json, int], str]] = {
    "s": _plain,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "x": _hexadecimal,
    "X": lambda value, digits: _hexadecimal(value, digits).upper(),
    "o": _octal,
}
"""What each directive makes of a value; the number is that of the digits after the point."""
