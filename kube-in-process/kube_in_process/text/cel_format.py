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

    def shown(directive: re.Match[str]) -> str:
        nonlocal used
        kind = _clause(directive)
        if not kind:
            return "%"
        if used >= len(values):
            raise CallFailed(f"index {used} out of range")
        value, used = values[used], used + 1
        problem = clause_problem(kind, type_name(value))
        if problem and not (kind in "ef" and value in _SPECIAL):
            raise CallFailed(problem)
        return _CLAUSES[kind](value, int(directive["digits"] or 6))

    return _DIRECTIVE.sub(shown, text)


def _clause(directive: re.Match[str]) -> str:
    """The letter of a directive; '' for a percent sign."""
    kind = directive["kind"]
    if kind == "%":
        return ""
    if not kind:
        raise CallFailed("unexpected end of string")
    if kind not in _CLAUSES:
        why = f'unrecognized formatting clause "{kind}"'
        raise CallFailed(f"could not parse formatting clause: {why}")
    return str(kind)


def format_problem(text: str, types: list[str]) -> tuple[str, int]:
    """What is wrong with a format and the types of its values, and with which of them; -1 if it is
    no single one. The text is '' if nothing is."""
    try:
        kinds = [kind for kind in map(_clause, _DIRECTIVE.finditer(text)) if kind]
    except CallFailed as error:
        return str(error), -1
    for index, kind in enumerate(kinds):
        if index >= len(types):
            return f"index {index} out of range", -1
        problem = "" if types[index] == "dyn" else clause_problem(kind, types[index])
        if problem:
            return problem, index
    if len(types) > len(kinds):
        counts = f"(expected {len(kinds)}, got {len(types)})"
        return f"too many arguments supplied to string.format {counts}", -1
    return "", -1


_NUMBERS = ("int", "uint")
_CLAUSE_TYPES = {
    "d": (_NUMBERS, "decimal clause can only be used on integers"),
    "f": (("double",), "fixed-point clause can only be used on doubles"),
    "e": (("double",), "scientific clause can only be used on doubles"),
    "b": ((*_NUMBERS, "bool"), "only integers and bools can be formatted as binary"),
    "o": (_NUMBERS, "octal clause can only be used on integers"),
    **dict.fromkeys(
        ("x", "X"),
        (
            (*_NUMBERS, "string", "bytes"),
            "only integers, byte buffers, and strings can be formatted as hex",
        ),
    ),
}
"""The types of values that a directive takes, and what is said of others."""


def clause_problem(kind: str, name: str) -> str:
    """The error text of a directive for a value of a type; '' if it takes it."""
    types, words = _CLAUSE_TYPES.get(kind, ((name,), ""))
    return "" if name in types else f"error during formatting: {words}, was given {name}"


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
    return str(value)


def _fixed(value: Json, digits: int) -> str:
    value = float(value)
    return _special(value) or f"{value + 0.0:,.{digits}f}"


def _scientific(value: Json, _: int) -> str:
    """Always with six digits."""
    value = float(value)
    if special := _special(value):
        return special
    mantissa, power = f"{value:.6e}".replace("+", "").split("e")
    return f"{mantissa}×10{power.translate(_SUPERSCRIPTS)}"


def _special(value: float) -> str:
    return {"inf": "∞", "-inf": "-∞", "nan": "NaN"}.get(str(value), "")


def _binary(value: Json, _: int) -> str:
    return f"{value:b}"


def _hexadecimal(value: Json, _: int) -> str:
    if isinstance(value, str):
        return value.encode().hex()
    if isinstance(value, bytes):
        return value.hex()
    return f"{value:x}"


def _octal(value: Json, _: int) -> str:
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
