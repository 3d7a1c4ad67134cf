"""When a ClaimReservation that is being deleted may go: nothing of it is left in the claim."""

from __future__ import annotations

from dataclasses import replace

from claimctl.reservation.case import Case
from claimctl.reservation.decision import Decision, SetFinalizer
from claimctl.reservation.standing import Stand, Standing
from claimctl.wire.reservations import FINALIZER


def let_reservations_go(case: Case, decision: Decision) -> Decision:
    """Take the finalizer off the first deleted reservation of which nothing is left."""
    if decision.write is not None or decision.needs:
        return decision
    for stand in case.stands:
        meta = stand.held.reservation.metadata
        if meta.deleting and FINALIZER in meta.finalizers and _nothing_left(case, stand):
            return replace(decision, write=SetFinalizer(stand.held.reservation, present=False))
    return decision


def _nothing_left(case: Case, stand: Standing) -> bool:
    """No reference of its own, and somebody else is there to deallocate the claim.

    One that could not hold anything has nothing to deallocate.
    """
    if not case.snapshot.allocated:
        return True
    holders = [other for other in case.stands if other.stand is Stand.HOLD]
    listed = {reference.uid for reference in case.snapshot.references}
    if listed & _alone_in_need_of(stand, holders):
        return False
    if stand.stand is Stand.NONE or holders:
        return True
    return bool(listed) and not any(map(case.is_ours, case.snapshot.references))


def _alone_in_need_of(stand: Standing, holders: list[Standing]) -> set[str]:
    """UIDs of the reservation's references that no other reservation goes on holding."""
    recorded = stand.held.reservation.status.reserved_for
    own = {reference.uid for reference in (stand.reference, recorded) if reference}
    return own - {holder.reference.uid for holder in holders if holder.reference}
