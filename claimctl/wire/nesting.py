"""JSON that is nested more deeply than the decoder reads: its parts, and how deep it is.

The decoder counts the nesting also of what it skips, and its limit differs between versions of
Python (about 1,000 to 10,000 levels). API servers take up to 10,000. So JSON that it refuses is
split here by its brackets, and each part is decoded by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

MOST_LEVELS = 100
"""Deeper JSON is not turned into Python values. Objects of Kubernetes have about 20 levels."""
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|([\[{])|([\]}])|(,)', re.DOTALL)
_OPENS, _CLOSES, _COMMA = 1, 2, 3
_NAME = re.compile(rb'\s*("(?:[^"\\]++|\\.)*+")\s*:', re.DOTALL)


class TooDeep(msgspec.DecodeError):
    """The decoder refuses the JSON for its nesting."""

    def __init__(self) -> None:
        super().__init__("the JSON is nested too deeply")


def depth(data: bytes) -> int:
    """The number of brackets that are open at the deepest place."""
    now = most = 0
    for token in _TOKEN.finditer(data):
        now += _STEPS.get(token.lastindex, 0)
        most = max(most, now)
    return most


def members(data: bytes) -> Iterator[tuple[str, msgspec.Raw]]:
    """The members of an object, one by one: who wants the first need not wait for the last.

    Raises:
        msgspec.DecodeError: ``data`` is not an object, or not whole.
    """
    for part in _parts(data, b"{"):
        name = _NAME.match(part)
        if name is None:
            raise msgspec.DecodeError("not JSON: a member without a name")
        yield msgspec.json.decode(name[1], type=str), msgspec.Raw(part[name.end() :].strip())


def entries(data: bytes) -> Iterator[msgspec.Raw]:
    """The entries of a list.

    Raises:
        msgspec.DecodeError: ``data`` is not a list, or not whole.
    """
    return map(msgspec.Raw, _parts(data, b"["))


_STEPS: dict[int | None, int] = {_OPENS: 1, _CLOSES: -1}


def _parts(data: bytes, opening: bytes) -> Iterator[bytes]:
    """What the commas separate directly inside the outermost brackets."""
    data = data.strip()
    level = begin = 0
    for token in _TOKEN.finditer(data if data.startswith(opening) else b""):
        what = token.lastindex
        level += _STEPS.get(what, 0)
        if level == 1 and what == _COMMA:
            yield data[begin : token.start()]
            begin = token.end()
        elif level == 1 and what == _OPENS:
            begin = token.end()
        elif level == 0 and token.end() == len(data):
            if last := data[begin : token.start()].strip():
                yield last
            return
    raise msgspec.DecodeError("not JSON: brackets do not match")
