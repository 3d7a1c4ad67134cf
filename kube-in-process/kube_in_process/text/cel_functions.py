"""Functions of Kubernetes' CEL libraries that the CEL library lacks."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from kube_in_process.text.quantity import number

Json = Any

_DIRECTIVE = re.compile(r"%(?:\.(\d+))?([%sdfexXbo])")


def _string(value: Json) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.decode() if isinstance(value, bytes) else str(value)


def _is_quantity(text: str) -> bool:
    try:
        number(text)
    except (ArithmeticError, ValueError):
        return False
    return True


def _format(text: str, values: list[Json]) -> str:
    left = iter(values)

    def shown(found: re.Match[str]) -> str:
        digits, kind = found.groups()
        if kind == "%":
            return "%"
        value = next(left)
        if kind == "s":
            return _string(value)
        return format(value, f".{digits}{kind}" if digits else kind)

    return _DIRECTIVE.sub(shown, text)


def _distinct(values: list[Json]) -> list[Json]:
    return [each for index, each in enumerate(values) if each not in values[:index]]


def _last_index(text: Json, part: Json) -> int:
    if isinstance(text, list):
        return max((index for index, each in enumerate(text) if each == part), default=-1)
    return str(text).rfind(part)


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [each[0] for each in re.finditer(pattern, text)]
    return found if limit < 0 else found[:limit]


def _flatten(values: list[Json]) -> list[Json]:
    return [item for each in values for item in (each if isinstance(each, list) else [each])]


MORE_FUNCTIONS: dict[str, Callable[..., Json]] = {
    "string": _string,
    "format": _format,
    "charAt": lambda text, index: text[index],
    "lastIndexOf": _last_index,
    "reverse": lambda value: value[::-1],
    "findAll": _find_all,
    "distinct": _distinct,
    "flatten": _flatten,
    "slice": lambda values, start, end: values[start:end],
    "sort": sorted,
    "isQuantity": _is_quantity,
    "isGreaterThan": lambda one, other: one > other,
    "isLessThan": lambda one, other: one < other,
    "sets.contains": lambda one, other: all(each in one for each in other),
    "sets.equivalent": lambda one, other: (
        all(each in one for each in other) and all(each in other for each in one)
    ),
    "sets.intersects": lambda one, other: any(each in one for each in other),
    "lists.range": lambda count: list(range(count)),
    "jsonpatch.escapeKey": lambda key: key.replace("~", "~0").replace("/", "~1"),
}
"""Functions by name. The receiver of a method call is the first argument."""
