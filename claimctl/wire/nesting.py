"""Splits JSON by its brackets, where the decoder refuses it for its nesting.

The decoder counts also what it skips, up to about 1,000 levels on Python 3.11 and 10,000 on 3.13.
API servers take 10,000.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate

import msgspec

MOST_LEVELS = 100
"""Deeper JSON does not become Python values. Objects of Kubernetes have about 20 levels."""
_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_OPEN = rb'(?:[\[{](?:[^"\[\]{}]++|' + _STRING + rb")*+)++"
_CLOSE = rb"(?:[\]}]\s*+)++"
_TOKEN = re.compile(rb"(" + _OPEN + rb")|(" + _CLOSE + rb")|(,)|" + _STRING + rb"?", re.DOTALL)
"""Brackets that open one after the other, with what is between them; brackets that close; a comma;
or a string. A token for each bracket of a deep object would take too long."""
_OPENING, _CLOSING, _COMMA = 1, 2, 3
_ANY_STRING = re.compile(_STRING, re.DOTALL)
_MEMBER = re.compile(rb'\s*"((?:[^"\\]++|\\.)*+)"\s*:(.*)', re.DOTALL)


class TooDeep(msgspec.DecodeError):
    """The decoder refuses the JSON for its nesting."""


def depth(data: bytes) -> int:
    """The number of brackets that are open at the deepest place."""
    return max(accumulate(map(_step, _TOKEN.finditer(data))), default=0)


def _step(token: re.Match[bytes]) -> int:
    """What the token changes in the number of open brackets."""
    if token.lastindex == _OPENING:
        brackets = _ANY_STRING.sub(b"", token[0])
        return brackets.count(b"[") + brackets.count(b"{")
    closing = token[0] if token.lastindex == _CLOSING else b""
    return -(closing.count(b"]") + closing.count(b"}"))


def members(data: bytes) -> Iterator[tuple[str, msgspec.Raw]]:
    """The members of an object, one by one. Names with an escape are not right.

    Raises:
        msgspec.DecodeError: ``data`` is no object, or is not whole.
    """
    for part in parts(data, b"{"):
        member = _MEMBER.fullmatch(part)
        if member is None:
            raise msgspec.DecodeError("not JSON: a member has no name")
        yield member[1].decode(errors="replace"), msgspec.Raw(member[2].strip())


def parts(data: bytes, opening: bytes) -> Iterator[bytes]:
    """What the commas separate directly inside the outermost brackets.

    Raises:
        msgspec.DecodeError: ``data`` does not begin with ``opening``, or is not whole.
    """
    data, level, begin = data.strip(), 1, 1
    for token in _TOKEN.finditer(data if data.startswith(opening) else b"", begin):
        level += _step(token)
        if level == 1 and token.lastindex == _COMMA:
            yield data[begin : token.start()]
            begin = token.end()
        elif level == 0 and token.end() == len(data):
            yield from filter(None, (data[begin:-1].strip(),))
            return
        elif level <= 0:
            break
    raise msgspec.DecodeError("not JSON: brackets do not match")
