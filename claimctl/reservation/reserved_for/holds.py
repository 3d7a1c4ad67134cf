"""Keeping the list of a claim in order: which references it should have, and one write for it."""

from __future__ import annotations

from claimctl.reservation.context import ClaimContext
from claimctl.reservation.decision import ConfirmPods, Decision, WriteList
from claimctl.reservation.dialects import DIALECTS
from claimctl.reservation.pod_groups.membership import needing_tombstones, own_groups
from claimctl.reservation.reasons import Reason
from claimctl.reservation.release.protocol import begins_with_fence
from claimctl.reservation.reserved_for.consistency import DesiredHolds, ListPlan, consistent_list
from claimctl.reservation.reserved_for.references import (
    LIMIT,
    is_pod_group,
    is_tombstone,
    pod_reference,
    same_name,
)
from claimctl.reservation.retention import Action, RetentionDecision, recorded
from claimctl.reservation.status.writes import sooner
from claimctl.reservation.workloads import group_of
from claimctl.wire.claims import Reference
from claimctl.wire.pods import Pod

FIGHT_REST = 300.0
"""Seconds after which a writer that undid what claimctl wrote is given another chance."""


def holds_while_held(context: ClaimContext) -> DesiredHolds:
    """While somebody holds the claim: theirs stay or come, those of others who let go leave."""
    keep: dict[str, Reference] = {}
    drop: set[str] = set()
    steps_aside = yields(context)
    for retention in context.retentions:
        reference = retention.reference
        if reference is None or retention.action is Action.NONE:
            continue
        if retention.action is Action.RELEASE or steps_aside:
            drop |= {reference.uid} | _old_incarnations(context, reference)
        elif context.listed(reference) or not _refused(context, reference):
            keep[reference.uid] = reference
            drop |= _old_incarnations(context, reference)
    return DesiredHolds(keep, frozenset(drop & context.own - keep.keys()), context.own)


def _refused(context: ClaimContext, reference: Reference) -> bool:
    return DIALECTS[context.snapshot.rules.dialect].refuses(context.claim, reference) is not None


def _old_incarnations(context: ClaimContext, reference: Reference) -> set[str]:
    """A name belongs to one object at a time, so another UID under it is gone."""
    return {
        listed.uid
        for listed in context.snapshot.references
        if same_name(listed, reference) and listed.uid != reference.uid
    }


def yields(context: ClaimContext) -> bool:
    """Where the holds leave a waiting pod no place, all of them step aside; live pods stay listed.

    They come back when there is a place for each beside the others, or nobody waits. A claim that
    is being deleted gives nobody a place, and its list has to stay as it is (``binding``).
    """
    if context.snapshot.shared or context.claim.metadata.deleting:
        return False
    listed = {reference.uid for reference in context.snapshot.references}
    holds = _holds(context)
    return (
        len(listed | holds) >= LIMIT
        and bool(holds)
        and any(_waits_for_a_place(context, pod) for pod in context.consumers.pending.values())
        and any(uid in listed for uid in context.consumers.bound)
    )


def _holds(context: ClaimContext) -> frozenset[str]:
    """UIDs of claimctl's holds: those in the list, and those that belong there."""
    wanted = {
        retention.reference.uid
        for retention in context.retentions
        if retention.action is Action.HOLD and retention.reference is not None
    }
    return (context.own | wanted) - own_groups(context.snapshot)


def _waits_for_a_place(context: ClaimContext, pod: Pod) -> bool:
    """Whether a pod needs an entry of its own; one whose PodGroup is listed does not."""
    group = group_of(pod.spec)
    return not any(
        each.uid == pod.metadata.uid or (group and is_pod_group(each) and each.name == group)
        for each in context.snapshot.references
    )


