"""When a ClaimReservation that is being deleted may go: nothing of it is left in the claim."""

from __future__ import annotations

from dataclasses import replace

from claimctl.reservation.case import Case
from claimctl.reservation.decision import Decision, SetFinalizer
from claimctl.reservation.references import is_pod
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
    """No reference of its own, and somebody else is there to deallocate the claim."""
    if not case.snapshot.allocated:
        return True
    recorded = stand.held.reservation.status.reserved_for
    if any(case.listed(reference) for reference in (stand.reference, recorded) if reference):
        return False
    if any(other.stand is Stand.HOLD for other in case.stands):
        return True
    references = case.snapshot.references
    return bool(references) and all(map(is_pod, references))
