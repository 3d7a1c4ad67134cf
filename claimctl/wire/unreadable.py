"""Objects that cannot be decoded, and what is known about them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from claimctl.wire.base import decode
from claimctl.wire.nesting import TooDeep, members
from claimctl.wire.resources import Resource

T = TypeVar("T")
_NULL = msgspec.Raw(b"null")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """One object that cannot be decoded.

    Attributes:
        namespace, name, uid, resource_version: as far as they can be read, '' otherwise.
        problem: what was expected and where, in one line.
        raw: the object as it came.
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
        part = cls(resource, problem, raw=bytes(meta))
        return cls(
            resource=resource,
            problem=" ".join(problem.split()),
            namespace=part.read("namespace", str, "") or "",
            name=part.read("name", str, "") or "",
            uid=part.read("uid", str, "") or "",
            resource_version=part.read("resourceVersion", str, "") or "",
            raw=raw,
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


def _member(raw: bytes | msgspec.Raw, name: str) -> msgspec.Raw:
    """A member of a JSON object, undecoded; null if it is absent. Raises MsgspecError."""
    try:
        return decode(raw, dict[str, msgspec.Raw]).get(name, _NULL)
    except TooDeep:
        return next((value for key, value in members(bytes(raw)) if key == name), _NULL)
