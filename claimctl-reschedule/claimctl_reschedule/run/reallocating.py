"""Asks the controller to give up a held claim. ``reschedule`` itself never writes a claim.

A request says for which taint it was made. So a successor finds what a killed process left: a
request without its taint is withdrawn.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any

from claimctl.kube.client import Client
from claimctl.live_objects import Changed, change_object, list_if_served
from claimctl.wire.reservations import (
    REALLOCATE_ANNOTATION,
    REALLOCATE_FOR_ANNOTATION,
    ClaimReservation,
)
from claimctl.wire.resources import CLAIMRESERVATIONS
from claimctl_reschedule.plan.plan import Reallocation
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.run.neighbors import read_controller

FOR_AVOIDANCE = "claimctl-avoidance"
"""In place of a taint's value: the pods avoid the node without a taint."""
_Annotations = dict[str, str | None]


async def against_reallocations(
    client: Client, wanted: Collection[Reallocation], namespace: str, now: datetime
) -> Obstacle | None:
    """Why the controller that the plan counts on would not give these claims up. It has its Lease
    in ``namespace``."""
    if not wanted:
        return None
    controller = await read_controller(client, namespace, now)
    if controller.since is None:
        return Obstacle(Ground.CONTROLLER_AWAY, controller.detail)
    if any(asked.leader_since != controller.since for asked in wanted):
        return Obstacle(Ground.CHANGED, "another controller leads since the plan was made")
    return None


async def ask(client: Client, wanted: Reallocation, taint: str) -> list[str]:
    """Annotate the ClaimReservation with the UID of the claim to give up, for the taint of this
    value; what a reader of the result should know: nothing, or that the reservation is gone."""

    def change(reservation: ClaimReservation) -> _Annotations:
        if reservation.metadata.annotation(REALLOCATE_ANNOTATION) == wanted.claim_uid:
            return {}
        return {REALLOCATE_ANNOTATION: wanted.claim_uid, REALLOCATE_FOR_ANNOTATION: taint}

    if await _annotate(client, wanted.reservation, wanted.namespace, change):
        return []
    name = f"{wanted.namespace}/{wanted.reservation}"
    return [f"the ClaimReservation {name} is gone, so nothing holds {wanted.claim}"]


async def withdraw(client: Client, reservation: str, namespace: str, taint: str) -> None:
    """Remove the request that was made for a taint. One that a person made stays."""

    def change(present: ClaimReservation) -> _Annotations:
        if present.metadata.annotation(REALLOCATE_FOR_ANNOTATION) != taint:
            return {}
        return {REALLOCATE_ANNOTATION: None, REALLOCATE_FOR_ANNOTATION: None}

    await _annotate(client, reservation, namespace, change)


async def waits(client: Client, wanted: Reallocation) -> bool:
    """Whether the controller has not yet given the claim up."""
    present = await client.find(CLAIMRESERVATIONS, wanted.reservation, wanted.namespace)
    asked = present and present.metadata.annotation(REALLOCATE_ANNOTATION)
    return asked == wanted.claim_uid


async def withdraw_stale(client: Client, taints: Collection[str]) -> None:
    """Remove the requests of earlier processes, whose taints have other values than these."""
    stale = [
        (item.metadata, value)
        for item in (await list_if_served(client, CLAIMRESERVATIONS)).items
        if (value := item.metadata.annotation(REALLOCATE_FOR_ANNOTATION)) is not None
        and value not in taints
    ]
    for meta, value in stale:
        await withdraw(client, meta.name, meta.namespace, value)


async def _annotate(
    client: Client, name: str, namespace: str, change: Callable[[ClaimReservation], _Annotations]
) -> bool:
    """Change annotations under the object's version. False: it is gone."""

    def patch(reservation: ClaimReservation) -> dict[str, Any]:
        annotations = change(reservation)
        return {"metadata": {"annotations": annotations}} if annotations else {}

    done = await change_object(client, CLAIMRESERVATIONS, name, patch, namespace)
    return done is not Changed.GONE
