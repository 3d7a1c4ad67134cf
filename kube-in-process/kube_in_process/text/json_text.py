"""JSON by Go's rules, where Python's reader differs."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

import msgspec

Pairs = Callable[[list[tuple[str, Any]]], dict[str, Any]]

_MAX_DEPTH = 100
"""Go's limit is 10,000 levels. No object of the API has a tenth of this."""
_LONG = re.compile(rb"\d{19}")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_LONE = re.compile("[\ud800-\udfff]")


def indented(data: bytes) -> bytes:
    """JSON for people, as a server writes it for ``?pretty=true``."""
    return msgspec.json.format(data.rstrip(b"\n"), indent=2)


def parse(body: bytes, pairs: Pairs = dict) -> Any:
    """Decode a body. ``pairs`` makes the objects.

    Invalid UTF-8 and halves of surrogate pairs become U+FFFD. Whole numbers beyond 64 bits become
    floats.

    Raises:
        ValueError: no JSON, numbers that no float holds, or too deep.
    """
    text = body.decode("utf-8", "replace")
    long = _integer if _LONG.search(body) else None
    try:
        value = json.loads(
            text,
            object_pairs_hook=pairs,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=long,
        )
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    check_depth(value)
    return _whole(value, pairs) if _SURROGATE.search(body) else value


_TOO_DEEP = "exceeded max depth"


def check_depth(value: Any) -> None:
    """Raise ValueError if the value is nested too deeply."""
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [inner for outer in level for inner in _below(outer)]
        if not level:
            return
    raise ValueError(_TOO_DEEP)


def _below(value: Any) -> list[Any]:
    inner: list[Any] = []
    if isinstance(value, dict):
        inner = list(value.values())
    elif isinstance(value, list):
        inner = value
    return [item for item in inner if isinstance(item, (dict, list))]


def _constant(text: str) -> Any:
    raise ValueError(f"invalid character '{text[0]}' looking for beginning of value")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"json: cannot unmarshal number {text} into Go value of type float64")
    return value


def _integer(text: str) -> int | float:
    if len(text) <= 20 and -(2**63) <= (value := int(text)) < 2**63:
        return value
    return _float(text)


def _whole(value: Any, pairs: Pairs) -> Any:
    if isinstance(value, str):
        return _LONE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_whole(item, pairs) for item in value]
    if isinstance(value, dict):
        return pairs([(_whole(key, pairs), _whole(item, pairs)) for key, item in value.items()])
    return value
