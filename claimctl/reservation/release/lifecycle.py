"""Create claims that are missing, tidy those without allocation, end deleted ClaimReservations."""

from __future__ import annotations

from claimctl.reservation.assessment.assess import Assessment
from claimctl.reservation.assessment.retention import Action, RetentionDecision
from claimctl.reservation.facts.decision import (
    ClearReleaseRequest,
    CreateClaim,
    Decision,
    DeleteClaim,
    SetFinalizer,
    Write,
)
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import is_tombstone
from claimctl.reservation.facts.snapshot import Held
from claimctl.wire.reservations import FINALIZER


def handle_absent(facts: Assessment, decision: Decision) -> None:
    """Handle a claim that does not exist: create it, or end the deleted reservations.

    Those end after the settle time. Until then, another controller that has not seen the deletion
    may create the claim for them.
    """
    snapshot = facts.snapshot
    for held in snapshot.reservations:
        meta, spec = held.reservation.metadata, held.reservation.spec
        if meta.deleting and FINALIZER in meta.finalizers:
            left = snapshot.rules.settle_seconds - held.withdrawn_age
            if left <= 0:
                decision.write = SetFinalizer(held.reservation, present=False)
                return
            decision.waits.append(left)
        from_template = spec.resource_claim_template_name and not snapshot.no_template
        if from_template and held.resource and _is_wanted(held):
            created_for = snapshot.dialect.created_for(held.reference)
            decision.write = CreateClaim(held.reservation, created_for)
            return


def _is_wanted(held: Held) -> bool:
    """Whether the reservation stays, for a workload that exists and has not ended."""
    gone = held.reservation.metadata.deleting or held.workload.ended
    return held.workload.exists and not gone


def tidy(facts: Assessment) -> Write | None:
    """The write that a claim without allocation still needs, or None."""
    if facts.snapshot.unreadable:
        return None
    meta, created_for = facts.claim.metadata, facts.claim.spec.reserved_for
    maker = meta.controller()
    for retention in facts.retentions:
        held = retention.held
        if retention.reason is Reason.RELEASE_REQUESTED:
            return ClearReleaseRequest(held.reservation)
        made = maker is not None and maker.uid == held.reservation.metadata.uid
        unused = not meta.deleting and not facts.snapshot.consumers.bound
        # claimctl may have created the claim for an earlier incarnation of the workload
        outdated = created_for is not None and created_for.uid != held.workload.uid
        if made and unused and outdated and _is_wanted(held):
            return DeleteClaim(meta.uid, meta.resource_version)
    return None


def remove_reservation_finalizers(facts: Assessment, decision: Decision) -> None:
    """Remove the finalizer of the first deleted reservation that may go."""
    for retention in facts.retentions:
        meta = retention.held.reservation.metadata
        if not meta.deleting or FINALIZER not in meta.finalizers:
            continue
        if not is_finished_with_claim(facts, retention):
            continue
        # it stays while its grace, the longest of all, still counts, and while another controller
        # may still add its hold
        left = retention.longer_grace.after or 0.0 if retention.longer_grace else 0.0
        if not facts.held:
            settle = facts.snapshot.rules.settle_seconds
            left = max(left, settle - retention.held.withdrawn_age)
        if left <= 0:
            decision.write = SetFinalizer(retention.held.reservation, present=False)
            return
        decision.waits.append(left)


def is_finished_with_claim(facts: Assessment, retention: RetentionDecision) -> bool:
    """Whether the list has no reference of this reservation, and its work on the claim is done:
    another one holds the claim, this one never did, or another component will deallocate it."""
    snapshot = facts.snapshot
    if not snapshot.allocated:
        return not facts.finalizer_left
    if retention.action is Action.HOLD:
        return False
    recorded = retention.held.reservation.status.reserved_for
    own = {reference.uid for reference in (retention.reference, recorded) if reference}
    holders = [other for other in facts.retentions if other.action is Action.HOLD]
    own -= {holder.reference.uid for holder in holders if holder.reference}
    if snapshot.listed_uids & own:
        return False
    # this one never held the claim, or another one goes on holding it
    if retention.action is Action.NONE or holders:
        return True
    # only claimctl removes these entries
    ours = facts.own | snapshot.consumers.removable
    for entry in snapshot.references:
        stays = facts.left_to_group and entry.uid in facts.groups
        if (is_tombstone(entry) or entry.uid in ours) and not stays:
            return False
    # the rest is for others: a PodGroup, KCM with the last pod, or whoever wrote another entry
    return facts.left_to_group or facts.left_to_pods or bool(snapshot.no_pods)
