"""The part of an object that expressions read: what goes into CEL, and how much that is.

An object may have megabytes, and an expression reads a few fields of it. Only those are decoded.

Fields ``metadata``, ``spec`` and ``status`` always exist for an expression. A field that is null
counts as absent, as everywhere in Kubernetes; a null in a list stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from claimctl.wire.nesting import MOST_LEVELS

MOST_BYTES = 256 * 1024
"""The most bytes of JSON that go into CEL for one object. Its library copies them."""
TOO_DEEP = f"the workload is nested more than {MOST_LEVELS} levels deep"
TOO_LARGE = f"the fields of the workload that the rule reads have more than {MOST_BYTES} bytes"
_SELF = re.compile(r"\bself\b((?:\s*\.\s*[A-Za-z_]\w*)*)\s*(\(?)")
_BYTES_A_VALUE = 64
"""A text counts as one value for so many bytes."""
_COMMON = (("metadata", "generation"), ("status", "observedGeneration"))
"""The fields that ``rules`` reads for each expression: they show whether the status belongs to an
earlier generation."""

Field = tuple[str, ...]
"""The names on the way to a field: at most two."""


class Unfit(Exception):
    """An object is too large or too deep for expressions, or not JSON. The text is one line."""


@dataclass(frozen=True, slots=True)
class Subject:
    """An object as expressions see it.

    Attributes:
        values: the number of its values.
        longest: the length of its longest list or map.
    """

    document: Mapping[str, Any]
    values: int = 1
    longest: int = 1


@lru_cache(maxsize=512)
def fields_read(source: str) -> frozenset[Field]:
    """The fields that an expression may read, as paths of at most two names; () means all.

    Names in texts may add fields. An expression with ``//``, be it in a text, reads all if it names
    self: a comment may stand between self and the names behind it.
    """
    fields = set[Field]()
    for match in _SELF.finditer(source):
        names = [name.strip() for name in match[1].split(".")[1:]]
        # the last name before a bracket is that of a function
        known = names[: len(names) - bool(match[2])]
        fields.add(tuple(known[:2]) if "//" not in source else ())
    return frozenset(fields)


def subject_of(document: bytes, sources: Iterable[str]) -> Subject:
    """The parts of an object, given as JSON, that the expressions may read.

    Raises:
        Unfit: they are too large or nested too deeply, or not JSON.
    """
    fields = {field for source in sources for field in fields_read(source)}
    try:
        parts = _parts(msgspec.Raw(document), {*fields, *_COMMON})
        if len(parts) > MOST_BYTES:
            raise Unfit(TOO_LARGE)
        plain = msgspec.json.decode(parts)
    except RecursionError:
        raise Unfit(TOO_DEEP) from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Unfit(f"the workload cannot be read: {error}") from None
    size = _Size()
    kept = size.add(plain, MOST_LEVELS) if isinstance(plain, dict) else {}
    return Subject({"metadata": {}, "spec": {}, "status": {}} | kept, size.values, size.longest)


def _parts(raw: msgspec.Raw, fields: set[Field]) -> bytes:
    """The object with these fields alone."""
    if () in fields or not bytes(raw).lstrip().startswith(b"{"):
        return bytes(raw)
    members = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    names = sorted({field[0] for field in fields} & members.keys())
    below = {name: {field[1:] for field in fields if field[0] == name} for name in names}
    return msgspec.json.encode({n: msgspec.Raw(_parts(members[n], below[n])) for n in names})


@dataclass(slots=True)
class _Size:
    """The size of what was added."""

    values: int = 0
    longest: int = 1

    def add(self, value: Any, levels: int) -> Any:
        """Count a value of at most so many levels, and return it without fields that are null."""
        self.values += 1
        if isinstance(value, str):
            self.values += len(value) // _BYTES_A_VALUE
        if not isinstance(value, dict | list):
            return value
        if levels == 0:
            raise Unfit(TOO_DEEP)
        self.longest = max(self.longest, len(value))
        if isinstance(value, list):
            return [self.add(part, levels - 1) for part in value]
        parts = value.items()
        return {key: self.add(part, levels - 1) for key, part in parts if part is not None}
