"""Functions that Kubernetes adds to CEL, as far as rules of definitions commonly use them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

from celpy import celtypes

Value = Any


def _text(function: Callable[..., str]) -> Callable[..., Value]:
    return lambda *values: celtypes.StringType(function(*values))


def _split(text: Value, separator: Value, limit: Value = -1) -> Value:
    parts = str(text).split(str(separator), int(limit) - 1 if limit > 0 else -1)
    return celtypes.ListType([celtypes.StringType(part) for part in parts])


def _join(values: Value, separator: Value = "") -> Value:
    return celtypes.StringType(str(separator).join(str(value) for value in values))


def _replace(text: Value, old: Value, new: Value, limit: Value = -1) -> str:
    return str(text).replace(str(old), str(new), int(limit))


def _substring(text: Value, start: Value, end: Value = None) -> str:
    return str(text)[int(start) : None if end is None else int(end)]


def _index_of(text: Value, part: Value) -> Value:
    if isinstance(text, list):
        return celtypes.IntType(text.index(part) if part in text else -1)
    return celtypes.IntType(str(text).find(str(part)))


def _find(text: Value, pattern: Value) -> str:
    match = re.search(str(pattern), str(text))
    return match[0] if match else ""


def _is_sorted(values: Value) -> Value:
    return celtypes.BoolType(all(one <= other for one, other in itertools.pairwise(values)))


def _sum(values: Value) -> Value:
    return sum(values, start=celtypes.IntType(0))


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "lowerAscii": _text(lambda text: str(text).lower()),
    "upperAscii": _text(lambda text: str(text).upper()),
    "trim": _text(lambda text: str(text).strip()),
    "replace": _text(_replace),
    "substring": _text(_substring),
    "find": _text(_find),
    "split": _split,
    "join": _join,
    "indexOf": _index_of,
    "isSorted": _is_sorted,
    "sum": _sum,
    "min": lambda values: min(values),
    "max": lambda values: max(values),
}
"""By name; the receiver of a method call is the first argument."""
