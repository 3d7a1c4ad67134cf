"""Remove the finalizer of a deleted ClaimReservation once it has nothing in the claim any more."""

from __future__ import annotations

from msgspec.structs import replace

from claimctl.reservation.assessment.assessment import Assessment
from claimctl.reservation.assessment.retention import Action, RetentionDecision
from claimctl.reservation.facts.decision import SetFinalizer
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.reservation.users.withdrawal import left_to_group
from claimctl.wire.reservations import FINALIZER


def remove_reservation_finalizers(found: Assessment) -> Assessment:
    """Remove the finalizer of the first deleted reservation that may go."""
    if found.decided:
        return found
    for retention in found.retentions:
        meta = retention.held.reservation.metadata
        if not meta.deleting or FINALIZER not in meta.finalizers:
            continue
        if not _finished_with_claim(found, retention):
            continue
        if (left := _time_left(found, retention)) <= 0:
            return replace(found, write=SetFinalizer(retention.held.reservation, present=False))
        found = found.sooner(left)
    return found


def _time_left(found: Assessment, retention: RetentionDecision) -> float:
    """Seconds for which the reservation has to stay although it has nothing in the claim."""
    lent = retention.longer_grace.after or 0.0 if retention.longer_grace else 0.0
    return lent if found.held else max(lent, in_doubt(found.snapshot, retention.held))


def in_doubt(snapshot: Snapshot, held: Held) -> float:
    """Seconds for which another controller may still add the reservation's hold.

    Its cache may not show the deletion yet, and its write cannot conflict, because claimctl has not
    written the claim for this reservation. Such a hold would be an orphan.
    """
    return snapshot.rules.settle_seconds - held.withdrawn_age


def _finished_with_claim(found: Assessment, retention: RetentionDecision) -> bool:
    """Whether the list has no reference of this reservation, and its work on the claim is done.

    That is so if another reservation holds the claim, if this one never held it, or if another
    component will deallocate it.
    """
    if not found.snapshot.allocated:
        return not found.finalizer_left
    holders = [other for other in found.retentions if other.action is Action.HOLD]
    listed = found.snapshot.listed_uids
    if listed & _own_references(retention, holders):
        return False
    if retention.action is Action.NONE or holders:
        return True
    left = left_to_group(found.snapshot)
    references = found.snapshot.references
    if any(found.is_ours(each) and not (left and each.uid in found.groups) for each in references):
        return False
    return left or found.left_to_pods or bool(found.snapshot.no_pods)


def _own_references(retention: RetentionDecision, holders: list[RetentionDecision]) -> set[str]:
    """UIDs of the reservation's references that no other reservation holds."""
    recorded = retention.held.reservation.status.reserved_for
    own = {reference.uid for reference in (retention.reference, recorded) if reference}
    return own - {holder.reference.uid for holder in holders if holder.reference}
