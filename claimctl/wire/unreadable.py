"""Objects that cannot be decoded, and what is known about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from claimctl.wire.base import decode
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
        meta = members(members(raw).get("metadata"))
        return cls(
            resource=resource,
            problem=" ".join(problem.split()),
            namespace=_text(meta.get("namespace")),
            name=_text(meta.get("name")),
            uid=_text(meta.get("uid")),
            resource_version=_text(meta.get("resourceVersion")),
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
                raw = decode(raw, dict[str, msgspec.Raw]).get(name, _NULL)
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


def members(raw: bytes | msgspec.Raw | None) -> Mapping[str, msgspec.Raw]:
    """The members of a JSON object, each undecoded; empty if ``raw`` is no JSON object."""
    try:
        return msgspec.json.decode(raw or b"{}", type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}


def _text(raw: msgspec.Raw | None) -> str:
    try:
        return msgspec.json.decode(raw or b'""', type=str)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""
