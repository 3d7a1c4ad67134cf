"""Objects with the fields that say when something happened. The controller does not need them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from claimctl.wire import resources as wire
from claimctl.wire.base import Wire
from claimctl.wire.coordination import Event, EventSeries, ObjectReference
from claimctl.wire.meta import ManagedObjectMeta
from claimctl.wire.pods import ContainerStatus, Pod, PodStatus
from claimctl.wire.reservations import ClaimReservation
from claimctl.wire.times import moment


class TimedState(Wire, frozen=True, kw_only=True):
    started_at: datetime | None = None
    finished_at: datetime | None = None


class TimedContainerStatus(Wire, frozen=True, kw_only=True):
    state: dict[str, TimedState] = msgspec.field(default_factory=dict)
    """The one that it is in, by its name: waiting, running or terminated."""


class TimedPodStatus(PodStatus, frozen=True, kw_only=True):
    start_time: datetime | None = None
    timed: tuple[TimedContainerStatus, ...] = msgspec.field(name="containerStatuses", default=())
    container_statuses: tuple[ContainerStatus, ...] = msgspec.field(name="-", default=())


class TimedPod(Pod, frozen=True, kw_only=True):
    metadata: ManagedObjectMeta = ManagedObjectMeta()
    status: TimedPodStatus = TimedPodStatus()


class TimedReservation(ClaimReservation, frozen=True, kw_only=True):
    metadata: ManagedObjectMeta = ManagedObjectMeta()


class TimedEvent(Event, frozen=True, kw_only=True):
    """Components that still use the old API set only the deprecated times."""

    deprecated_first_timestamp: datetime | None = None


class CoreEvent(Wire, frozen=True, kw_only=True):
    """An Event as the core API shows it. The built-in role view may read Events only there."""

    metadata: ManagedObjectMeta = ManagedObjectMeta()
    involved_object: ObjectReference = ObjectReference()
    related: ObjectReference | None = None
    reason: str = ""
    message: str = ""
    type: str = ""
    event_time: str | None = None
    first_timestamp: datetime | None = None
    series: EventSeries | None = None

    def as_event(self) -> TimedEvent:
        """The Event in the shape of events.k8s.io."""
        return TimedEvent(
            metadata=self.metadata,
            regarding=self.involved_object,
            related=self.related,
            reason=self.reason,
            note=self.message,
            type=self.type,
            event_time=self.event_time,
            deprecated_first_timestamp=self.first_timestamp,
            series=self.series,
        )


TIMED_PODS = wire.read_as(wire.PODS, TimedPod)
TIMED_RESERVATIONS = wire.read_as(wire.CLAIMRESERVATIONS, TimedReservation)
TIMED_EVENTS = wire.read_as(wire.EVENTS, TimedEvent)
"""The resources, read with their times."""
CORE_EVENTS = wire.Resource("", "v1", "events", "Event", CoreEvent)


_LATE = timedelta(hours=1)
"""An Event is created within this time, for which an API server also keeps it."""


def last_write(meta: ManagedObjectMeta) -> datetime | None:
    """When the object was last written, by managedFields."""
    return max(
        (entry.time for entry in meta.managed_fields if entry.time is not None), default=None
    )


def event_time(event: TimedEvent) -> datetime | None:
    """When an Event happened first. Its writer says so, and the server when it was created. If
    these are far apart, the server is believed."""
    said = moment(event.event_time) or event.deprecated_first_timestamp
    created = event.metadata.creation_timestamp
    if said is None or (created is not None and abs(said - created) > _LATE):
        return created
    return said


def started(pod: TimedPod) -> datetime | None:
    """When the first container of the pod started; None if none has, as far as it is known."""
    times = [
        state.started_at
        for status in pod.status.timed
        for state in status.state.values()
        if state.started_at is not None
    ]
    if times:
        return min(times)
    return pod.status.start_time if pod.status.phase != "Pending" else None


def finished(pod: TimedPod) -> datetime | None:
    """When the last container of the pod ended."""
    states = (state for status in pod.status.timed for state in status.state.values())
    return max((state.finished_at for state in states if state.finished_at), default=None)


RESOURCES: tuple[wire.Resource[Any], ...] = (wire.RESOURCECLAIMS, TIMED_PODS, TIMED_RESERVATIONS)
