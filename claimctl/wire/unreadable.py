"""Objects that cannot be read, and what is known about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import msgspec

from claimctl.wire.base import decode, encode
from claimctl.wire.meta import HasMetadata
from claimctl.wire.nesting import members
from claimctl.wire.resources import Resource

T = TypeVar("T")
Fields = Mapping[str, "Fields"]
_READ: Fields = {
    "spec": {
        "driver": {},
        "namespaces": {},
        "nodeName": {},
        "resourceClaimName": {},
        "resourceClaims": {},
        "template": {"spec": {"resourceClaims": {}}},
        "workloadRef": {"name": {}},
    },
    "status": {
        "extendedResourceClaimStatus": {"resourceClaimName": {}},
        "resourceClaimStatuses": {},
    },
}
"""The fields that are kept of an unreadable object: they say what it concerns."""
_MOST_BYTES = 64 * 1024
"""A larger field is not kept, and a larger object that is nested too deeply is not searched: that
takes time and memory. The object then concerns every claim of its namespace."""
_UNKNOWN = msgspec.Raw(b"0")
"""In the place of a part that cannot be read: it is no object, list or text."""
_NULL = msgspec.Raw(b"null")
_LONGEST_PROBLEM = 300


@dataclass(frozen=True, slots=True)
class Unreadable:
    """One object that cannot be decoded, or for which an exception was raised.

    Attributes:
        namespace, name, uid, resource_version: as far as they can be read, '' otherwise.
        problem: what was expected and where, in one line.
        raw: the parts of the object that say what it concerns, as they came.
    """

    resource: Resource[Any]
    problem: str
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    raw: bytes = field(default=b"", repr=False)

    @classmethod
    def of(cls, resource: Resource[Any], raw: bytes, problem: str) -> Unreadable:
        """Read as many fields of the metadata as possible."""
        meta = _NULL
        with suppress(msgspec.MsgspecError):
            meta = _member(raw, "metadata")
        # for ``read``, the metadata is an object by itself
        part = cls(resource, problem, raw=bytes(meta))
        return cls(
            resource=resource,
            problem=" ".join(problem.split())[:_LONGEST_PROBLEM],
            namespace=part.read("namespace", str, "") or "",
            name=part.read("name", str, "") or "",
            uid=part.read("uid", str, "") or "",
            resource_version=part.read("resourceVersion", str, "") or "",
            raw=bytes(_kept(raw, _READ)),
        )

    @classmethod
    def failed(cls, resource: Resource[Any], item: HasMetadata, error: Exception) -> Unreadable:
        """An object that was decoded, and for which an exception was raised later."""
        raw, meta = b"", item.metadata
        with suppress(Exception):
            raw = encode(item)
        problem = f"{type(error).__name__}: {error}"
        return replace(
            cls.of(resource, raw, problem),
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            resource_version=meta.resource_version,
        )

    @property
    def identified(self) -> bool:
        """Whether namespace, name and UID are known."""
        placed = bool(self.namespace) or not self.resource.namespaced
        return placed and bool(self.name and self.uid)

    def may_be_in(self, namespace: str) -> bool:
        return not self.resource.namespaced or self.namespace in ("", namespace)

    def read(self, path: str, type_: type[T], absent: T) -> T | None:
        """The field at a path like ``spec.nodeName``; None if it cannot be read either.

        Args:
            path: one of the fields that are kept.
            absent: the value if the object has no such field.
        """
        raw = msgspec.Raw(self.raw)
        try:
            for name in path.split("."):
                raw = _member(raw, name)
                if bytes(raw) == b"null":
                    return absent
            return decode(raw, type_)
        except msgspec.MsgspecError:
            return None

    def __str__(self) -> str:
        """Kind, namespace and name, for people."""
        name = "/".join(filter(None, (self.namespace, self.name)))
        if self.identified:
            return f"{self.resource.kind} {name}"
        return f"a {self.resource.kind} whose metadata cannot be read{f' ({name})' * bool(name)}"

    def describe(self) -> str:
        """The object and its problem, in one line."""
        return f"{self} cannot be read: {self.problem}"


def _members(raw: bytes | msgspec.Raw) -> Iterable[tuple[str, msgspec.Raw]]:
    """The members of a JSON object, undecoded, also where a part is nested too deeply or is no
    JSON. Raises MsgspecError."""
    try:
        return decode(raw, dict[str, msgspec.Raw]).items()
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        return members(bytes(raw))


def _member(raw: bytes | msgspec.Raw, name: str) -> msgspec.Raw:
    """A member of a JSON object, undecoded; null if it is absent. Raises MsgspecError."""
    return next((value for key, value in _members(raw) if key == name), _NULL)


def _kept(raw: bytes | msgspec.Raw, wanted: Fields) -> msgspec.Raw:
    """The object with the wanted fields alone; a field is kept whole if nothing is wanted in it."""
    data = bytes(raw)
    if not wanted or data == b"null":
        return msgspec.Raw(data) if len(data) <= _MOST_BYTES else _UNKNOWN
    try:
        large = len(data) > _MOST_BYTES
        fields = decode(data, dict[str, msgspec.Raw]).items() if large else _members(data)
        parts = {name: _kept(value, wanted[name]) for name, value in fields if name in wanted}
    except msgspec.MsgspecError:
        return _UNKNOWN
    return msgspec.Raw(encode(parts))