def holds_while_waiting(context: ClaimContext) -> DesiredHolds:
    """While a release waits: holds stay until the consumers have gone, or leave no place for a
    pod; a fenced claim to which a consumer came gets its holder back.

    Where pods are listed one by one, a withdrawn hold goes as soon as one of them is bound: the
    pods keep their references, and KCM deallocates when it removes the last. One that only went
    with its workload waits for the pods, as any other that has ended: KCM knows no ghosts.
    """
    drop: set[str] = set()
    keep: dict[str, Reference] = {}
    steps_aside = yields(context)
    handed_over = not begins_with_fence(context.snapshot) and context.left_to_pods
    for retention in context.retentions:
        if retention.reference is None or retention.action is not Action.RELEASE:
            continue
        withdrawn = retention.reason is Reason.WITHDRAWN and not _went_with_workload(retention)
        if steps_aside or (handed_over and withdrawn):
            drop |= {retention.reference.uid} | _old_incarnations(context, retention.reference)
        elif context.listed(retention.reference):
            keep[retention.reference.uid] = retention.reference
        elif (taken_out := _to_put_back(context, retention)) is not None:
            keep[taken_out.uid] = taken_out
    return DesiredHolds(keep, frozenset(drop & context.own - keep.keys()), context.own)


def _went_with_workload(retention: RetentionDecision) -> bool:
    """Whether garbage collection deleted the reservation, after the workload that owned it."""
    return (
        not retention.held.workload.exists
        and retention.held.reservation.metadata.controller() is not None
    )


def _to_put_back(context: ClaimContext, retention: RetentionDecision) -> Reference | None:
    """The holder that was taken out, if a pod runs on a claim of which none is listed any more.

    An unschedulable pod may have such a claim deallocated (PostFilter). What is on record of the
    release proves nothing: it is gone since the pod was first seen, not bound yet. It is the
    incarnation that held the claim, also where the workload was made anew meanwhile.
    """
    shares = DIALECTS[context.snapshot.rules.dialect].groups or begins_with_fence(context.snapshot)
    lost = (
        shares and bool(context.consumers.bound) and not context.own - own_groups(context.snapshot)
    )
    return recorded(context.snapshot, retention.held) if lost else None


def plan_list(context: ClaimContext, wishes: DesiredHolds) -> ListPlan:
    return consistent_list(context.snapshot, context.consumers, wishes)


def add_tombstones_first(context: ClaimContext) -> Decision | None:
    """The tombstones that are missing beside a hold that is about to go; None without any.

    A finished pod without one has KCM take it out and put it back, more often than the pods can
    be listed: the write of a release, which needs such a LIST, would come too late each time.
    """
    snapshot = context.snapshot
    plan = plan_list(context, holds_while_waiting(context))
    planned = {each.uid for each in plan.reserved_for if is_tombstone(each)}
    planned -= {each.uid for each in snapshot.references if is_tombstone(each)}
    finished = needing_tombstones(snapshot, context.consumers)
    moved = {pod.metadata.uid for pod in finished if _moved_by_kcm(context, pod)}
    return write_list(context, plan) if planned & moved and not context.fights else None


def _moved_by_kcm(context: ClaimContext, pod: Pod) -> bool:
    """Whether KCM writes about a finished pod; about one whose group is gone it does not."""
    if DIALECTS[context.snapshot.rules.dialect].groups and group_of(pod.spec):
        return context.listed(pod_reference(pod.metadata))
    return True


def write_list(context: ClaimContext, plan: ListPlan) -> Decision:
    """Write the list where it differs.

    It is never emptied beside an allocation here: nobody would ever deallocate that claim.
    """
    if plan.confirm:
        return Decision(needs=(ConfirmPods(plan.confirm),), after=plan.look_again)
    if not plan.reserved_for or plan.reserved_for == context.snapshot.references:
        return Decision(after=plan.look_again)
    if context.fights:
        return Decision(after=sooner(plan.look_again, FIGHT_REST))
    write = WriteList(context.claim.metadata.resource_version, plan.reserved_for)
    return Decision(write=write, after=plan.look_again)
