"""coordination.k8s.io/v1 Lease and events.k8s.io/v1 Event.

MicroTime fields are strings, because the API server accepts only fractions of exactly six digits
(``micro_time``).
"""

from __future__ import annotations

from datetime import UTC, datetime

from claimctl.wire.base import Wire
from claimctl.wire.meta import ObjectHeader, ObjectMeta
from claimctl.wire.times import EARLIEST, Span, moment

PREPARE_FAILED = "FailedPrepareDynamicResources"
"""The reason of a kubelet's Event about a pod whose devices it does not prepare."""


def micro_time(moment: datetime) -> str:
    """A MicroTime as the API server accepts it: UTC with exactly six digits of fraction."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


class LeaseSpec(Wire, frozen=True, kw_only=True):
    holder_identity: str | None = None
    lease_duration_seconds: Span | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(ObjectHeader, frozen=True, kw_only=True):
    spec: LeaseSpec = LeaseSpec()


def renewed_at(lease: Lease) -> datetime:
    """When the holder last renewed the Lease; 1970 if it never did, or nobody knows when."""
    return (moment(lease.spec.renew_time) or EARLIEST).astimezone(UTC)


def renewal_seconds(lease: Lease) -> float:
    """How often a kubelet renews the Lease of its node: four times in its duration."""
    return (lease.spec.lease_duration_seconds or 40) / 4


class ObjectReference(Wire, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class EventSeries(Wire, frozen=True, kw_only=True):
    count: int = 0
    last_observed_time: str = ""


class Event(ObjectHeader, frozen=True, kw_only=True):
    event_time: str | None = None
    deprecated_last_timestamp: str | None = None
    """The time of an Event that was made through the core API: ``event_time`` is null then."""
    series: EventSeries | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    action: str = ""
    reason: str = ""
    regarding: ObjectReference = ObjectReference()
    related: ObjectReference | None = None
    note: str = ""
    type: str = ""

    def is_about(self, meta: ObjectMeta) -> bool:
        """Whether the Event is about this object: by namespace, name and UID together. Who may
        write Events in one namespace may write any UID into them, also that of another's pod."""
        named = (self.regarding.namespace, self.regarding.name, self.regarding.uid)
        return self.metadata.namespace == meta.namespace and named == (*meta.key, meta.uid)
