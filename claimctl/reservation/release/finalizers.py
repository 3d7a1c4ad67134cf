"""When a ClaimReservation that is being deleted may go: nothing of it is left in the claim."""

from __future__ import annotations

from dataclasses import replace

from claimctl.reservation.context import Case
from claimctl.reservation.decision import Decision, SetFinalizer
from claimctl.reservation.release.blockers import lends_grace
from claimctl.reservation.reserved_for.references import is_pod
from claimctl.reservation.retention import Stand, Standing
from claimctl.reservation.snapshot import Held, Snapshot
from claimctl.reservation.status.writes import sooner
from claimctl.wire.reservations import FINALIZER


def let_reservations_go(case: Case, decision: Decision) -> Decision:
    """Take the finalizer off the first deleted reservation of which nothing is left."""
    if decision.write is not None or decision.needs:
        return decision
    for stand in case.stands:
        meta = stand.held.reservation.metadata
        if not meta.deleting or FINALIZER not in meta.finalizers or not _nothing_left(case, stand):
            continue
        if (left := _in_doubt(case, stand)) <= 0:
            return replace(decision, write=SetFinalizer(stand.held.reservation, present=False))
        decision = replace(decision, after=sooner(decision.after, left))
    return decision


def _in_doubt(case: Case, stand: Standing) -> float:
    lent = lends_grace(case.snapshot, stand.held)
    left = lent.after or 0.0 if lent else 0.0
    if any(one.stand is Stand.HOLD for one in case.stands):
        return left
    return max(left, in_doubt(case.snapshot, stand.held))


def in_doubt(snapshot: Snapshot, held: Held) -> float:
    """Seconds for which another controller may still be adding the reference.

    It may act on a view from before the deletion, also on a claim that is only allocated now, and
    no version stands in its way: this reservation has written nothing to the claim. Nobody would
    answer for that hold.
    """
    return snapshot.rules.settle_seconds - held.withdrawn_age


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
    if any(map(case.is_ours, case.snapshot.references)):
        return False
    return case.left_to_pods or not all(map(is_pod, case.snapshot.references))


def _alone_in_need_of(stand: Standing, holders: list[Standing]) -> set[str]:
    """UIDs of the reservation's references that no other reservation goes on holding."""
    recorded = stand.held.reservation.status.reserved_for
    own = {reference.uid for reference in (stand.reference, recorded) if reference}
    return own - {holder.reference.uid for holder in holders if holder.reference}
