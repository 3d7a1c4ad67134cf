"""Which entry of a claim's list is the one of a ClaimReservation.

The status of the reservation records it. Until the controller has written the status, the list
shows it.
"""

from __future__ import annotations

from claimctl.reservation.facts.references import uids_written_by
from claimctl.reservation.kinds.shipped import WORKLOAD_RESOURCES
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.reservations import ClaimReservation


def recorded_reference(
    claim: ResourceClaim, reservation: ClaimReservation, resource: str = ""
) -> Reference | None:
    """The reference that claimctl listed in this claim for the reservation, if it did.

    The status of the reservation records the reference, and the UID of the claim. The controller
    writes the status a moment after the list. Until then ``shown_reference`` tells: the reservation
    has to name the workload, and managedFields have to name claimctl as the writer of the entry.

    Args:
        resource: the resource name of the workload's kind; '' for a kind with a shipped rule.
    """
    status = reservation.status
    if status.reserved_for is not None and status.claim_uid == claim.metadata.uid:
        return status.reserved_for
    return shown_reference(claim, reservation, resource)


def shown_reference(
    claim: ResourceClaim, reservation: ClaimReservation, resource: str = ""
) -> Reference | None:
    """The listed reference that claimctl wrote for the reservation, by managedFields or spec.

    Args:
        resource: the resource name of the workload's kind; '' for a kind with a shipped rule.
    """
    ref, created_for = reservation.spec.workload_ref, claim.spec.reserved_for
    resource = resource or WORKLOAD_RESOURCES.get((ref.api_group, ref.kind), "")
    if not resource:
        return None
    named = [
        listed
        for listed in claim.status.reserved_for
        if listed.key == (ref.api_group, resource, ref.name)
    ]
    # a claim may have many reservations: its managedFields are decoded only where they can decide
    written = uids_written_by(claim) if named else frozenset()
    return next(
        (
            listed
            for listed in named
            if listed.uid in written or (created_for is not None and listed.uid == created_for.uid)
        ),
        None,
    )
