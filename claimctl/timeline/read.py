"""Reads what a timeline is made of from an API server, and writes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any

from claimctl.kube.client import Client
from claimctl.kube.errors import Forbidden, Gone, LostEvent, NotFound
from claimctl.reservation.facts.pods import claim_names
from claimctl.timeline.history import Change, Chronicle
from claimctl.timeline.model import Timeline
from claimctl.timeline.present import Seen, timeline
from claimctl.timeline.shapes import (
    CORE_EVENTS,
    RESOURCES,
    TIMED_EVENTS,
    TIMED_PODS,
    TIMED_RESERVATIONS,
    TimedEvent,
    TimedPod,
    last_write,
)
from claimctl.wire.meta import ManagedObjectMeta
from claimctl.wire.reservations import ClaimReservation
from claimctl.wire.resources import RESOURCECLAIMS, Resource
from claimctl.wire.seams import Clock

FIRST = "1"
"""The version before every write. A server that still knows it has the whole history."""
_WATCH_SECONDS = 1


async def read(client: Client, clock: Clock, namespace: str, claim: str) -> Timeline:
    """The timeline of a claim: from the whole history if the server has it, else from objects.

    Raises:
        NotFound: there is no such claim, and the history has none either.
        KubeError: claims or pods cannot be read.
    """
    found = await _from_history(client, clock, namespace, claim)
    return found or await _from_objects(client, clock, namespace, claim)


async def _from_history(
    client: Client, clock: Clock, namespace: str, claim: str
) -> Timeline | None:
    """None if the server has forgotten older versions, as an API server does after minutes."""
    reads = (_writes(client, each, namespace) for each in RESOURCES)
    try:
        found = await asyncio.gather(*reads)
    except (Gone, Forbidden, NotFound, LostEvent):
        return None
    chronicle = Chronicle()
    chronicle.read(_in_order([one for writes in found for one in writes]))
    for each in chronicle.timelines(clock.now()):
        if (each.namespace, each.claim) == (namespace, claim):
            return each
    return None


@dataclass(frozen=True, slots=True)
class _Write:
    version: int
    object: Any
    deleted: bool


async def _writes(client: Client, resource: Resource[Any], namespace: str) -> list[_Write]:
    """All writes of a kind since the server was made.

    Raises:
        Gone: the server does not know them any more.
    """
    found = []
    stream = client.watch(
        resource, namespace, resource_version=FIRST, timeout_seconds=_WATCH_SECONDS
    )
    async with aclosing(stream) as events:
        async for event in events:
            if event.object is not None:
                version = int(event.object.metadata.resource_version)
                found.append(_Write(version, event.object, event.type == "DELETED"))
    return found


def _in_order(writes: list[_Write]) -> list[Change]:
    """The changes in the order of their versions. Times have a resolution of one second.

    Who wrote them is not known: managedFields do not name the writer that removed a field.
    """
    changes: list[Change] = []
    for each in sorted(writes, key=lambda write: write.version):
        meta: ManagedObjectMeta = each.object.metadata
        times = [
            last_write(meta),
            meta.creation_timestamp,
            meta.deletion_timestamp if each.deleted else None,
            changes[-1].at if changes else None,
        ]
        at = max(one for one in times if one is not None)
        changes.append(Change(at, each.object, each.deleted))
    return changes


async def _from_objects(client: Client, clock: Clock, namespace: str, name: str) -> Timeline:
    claim = await client.get(RESOURCECLAIMS, name, namespace)
    pods = (await client.list(TIMED_PODS, namespace, partial=True)).items
    users = tuple(pod for pod in pods if name in claim_names(pod))
    made = (await client.list_if_served(TIMED_RESERVATIONS, namespace)).items
    reservations = tuple(one for one in made if one.spec.resource_claim_name == name)
    events, notes = await _events(client, namespace)
    about = tuple(each for each in events if _concerns(each, name, reservations, users))
    return timeline(Seen(clock.now(), claim, users, reservations, about, notes))


async def _events(client: Client, namespace: str) -> tuple[tuple[TimedEvent, ...], tuple[str, ...]]:
    """The Events of a namespace, and a note if they may not be read."""
    with suppress(Forbidden):
        return (await client.list(TIMED_EVENTS, namespace, partial=True)).items, ()
    with suppress(Forbidden):
        found = (await client.list(CORE_EVENTS, namespace, partial=True)).items
        return tuple(each.as_event() for each in found), ()
    return (), (f"The Events of namespace {namespace} may not be read by this user.",)


def _concerns(
    event: TimedEvent,
    claim: str,
    reservations: Iterable[ClaimReservation],
    pods: Iterable[TimedPod],
) -> bool:
    """Whether an Event is about the claim, a reservation or workload of it, or warns of a pod."""
    about = (event.regarding.kind, event.regarding.name)
    if about == ("ResourceClaim", claim):
        return True
    for one in reservations:
        ref = one.spec.workload_ref
        if about in (("ClaimReservation", one.metadata.name), (ref.kind, ref.name)):
            return True
    return event.type == "Warning" and about in {("Pod", pod.metadata.name) for pod in pods}
