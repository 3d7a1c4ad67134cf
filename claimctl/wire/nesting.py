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
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|([\[{])|([\]}])|(,)', re.DOTALL)
_MEMBER = re.compile(rb'\s*"((?:[^"\\]++|\\.)*+)"\s*:(.*)', re.DOTALL)
_STEPS = {1: 1, 2: -1}
"""What the groups change in the number of open brackets."""


class TooDeep(msgspec.DecodeError):
    """The decoder refuses the JSON for its nesting."""


def depth(data: bytes) -> int:
    """The number of brackets that are open at the deepest place."""
    steps = (_STEPS.get(token.lastindex or 0, 0) for token in _TOKEN.finditer(data))
    return max(accumulate(steps), default=0)


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
    data, level, begin = data.strip(), 0, 0
    for token in _TOKEN.finditer(data if data.startswith(opening) else b""):
        group = token.lastindex or 0
        level += _STEPS.get(group, 0)
        if level == 1 and group == 3:
            yield data[begin : token.start()]
        elif level == 0 and token.end() == len(data):
            yield from filter(None, (data[begin : token.start()].strip(),))
            return
        if level == 1 and group in (1, 3):
            begin = token.end()
    raise msgspec.DecodeError("not JSON: brackets do not match")
