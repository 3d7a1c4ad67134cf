"""Reads what a timeline is made of from an API server, and writes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from claimctl.commands.timeline import shapes
from claimctl.commands.timeline.history import Chronicle, ObjectChange
from claimctl.commands.timeline.model import Timeline
from claimctl.commands.timeline.present import Seen, timeline
from claimctl.kube.client import Client
from claimctl.kube.errors import Forbidden, Gone, LostEvent, NotFound
from claimctl.live_objects import list_if_served
from claimctl.parallel import in_parallel
from claimctl.reservation.facts.pods import claim_names
from claimctl.wire.meta import reaches
from claimctl.wire.reservations import ClaimReservation
from claimctl.wire.resources import CLAIMRESERVATIONS, RESOURCECLAIMS, Resource
from claimctl.wire.seams import Clock

FIRST = "1"
"""The version before every write. A server that still knows it has the whole history."""
_RESERVATION = CLAIMRESERVATIONS.kind
_WATCH_SECONDS = 3
"""timeoutSeconds of a watch. The server sends the last bookmark two seconds before the end."""


async def read(client: Client, clock: Clock, namespace: str, claim: str) -> Timeline:
    """The timeline of a claim: from the whole history if the server has it, else from objects.
    NotFound if there is no such claim, and the history has none either."""
    history = await _from_history(client, clock, namespace, claim)
    return history or await _from_objects(client, clock, namespace, claim)


async def _from_history(
    client: Client, clock: Clock, namespace: str, claim: str
) -> Timeline | None:
    """None if the server has forgotten older versions, as an API server does after minutes, or if
    it did not send everything in time: a part of the history says wrong things."""
    writes: list[_Write] = []

    async def read_writes(resource: Resource[Any]) -> None:
        writes.extend(await _writes(client, resource, namespace))

    try:
        await in_parallel(read_writes, shapes.RESOURCES, len(shapes.RESOURCES))
    except (Gone, Forbidden, NotFound, LostEvent, _Incomplete):
        return None
    chronicle = Chronicle()
    chronicle.read(_in_order(writes))
    lines = chronicle.timelines(clock.now())
    return next(
        (line for line in lines if (line.namespace, line.claim) == (namespace, claim)), None
    )


@dataclass(frozen=True, slots=True)
class _Write:
    version: int
    object: Any
    deleted: bool


class _Incomplete(Exception):
    """A watch ended before it had reported every write."""


async def _writes(client: Client, resource: Resource[Any], namespace: str) -> list[_Write]:
    """All writes of a kind since the server was made, up to the version that it has now.

    Raises:
        Gone: the server does not know them any more.
        _Incomplete: the server did not report them all in time.
    """
    now = await client.version_now(resource, namespace)
    writes: list[_Write] = []
    stream = client.watch(
        resource, namespace, resource_version=FIRST, timeout_seconds=_WATCH_SECONDS
    )
    async with aclosing(stream) as events:
        async for event in events:
            if event.object is not None:
                version = int(event.object.metadata.resource_version)
                writes.append(_Write(version, event.object, event.type == "DELETED"))
            if reaches(event.resource_version, now):
                return writes
    raise _Incomplete


def _in_order(writes: list[_Write]) -> list[ObjectChange]:
    """The changes in the order of their versions. Times have a resolution of one second. Who wrote
    them is not known: managedFields do not name the writer that removed a field."""
    ordered = sorted(writes, key=lambda write: write.version)
    times: list[datetime | None] = []
    following: datetime | None = None
    for write in reversed(ordered):
        # nothing dates a deletion without grace: it was before the next write, and mostly just so
        following = _time_of(write) or following
        times.append(following)
    changes: list[ObjectChange] = []
    for write, time in zip(ordered, reversed(times), strict=True):
        before = changes[-1].at if changes else write.object.metadata.creation_timestamp
        at = max(known for known in (time, before) if known is not None)
        changes.append(ObjectChange(at, write.object, write.deleted))
    return changes


def _time_of(write: _Write) -> datetime | None:
    """When it was, by what the object says; None for a deletion that the object does not date."""
    meta, pod = write.object.metadata, write.object
    if write.deleted:
        deletion: datetime | None = meta.deletion_timestamp
        return deletion
    # an embedded cluster dates no status
    is_pod = isinstance(pod, shapes.TimedPod)
    times_of_containers = (shapes.started(pod), shapes.finished(pod)) if is_pod else ()
    times = [shapes.last_write(meta), meta.creation_timestamp, *times_of_containers]
    return max((time for time in times if time is not None), default=None)


async def _from_objects(client: Client, clock: Clock, namespace: str, name: str) -> Timeline:
    claim = await client.get(RESOURCECLAIMS, name, namespace)
    pods = (await client.list(shapes.TIMED_PODS, namespace, partial=True)).items
    users = tuple(pod for pod in pods if name in claim_names(pod))
    made = (await list_if_served(client, shapes.TIMED_RESERVATIONS, namespace)).items
    reservations = tuple(held for held in made if held.spec.resource_claim_name == name)
    events, notes = await _events(client, namespace)
    about = tuple(event for event in events if _concerns(event, name, reservations, users))
    return timeline(Seen(clock.now(), claim, users, reservations, about, notes))


async def _events(
    client: Client, namespace: str
) -> tuple[tuple[shapes.TimedEvent, ...], tuple[str, ...]]:
    """The Events of a namespace, and a note if they may not be read."""
    with suppress(Forbidden):
        return (await client.list(shapes.TIMED_EVENTS, namespace, partial=True)).items, ()
    with suppress(Forbidden):
        events = (await client.list(shapes.CORE_EVENTS, namespace, partial=True)).items
        return tuple(event.as_event() for event in events), ()
    return (), (f"The Events of namespace {namespace} may not be read by this user.",)


def _concerns(
    event: shapes.TimedEvent,
    claim: str,
    reservations: Iterable[ClaimReservation],
    pods: Iterable[shapes.TimedPod],
) -> bool:
    """Whether an Event is about the claim, a reservation or workload of it, or warns of a pod. A
    workload has Events about each of its claims."""
    about = (event.regarding.kind, event.regarding.name)
    if about == ("ResourceClaim", claim):
        return True
    by = event.related.name if event.related and event.related.kind == _RESERVATION else None
    for reservation in reservations:
        ref, name = reservation.spec.workload_ref, reservation.metadata.name
        if about == (_RESERVATION, name) or (about == (ref.kind, ref.name) and by in (None, name)):
            return True
    return event.type == "Warning" and about in {("Pod", pod.metadata.name) for pod in pods}
