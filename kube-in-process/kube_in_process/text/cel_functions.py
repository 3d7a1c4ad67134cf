"""Functions of Kubernetes' CEL libraries that the CEL library lacks."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from kube_in_process.text.cel_format import CallFailed, as_text, formatted
from kube_in_process.text.quantity import number

Json = Any


def _is_quantity(text: str) -> bool:
    try:
        number(text)
    except (ArithmeticError, ValueError):
        return False
    return True


def _distinct(values: list[Json]) -> list[Json]:
    return [value for index, value in enumerate(values) if value not in values[:index]]


def _outside(position: int) -> CallFailed:
    return CallFailed(f"index out of range: {position}")


def _substring(text: str, start: int, end: int | None = None) -> str:
    last = len(text) if end is None else end
    if end is not None and start > end:
        raise CallFailed(f"invalid substring range. start: {start}, end: {end}")
    for position in (start, last):
        if not 0 <= position <= len(text):
            raise _outside(position)
    return text[start:last]


def _char_at(text: str, position: int) -> str:
    if not 0 <= position <= len(text):
        raise _outside(position)
    return text[position : position + 1]


def _index_of(text: Json, part: Json, start: int = 0) -> int:
    if isinstance(text, list):
        return text.index(part) if part in text else -1
    if start < 0:
        raise _outside(start)
    return str(text).find(part, start)


def _last_index(text: Json, part: Json, start: int | None = None) -> int:
    if isinstance(text, list):
        return max((index for index, item in enumerate(text) if item == part), default=-1)
    if start is None:
        return str(text).rfind(part)
    if start < 0:
        raise _outside(start)
    return str(text).rfind(part, 0, start + len(part)) if start < len(text) else -1


def _split(text: str, part: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if part:
        return text.split(part, limit - 1 if limit > 0 else -1)
    whole = len(text) if limit < 0 else limit - 1
    return [*text[:whole], *([text[whole:]] if text[whole:] else [])]


def _slice(values: list[Json], start: int, end: int) -> list[Json]:
    asked = f"cannot slice({start}, {end})"
    if start < 0 or end < 0:
        raise CallFailed(f"{asked}, negative indexes not supported")
    if start > end:
        raise CallFailed(f"{asked}, start index must be less than or equal to end index")
    if end > len(values):
        raise CallFailed(f"{asked}, list is length {len(values)}")
    return values[start:end]


def _least(name: str, choose: Callable[[list[Json]], Json]) -> Callable[[list[Json]], Json]:
    def chosen(values: list[Json]) -> Json:
        if not values:
            raise CallFailed(f"{name} called on empty list")
        return choose(values)

    return chosen


_BOOLS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def _bool(value: Json) -> bool:
    if isinstance(value, str) and value not in _BOOLS:
        raise CallFailed("type conversion error from 'string' to 'bool'")
    return _BOOLS[value] if isinstance(value, str) else bool(value)


def _lower(text: str) -> str:
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)


def _upper(text: str) -> str:
    return "".join(letter.upper() if letter.isascii() else letter for letter in text)


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    parts = [match[0] for match in re.finditer(pattern, text)]
    return parts if limit < 0 else parts[:limit]


def _flatten(values: list[Json]) -> list[Json]:
    return [item for value in values for item in (value if isinstance(value, list) else [value])]


_OPTIONAL = "optional value"
"""The key of the map that stands for an optional value; without a value there is none."""


def _optional(value: Any, key: Any) -> Json:
    """The value of a key that may be missing, in a map, a list or an optional value."""
    if isinstance(value, dict) and _OPTIONAL in value:
        return _optional(value[_OPTIONAL], key)
    if isinstance(value, dict) and key in value:
        return {_OPTIONAL: value[key]}
    if isinstance(value, list) and isinstance(key, int) and 0 <= key < len(value):
        return {_OPTIONAL: value[key]}
    return {}


MORE_FUNCTIONS: dict[str, Callable[..., Json]] = {
    # the library has functions of the first three names, which count bytes or write other texts
    "string_": as_text,
    "size_": len,
    "bool_": _bool,
    "format": formatted,
    "lowerAscii": _lower,
    "upperAscii": _upper,
    "substring": _substring,
    "split": _split,
    "charAt": _char_at,
    "indexOf": _index_of,
    "lastIndexOf": _last_index,
    "reverse": lambda value: value[::-1],
    "findAll": _find_all,
    "distinct": _distinct,
    "flatten": _flatten,
    "slice": _slice,
    "min": _least("min", min),
    "max": _least("max", max),
    "sort": sorted,
    "isQuantity": _is_quantity,
    "isGreaterThan": lambda one, other: one > other,
    "isLessThan": lambda one, other: one < other,
    "sets.contains": lambda one, other: all(item in one for item in other),
    "sets.equivalent": lambda one, other: (
        all(item in one for item in other) and all(item in other for item in one)
    ),
    "sets.intersects": lambda one, other: any(item in one for item in other),
    "select": _optional,
    "valueOr": lambda value, other: value.get(_OPTIONAL, other),
    "isThere": lambda value: _OPTIONAL in value,
    "valueOf": lambda value: value[_OPTIONAL],
    "lists.range": lambda count: list(range(count)),
    "jsonpatch.escapeKey": lambda key: key.replace("~", "~0").replace("/", "~1"),
}
"""Functions by name. The receiver of a method call is the first argument."""
