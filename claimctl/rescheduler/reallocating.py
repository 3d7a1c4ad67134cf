"""Asks the controller to give up a held claim. ``reschedule`` itself never writes a claim."""

from __future__ import annotations

from claimctl.kube.client import Client
from claimctl.kube.errors import Conflict, NotFound
from claimctl.rescheduling.plan import Reallocation
from claimctl.wire.reservations import REALLOCATE_ANNOTATION
from claimctl.wire.resources import CLAIMRESERVATIONS

_TRIES = 10


async def ask(client: Client, wanted: Reallocation) -> list[str]:
    """Annotate the ClaimReservation with the UID of the claim to give up.

    Returns:
        What a reader of the result should know: nothing, or that the reservation is gone.
    """
    if await _annotate(client, wanted, asked=True):
        return []
    name = f"{wanted.namespace}/{wanted.reservation}"
    return [f"the ClaimReservation {name} is gone, so nothing holds {wanted.claim}"]


async def withdraw(client: Client, wanted: Reallocation) -> None:
    """Remove the request, if the controller has not done so."""
    await _annotate(client, wanted, asked=False)


async def _annotate(client: Client, wanted: Reallocation, *, asked: bool) -> bool:
    """Add or remove the annotation. A request for another claim stays. False: it is gone."""
    for attempt in range(_TRIES):
        try:
            found = await client.get(CLAIMRESERVATIONS, wanted.reservation, wanted.namespace)
            if (found.metadata.annotation(REALLOCATE_ANNOTATION) == wanted.claim_uid) is asked:
                return True
            value = wanted.claim_uid if asked else None
            await client.merge_patch(
                CLAIMRESERVATIONS,
                wanted.reservation,
                {"metadata": {"annotations": {REALLOCATE_ANNOTATION: value}}},
                wanted.namespace,
                resource_version=found.metadata.resource_version,
            )
        except NotFound:
            return False
        except Conflict:
            if attempt == _TRIES - 1:
                raise
        else:
            return True
    return True
