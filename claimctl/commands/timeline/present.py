"""A timeline from what the objects and Events say now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from claimctl.commands.timeline.history import devices, told
from claimctl.commands.timeline.model import RUNNING, WAITING, Lane, Mark, Source, Span, Timeline
from claimctl.commands.timeline.shapes import TimedEvent, TimedPod, event_time, finished, started
from claimctl.reservation.facts.pods import TERMINAL_PHASES
from claimctl.reservation.facts.reasons import ConditionType
from claimctl.reservation.facts.references import is_workload
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.meta import find_condition
from claimctl.wire.reservations import ClaimReservation

_SAME = timedelta(seconds=2)
"""A condition and an Event of the same reason within this time are the same news."""
_GAPS = "Pods that are gone, and earlier allocations, are known only as far as Events tell of them."


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything about one claim, read at ``now``."""

    now: datetime
    claim: ResourceClaim
    pods: Sequence[TimedPod] = ()
    reservations: Sequence[ClaimReservation] = ()
    events: Sequence[TimedEvent] = ()
    """The Events about the claim, its reservations and its workloads; Warnings about its pods."""
    notes: tuple[str, ...] = ()


def timeline(seen: Seen) -> Timeline:
    """What the objects and Events say about the claim, up to now."""
    spans = [*_devices(seen), *_holders(seen), *_pods(seen.pods)]
    marks = sorted(_marks(seen), key=lambda each: each.at)
    known = [*(one.start for one in spans), *(one.at for one in marks), seen.now]
    meta = seen.claim.metadata
    return Timeline(
        meta.namespace,
        meta.name,
        min(known),
        seen.now,
        tuple(sorted(spans, key=lambda each: (each.start, each.lane, each.name))),
        tuple(marks),
        Source.OBJECTS,
        (_GAPS, *seen.notes),
    )


def _devices(seen: Seen) -> Iterator[Span]:
    since = _allocated(seen)
    start = since or seen.claim.metadata.creation_timestamp or seen.now
    for name in devices(seen.claim):
        yield Span(Lane.DEVICE, name, start, started_before=since is None)


def _allocated(seen: Seen) -> datetime | None:
    """When the claim got its devices: by the allocation, else by a reservation's status."""
    allocation = seen.claim.status.allocation
    if allocation is None:
        return None
    times = [one.status.allocation_time for one in seen.reservations]
    known = [each for each in times if each is not None]
    return allocation.allocation_timestamp or min(known, default=None)


def _holders(seen: Seen) -> Iterator[Span]:
    allocated = _allocated(seen) or seen.claim.metadata.creation_timestamp or seen.now
    for each in filter(is_workload, seen.claim.status.reserved_for):
        since = _reserved(seen.reservations, each)
        name = f"{each.resource}/{each.name}"
        yield Span(Lane.HOLDER, name, since or allocated, started_before=since is None)


def _reserved(made: Iterable[ClaimReservation], holder: Reference) -> datetime | None:
    for one in made:
        if one.status.reserved_for is not None and one.status.reserved_for.uid == holder.uid:
            found = find_condition(one.status.conditions, ConditionType.RESERVED)
            if found is not None and found.status == "True":
                return found.last_transition_time
    return None


def _pods(pods: Iterable[TimedPod]) -> Iterator[Span]:
    for pod in pods:
        name, created = pod.metadata.name, pod.metadata.creation_timestamp
        began, done = started(pod), pod.status.phase in TERMINAL_PHASES
        end = finished(pod) if done else None
        if created is not None and began != created:
            yield Span(Lane.POD, name, created, began or end, WAITING)
        if began is not None:
            yield Span(Lane.POD, name, began, (end or began) if done else None, RUNNING)


def _marks(seen: Seen) -> Iterator[Mark]:
    meta = seen.claim.metadata
    if meta.creation_timestamp is not None:
        yield Mark(meta.creation_timestamp, f"ResourceClaim/{meta.name}", "Created", "created")
    events = [mark for each in seen.events if (mark := _event(each)) is not None]
    yield from dict.fromkeys(events)
    for one in seen.reservations:
        for mark in _conditions(one):
            if not any(_same(mark, each) for each in events):
                yield mark
        yield from _times(one)


def _event(event: TimedEvent) -> Mark | None:
    at = event_time(event)
    if at is None:
        return None
    about = f"{event.regarding.kind}/{event.regarding.name}"
    more = f" ({event.series.count} times)" if event.series and event.series.count > 1 else ""
    return Mark(at, about, event.reason, f"{event.note}{more}", event.type == "Warning")


def _conditions(made: ClaimReservation) -> Iterator[Mark]:
    about = f"ClaimReservation/{made.metadata.name}"
    for one in made.status.conditions:
        if one.type != ConditionType.READY and one.last_transition_time is not None:
            text = told(one.type, one.status, one.message)
            yield Mark(one.last_transition_time, about, one.reason, text)


def _times(made: ClaimReservation) -> Iterator[Mark]:
    about, status = f"ClaimReservation/{made.metadata.name}", made.status
    if status.idle_since is not None:
        yield Mark(status.idle_since, about, "IdleSince", "the workload wants no pods from here on")
    if status.release is not None and status.release.since is not None:
        text = f"release ({status.release.reason}): {status.release.step}"
        yield Mark(status.release.since, about, f"Release{status.release.step}", text)


def _same(mark: Mark, event: Mark) -> bool:
    return mark.reason == event.reason and abs(mark.at - event.at) <= _SAME
