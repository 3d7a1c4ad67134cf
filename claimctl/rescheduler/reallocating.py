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
    for attempt in range(_TRIES):
        try:
            found = await client.get(CLAIMRESERVATIONS, wanted.reservation, wanted.namespace)
            if found.metadata.annotation(REALLOCATE_ANNOTATION) == wanted.claim_uid:
                return []
            await client.merge_patch(
                CLAIMRESERVATIONS,
                wanted.reservation,
                {"metadata": {"annotations": {REALLOCATE_ANNOTATION: wanted.claim_uid}}},
                wanted.namespace,
                resource_version=found.metadata.resource_version,
            )
        except NotFound:
            name = f"{wanted.namespace}/{wanted.reservation}"
            return [f"the ClaimReservation {name} is gone, so nothing holds {wanted.claim}"]
        except Conflict:
            if attempt == _TRIES - 1:
                raise
        else:
            return []
    return []
