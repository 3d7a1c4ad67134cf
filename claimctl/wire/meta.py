"""The metadata of all objects."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Protocol

import msgspec

from claimctl.wire.base import EMPTY, Wire, null_is_empty
from claimctl.wire.limits import OPTIONAL, REQUIRED, Count, Time, limit
from claimctl.wire.times import Span


class OwnerReference(Wire, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ManagedFieldsEntry(Wire, frozen=True, kw_only=True):
    """Who wrote which fields. ``fields_v1`` stays undecoded until it is needed.

    The API server sets ``time`` when the manager adds or changes a field.
    """

    manager: str = ""
    operation: str = ""
    subresource: str = ""
    time: datetime | None = None
    fields_v1: msgspec.Raw = msgspec.field(name="fieldsV1", default=EMPTY)

    def __post_init__(self) -> None:
        null_is_empty(self, "fields_v1", self.fields_v1)


class ObjectMeta(Wire, frozen=True, kw_only=True):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: Span | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name

    @property
    def deleting(self) -> bool:
        return self.deletion_timestamp is not None

    def annotation(self, key: str) -> str | None:
        return (self.annotations or {}).get(key)

    def controller(self) -> OwnerReference | None:
        """The owner with ``controller: true``; the API allows at most one."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class HasMetadata(Protocol):
    @property
    def metadata(self) -> ObjectMeta: ...


class ManagedObjectMeta(ObjectMeta, frozen=True, kw_only=True):
    """Metadata with managedFields, for kinds where claimctl must know who wrote what (claims)."""

    managed_fields: tuple[ManagedFieldsEntry, ...] = ()


class ObjectHeader(Wire, frozen=True, kw_only=True):
    """An object with only its metadata; the base of all objects with more."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()


class ListMeta(Wire, frozen=True, kw_only=True):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


_QUALIFIED = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
_REASON = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"


class Condition(Wire, frozen=True, kw_only=True):
    """One aspect of the object's current state."""

    # with the limits of metav1.Condition; pods use the same shape without observed_generation
    type: Annotated[str, REQUIRED, limit(maxLength=316, pattern=_QUALIFIED)] = ""
    """The type of the condition."""
    status: Annotated[str, REQUIRED, limit(enum=["True", "False", "Unknown"])] = ""
    """Whether the condition is true: True, False or Unknown."""
    observed_generation: Annotated[Count, OPTIONAL] = 0
    """The generation of the spec that the condition belongs to."""
    last_transition_time: Annotated[Time | None, REQUIRED] = None
    """When the status last changed."""
    reason: Annotated[str, REQUIRED, limit(minLength=1, maxLength=1024, pattern=_REASON)] = ""
    """The reason for the status, in one word for programs."""
    message: Annotated[str, REQUIRED, limit(maxLength=32768)] = ""
    """The reason for the status, in one line for people."""


def find_condition(conditions: Iterable[Condition], type_: str) -> Condition | None:
    """The condition of a type, or None."""
    return next((condition for condition in conditions if condition.type == type_), None)


def renewed(condition: Condition, before: Iterable[Condition], now: datetime) -> Condition:
    """The condition with its time, which changes only when its status changes."""
    old, since = find_condition(before, condition.type), now.replace(microsecond=0)
    if old is not None and old.status == condition.status:
        return msgspec.structs.replace(condition, last_transition_time=old.last_transition_time)
    return msgspec.structs.replace(condition, last_transition_time=since)


class StatusCause(Wire, frozen=True, kw_only=True):
    message: str = ""
    field: str = ""


class StatusDetails(Wire, frozen=True, kw_only=True):
    causes: tuple[StatusCause, ...] | None = None
    retry_after_seconds: Span = 0


class Status(Wire, frozen=True, kw_only=True):
    """metav1.Status: the body of every error answer."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


def precedes(version: str, other: str) -> bool:
    """Whether ``version`` was certainly made before ``other``, even of another kind.

    All kinds share the revisions of one etcd, unless an administrator has separated them.
    """
    return version.isdecimal() and other.isdecimal() and int(version) < int(other)


def reaches(seen: str, wanted: str) -> bool:
    """Whether ``seen`` is the same as ``wanted``, or later.

    resourceVersions are decimal numbers that grow with each write (KEP-5504, and all earlier
    releases). Other strings can only be compared for equality.
    """
    if seen.isdecimal() and wanted.isdecimal():
        return int(seen) >= int(wanted)
    return seen == wanted
