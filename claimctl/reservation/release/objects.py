"""Which objects come and go around an allocation: the claim itself, and its ClaimReservations.

By the phase of the claim:

- It does not exist: it is made from the reservation's template, or its reservation ends
  (``handle_absent``).
- It is not allocated: one that fits its workload no more is deleted, to be made anew (``tidy``).
- In any phase: a deleted reservation goes as soon as it has nothing to do with the claim any more
  (``remove_reservation_finalizers``).

A sticky claim has more reasons to go: nobody asks for its ordinal (``tidy``), or its reservation is
deleted (``goes_with_reservation``).
"""

from __future__ import annotations

from claimctl.reservation.assessment.assess import Assessment
from claimctl.reservation.assessment.retention import Action, RetentionDecision
from claimctl.reservation.facts.decision import (
    ClearReleaseRequest,
    CreateClaim,
    Decision,
    DeleteClaim,
    DeleteReservation,
    ListLivePods,
    SetFinalizer,
)
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import is_tombstone
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.wire.reservations import FINALIZER


def handle_absent(facts: Assessment, decision: Decision) -> None:
    """Handle a claim that does not exist: create it, or end the reservations that need it no more.

    The first case that applies to a reservation counts, and the first reservation that needs a
    write.
    """
    snapshot = facts.snapshot
    for held in snapshot.reservations:
        meta, spec = held.reservation.metadata, held.reservation.spec
        # 1. The reservation is deleted: it goes after the settle time. Until then, another
        # controller that has not seen the deletion may create the claim for it.
        if meta.deleting and FINALIZER in meta.finalizers:
            left = snapshot.rules.settle_seconds - held.deleting_age
            if left <= 0:
                decision.write = SetFinalizer(held.reservation, present=False)
                return
            decision.waits.append(left)
        # 2. The sticky claim is over: the reservation goes with it.
        if is_over(held, snapshot):
            decision.write = DeleteReservation(held.reservation)
            return
        # 3. The claim is wanted: it is made from its template.
        from_template = spec.resource_claim_template_name and not snapshot.no_template
        if from_template and held.resource and _is_wanted(held, snapshot):
            created_for = snapshot.dialect.created_for(held.reference)
            decision.write = CreateClaim(held.reservation, created_for)
            return


def tidy(facts: Assessment, decision: Decision) -> None:
    """Write what a claim without allocation still needs, if anything.

    The first case that applies to a reservation counts, and the first reservation that needs a
    write or a live read.
    """
    snapshot = facts.snapshot
    if snapshot.unreadable:
        return
    meta, created_for = facts.claim.metadata, facts.claim.spec.reserved_for
    for retention in facts.retentions:
        held = retention.held
        # 1. The release for which a user asked is done: the request goes.
        if retention.reason is Reason.RELEASE_REQUESTED:
            decision.write = ClearReleaseRequest(held.reservation)
            return
        # 2. The sticky claim is over, and this is another one of its name: the reservation goes.
        made = held.has_made(facts.claim)
        if is_over(held, snapshot) and not made:
            decision.write = DeleteReservation(held.reservation)
            return
        # 3. The claim is not this reservation's to delete, or is going, or in use: it stays.
        if not made or meta.deleting or snapshot.consumers.bound:
            continue
        # 4. It was made for an earlier incarnation of the workload: it goes, to be made anew.
        outdated = created_for is not None and created_for.uid != held.workload.uid
        if outdated and _is_wanted(held, snapshot):
            decision.write = DeleteClaim(meta.uid, meta.resource_version)
            return
        # 5. The sticky claim is over: it goes when a live LIST shows no pod that may still use it.
        # The cache may be late, and a claim that is being deleted takes no pod.
        if is_over(held, snapshot):
            live = snapshot.any_live
            if live is None:
                decision.needs = (ListLivePods(meta.resource_version, vanished=False),)
            elif not snapshot.table_of(live.pods).alive and not live.unreadable:
                decision.write = DeleteClaim(meta.uid, meta.resource_version)
            return


def _is_wanted(held: Held, snapshot: Snapshot) -> bool:
    """Whether the reservation stays, for a workload that exists and has not ended. A sticky claim
    is wanted by the pods that name it: nobody counts replicas."""
    gone = held.reservation.metadata.deleting or held.workload.ended
    if held.reservation.spec.sticky is not None and not snapshot.consumers.alive:
        return False
    return held.workload.exists and not gone


def is_over(held: Held, snapshot: Snapshot) -> bool:
    """Whether the reservation is that of a sticky claim that nobody uses, or will use again."""
    return (
        held.reservation.spec.sticky is not None
        and not held.reservation.metadata.deleting
        and held.workload.claim_over
        and not snapshot.consumers.alive
    )


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
        grace = retention.longer_grace
        left = (grace.after or 0.0) if grace is not None else 0.0
        if not facts.held:
            settle = facts.snapshot.rules.settle_seconds
            left = max(left, settle - retention.held.deleting_age)
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
    # another component deallocates the claim: a PodGroup holds it, KCM removes its last pod, or
    # another client's entry is listed
    return facts.left_to_group or facts.left_to_pods or bool(snapshot.non_pods)


def goes_with_reservation(snapshot: Snapshot) -> DeleteClaim | None:
    """The deletion of a sticky claim whose reservation is being deleted, and of which each bound
    pod is, too; None if it stays.

    It would go anyway after its reservation. But a new workload of the name may come first, and its
    pods would run on a claim that goes when they end. One that is being deleted takes no new pod.
    """
    claim = snapshot.claim
    if claim is None or claim.metadata.deleting or snapshot.unreadable:
        return None
    if snapshot.deletion_refused:
        return None
    ends = all(held.reservation.metadata.deleting for held in snapshot.reservations)
    makers = (held for held in snapshot.reservations if held.has_made(claim))
    is_sticky = any(maker.reservation.spec.sticky is not None for maker in makers)
    runs_on = any(not pod.metadata.deleting for pod in snapshot.consumers.bound.values())
    if not (ends and is_sticky) or runs_on:
        return None
    return DeleteClaim(claim.metadata.uid, claim.metadata.resource_version)
