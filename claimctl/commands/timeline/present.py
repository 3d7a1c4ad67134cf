"""A timeline from what the objects and Events say now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from claimctl.commands.timeline.history import condition_line, devices, release_line
from claimctl.commands.timeline.model import (
    GONE,
    RUNNING,
    UNKNOWN,
    WAITING,
    Lane,
    Mark,
    Source,
    Timeline,
    TimelineSpan,
)
from claimctl.commands.timeline.shapes import TimedEvent, TimedPod, event_time, finished, started
from claimctl.reservation.facts.pods import TERMINAL_PHASES
from claimctl.reservation.facts.reasons import ConditionType
from claimctl.reservation.facts.references import is_workload
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.meta import find_condition
from claimctl.wire.reservations import ClaimReservation

_SAME = timedelta(seconds=2)
"""A condition and an Event of the same reason within this time are the same news."""
_GAPS = (
    "Not known (?, dotted): pods that are gone, and earlier allocations, but for what Events tell."
)


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
    known, meta = [*_uses(seen), *_pods(seen.pods)], seen.claim.metadata
    marks = tuple(sorted(_marks(seen), key=lambda mark: mark.at))
    begin = min([*(span.start for span in known), *(mark.at for mark in marks), seen.now])
    spans = [*_unknown(known, begin), *known]
    spans.sort(key=lambda span: (span.start, span.lane, span.name))
    notes = (_GAPS, *seen.notes)
    life = (meta.namespace, meta.name, begin, seen.now)
    return Timeline(*life, tuple(spans), marks, Source.OBJECTS, notes)


def _unknown(spans: Iterable[TimelineSpan], begin: datetime) -> Iterator[TimelineSpan]:
    """What objects do not tell: who had the devices earlier, and pods that are gone."""
    for span in spans:
        if span.lane is not Lane.POD and span.start > begin:
            yield TimelineSpan(span.lane, span.name, begin, span.start, UNKNOWN)
    yield TimelineSpan(Lane.POD, GONE, begin, state=UNKNOWN)


def _uses(seen: Seen) -> Iterator[TimelineSpan]:
    """The devices of the claim, and its holders."""
    allocated = _allocation_time(seen)
    start = allocated or seen.claim.metadata.creation_timestamp or seen.now
    for name in devices(seen.claim):
        yield TimelineSpan(Lane.DEVICE, name, start, started_before=allocated is None)
    for entry in filter(is_workload, seen.claim.status.reserved_for):
        since = _hold_time(seen.reservations, entry)
        name = f"{entry.resource}/{entry.name}"
        yield TimelineSpan(Lane.HOLDER, name, since or start, started_before=since is None)


def _allocation_time(seen: Seen) -> datetime | None:
    """When the claim got its devices: by the allocation, else by a reservation's status."""
    allocation = seen.claim.status.allocation
    if allocation is None:
        return None
    times = [reservation.status.allocation_time for reservation in seen.reservations]
    known = [time for time in times if time is not None]
    return allocation.allocation_timestamp or min(known, default=None)


def _hold_time(made: Iterable[ClaimReservation], holder: Reference) -> datetime | None:
    for reservation in made:
        held_for = reservation.status.reserved_for
        if held_for is not None and held_for.uid == holder.uid:
            condition = find_condition(reservation.status.conditions, ConditionType.RESERVED)
            if condition is not None and condition.status == "True":
                return condition.last_transition_time
    return None


def _pods(pods: Iterable[TimedPod]) -> Iterator[TimelineSpan]:
    for pod in pods:
        name, created = pod.metadata.name, pod.metadata.creation_timestamp
        began, done = started(pod), pod.status.phase in TERMINAL_PHASES
        end = finished(pod) if done else None
        if created is not None and began != created:
            yield TimelineSpan(Lane.POD, name, created, began or end, WAITING)
        if began is not None:
            yield TimelineSpan(Lane.POD, name, began, (end or began) if done else None, RUNNING)


def _marks(seen: Seen) -> Iterator[Mark]:
    meta = seen.claim.metadata
    if meta.creation_timestamp is not None:
        yield Mark(meta.creation_timestamp, f"ResourceClaim/{meta.name}", "Created", "created")
    events = [mark for event in seen.events if (mark := _event(event)) is not None]
    yield from dict.fromkeys(events)
    for reservation in seen.reservations:
        for mark in _conditions(reservation):
            # leave out a condition that an Event reports, too
            if not any(
                mark.reason == event.reason and abs(mark.at - event.at) <= _SAME for event in events
            ):
                yield mark
        yield from _times(reservation)


def _event(event: TimedEvent) -> Mark | None:
    at = event_time(event)
    if at is None:
        return None
    about = f"{event.regarding.kind}/{event.regarding.name}"
    more = f" ({event.series.count} times)" if event.series and event.series.count > 1 else ""
    return Mark(at, about, event.reason, f"{event.note}{more}", event.type == "Warning")


def _conditions(made: ClaimReservation) -> Iterator[Mark]:
    about = f"ClaimReservation/{made.metadata.name}"
    for condition in made.status.conditions:
        if condition.type != ConditionType.READY and condition.last_transition_time is not None:
            text = condition_line(condition.type, condition.status, condition.message)
            yield Mark(condition.last_transition_time, about, condition.reason, text)


def _times(made: ClaimReservation) -> Iterator[Mark]:
    about, status = f"ClaimReservation/{made.metadata.name}", made.status
    if status.idle_since is not None:
        yield Mark(status.idle_since, about, "IdleSince", "the workload wants no pods from here on")
    if status.release is not None and status.release.since is not None:
        text = release_line(status.release.step, status.release.reason)
        yield Mark(status.release.since, about, f"Release{status.release.step}", text)
