"""Where schemas, managed fields, apply and authorization plug into the core.

The core works without them: the defaults here accept every field, record no managers, refuse
to apply, and allow everything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from claimctl.embedded.errors import StatusError
from claimctl.embedded.kinds.kind import Kind
from claimctl.embedded.storage.requests import Actor

Object = dict[str, Any]


class Schemas(Protocol):
    def convert(self, kind: Kind, version: str, obj: Object) -> Object:
        """What a struct makes of an object that was patched or merged in the form of maps.

        Raises:
            Unconvertible: a value of a wrong type.
        """
        ...

    def clean(self, kind: Kind, version: str, obj: Object, *, maps: bool = False) -> list[str]:
        """Drop unknown fields from ``obj`` in place and name them: ``unknown field "spec.x"``.

        ``maps`` says that the object was held in maps, where names have another form.

        Raises:
            StatusError: 400, a field has the wrong type.
        """
        ...

    def empty(self, kind: Kind, version: str) -> Object:
        """What an object of a built-in kind holds into which nobody has written."""
        ...

    def settle(self, kind: Kind, obj: Object) -> None:
        """Change an object in the stored form to what comes back from the storage."""
        ...

    def check(self, group: str, version: str, name: str, body: Object) -> list[str]:
        """Check a body that is not stored (a Binding, a Scale), whose Kind is ``name``.

        Fields that are not known are dropped and named: ``unknown field "spec.x"``.

        Raises:
            StatusError: 400, a field has the wrong type.
        """
        ...


@dataclass(frozen=True, slots=True)
class FieldWrite:
    """A write other than apply. ``old`` is None at create; ``time`` is RFC 3339 to the second."""

    kind: Kind
    version: str
    old: Object | None
    new: Object
    manager: str
    subresource: str
    time: str


class ManagedFields(Protocol):
    def record(self, write: FieldWrite) -> list[Object] | None:
        """metadata.managedFields after the write; None leaves what ``new`` carries."""
        ...


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """A server-side apply. ``old`` is None when the object is not there yet."""

    kind: Kind
    version: str
    old: Object | None
    patch: Object
    manager: str
    force: bool
    subresource: str
    time: str


class Applier(Protocol):
    def apply(self, request: ApplyRequest) -> Object:
        """The merged object, metadata.managedFields included.

        Raises:
            StatusError: 409 for conflicts with other managers, 400 for a patch without a manager.
        """
        ...


@dataclass(frozen=True, slots=True)
class Attributes:
    """What an authorizer is asked. ``path`` is set, and the rest empty, for non-resource paths."""

    actor: Actor
    verb: str
    group: str = ""
    version: str = ""
    plural: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


class Authorizer(Protocol):
    def allowed(self, attributes: Attributes) -> bool: ...


class AnyField:
    """Schemas that know nothing and accept everything."""

    def convert(self, kind: Kind, version: str, obj: Object) -> Object:
        return obj

    def clean(self, kind: Kind, version: str, obj: Object, *, maps: bool = False) -> list[str]:
        return []

    def empty(self, kind: Kind, version: str) -> Object:
        return {}

    def settle(self, kind: Kind, obj: Object) -> None:
        return None

    def check(self, group: str, version: str, name: str, body: Object) -> list[str]:
        return []


class NoManagedFields:
    def record(self, write: FieldWrite) -> list[Object] | None:
        return None


class NoApply:
    def apply(self, request: ApplyRequest) -> Object:
        raise StatusError(415, "UnsupportedMediaType", "server-side apply is not served")


class AlwaysAllow:
    def allowed(self, attributes: Attributes) -> bool:
        return True


@dataclass(slots=True)
class Hooks:
    """What is plugged in; each may be replaced before the first request."""

    schemas: Schemas = field(default_factory=AnyField)
    managed_fields: ManagedFields = field(default_factory=NoManagedFields)
    applier: Applier = field(default_factory=NoApply)
    authorizer: Authorizer = field(default_factory=AlwaysAllow)
