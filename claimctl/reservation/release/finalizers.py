"""When a ClaimReservation that is being deleted may go: nothing of it is left in the claim."""

from __future__ import annotations

from dataclasses import replace

from claimctl.reservation.context import ClaimContext
from claimctl.reservation.decision import Decision, SetFinalizer
from claimctl.reservation.release.blockers import lends_grace
from claimctl.reservation.reserved_for.references import is_pod
from claimctl.reservation.retention import Action, RetentionDecision
from claimctl.reservation.snapshot import Held, Snapshot
from claimctl.reservation.status.writes import sooner
from claimctl.wire.reservations import FINALIZER


def let_reservations_go(context: ClaimContext, decision: Decision) -> Decision:
    """Take the finalizer off the first deleted reservation of which nothing is left."""
    if decision.write is not None or decision.needs:
        return decision
    for retention in context.retentions:
        meta = retention.held.reservation.metadata
        if (
            not meta.deleting
            or FINALIZER not in meta.finalizers
            or not _nothing_left(context, retention)
        ):
            continue
        if (left := _in_doubt(context, retention)) <= 0:
            return replace(decision, write=SetFinalizer(retention.held.reservation, present=False))
        decision = replace(decision, after=sooner(decision.after, left))
    return decision


def _in_doubt(context: ClaimContext, retention: RetentionDecision) -> float:
    lent = lends_grace(context.snapshot, retention.held)
    left = lent.after or 0.0 if lent else 0.0
    if any(one.action is Action.HOLD for one in context.retentions):
        return left
    return max(left, in_doubt(context.snapshot, retention.held))


def in_doubt(snapshot: Snapshot, held: Held) -> float:
    """Seconds for which another controller may still be adding the reference.

    It may act on a view from before the deletion, also on a claim that is only allocated now, and
    no version stands in its way: this reservation has written nothing to the claim. Nobody would
    answer for that hold.
    """
    return snapshot.rules.settle_seconds - held.withdrawn_age


def _nothing_left(context: ClaimContext, retention: RetentionDecision) -> bool:
    """No reference of its own, and somebody else is there to deallocate the claim.

    One that could not hold anything has nothing to deallocate.
    """
    if not context.snapshot.allocated:
        return True
    holders = [other for other in context.retentions if other.action is Action.HOLD]
    listed = {reference.uid for reference in context.snapshot.references}
    if listed & _alone_in_need_of(retention, holders):
        return False
    if retention.action is Action.NONE or holders:
        return True
    if any(map(context.is_ours, context.snapshot.references)):
        return False
    return context.left_to_pods or not all(map(is_pod, context.snapshot.references))


def _alone_in_need_of(retention: RetentionDecision, holders: list[RetentionDecision]) -> set[str]:
    """UIDs of the reservation's references that no other reservation goes on holding."""
    recorded = retention.held.reservation.status.reserved_for
    own = {reference.uid for reference in (retention.reference, recorded) if reference}
    return own - {holder.reference.uid for holder in holders if holder.reference}
