"""Keeping the list of a claim in order: which references it should have, and one write for it."""

from __future__ import annotations

from claimctl.reservation.context import Case
from claimctl.reservation.decision import ConfirmPods, Decision, WriteList
from claimctl.reservation.dialects import DIALECTS
from claimctl.reservation.pod_groups.membership import own_groups, to_bury
from claimctl.reservation.reasons import Reason
from claimctl.reservation.release.protocol import begins_with_fence
from claimctl.reservation.reserved_for.consistency import ListPlan, Wishes, consistent_list
from claimctl.reservation.reserved_for.references import (
    LIMIT,
    is_pod_group,
    is_tombstone,
    pod_reference,
    same_name,
)
from claimctl.reservation.retention import Stand, Standing, recorded
from claimctl.reservation.status.writes import sooner
from claimctl.reservation.workloads import group_of
from claimctl.wire.claims import Reference
from claimctl.wire.pods import Pod

FIGHT_REST = 300.0
"""Seconds after which a writer that undid what claimctl wrote is given another chance."""


def holding_wishes(case: Case) -> Wishes:
    """While somebody holds the claim: theirs stay or come, those of others who let go leave."""
    keep: dict[str, Reference] = {}
    drop: set[str] = set()
    steps_aside = yields(case)
    for stand in case.stands:
        reference = stand.reference
        if reference is None or stand.stand is Stand.NONE:
            continue
        if stand.stand is Stand.LET_GO or steps_aside:
            drop |= {reference.uid} | _old_incarnations(case, reference)
        elif case.listed(reference) or not _refused(case, reference):
            keep[reference.uid] = reference
            drop |= _old_incarnations(case, reference)
    return Wishes(keep, frozenset(drop & case.own - keep.keys()), case.own)


def _refused(case: Case, reference: Reference) -> bool:
    return DIALECTS[case.snapshot.rules.dialect].refuses(case.claim, reference) is not None


def _old_incarnations(case: Case, reference: Reference) -> set[str]:
    """A name belongs to one object at a time, so another UID under it is gone."""
    return {
        listed.uid
        for listed in case.snapshot.references
        if same_name(listed, reference) and listed.uid != reference.uid
    }


def yields(case: Case) -> bool:
    """Where the holds leave a waiting pod no place, all of them step aside; live pods stay listed.

    They come back when there is a place for each beside the others, or nobody waits. A claim that
    is being deleted gives nobody a place, and its list has to stay as it is (``binding``).
    """
    if case.snapshot.shared or case.claim.metadata.deleting:
        return False
    listed = {reference.uid for reference in case.snapshot.references}
    holds = _holds(case)
    return (
        len(listed | holds) >= LIMIT
        and bool(holds)
        and any(_waits_for_a_place(case, pod) for pod in case.consumers.pending.values())
        and any(uid in listed for uid in case.consumers.bound)
    )


def _holds(case: Case) -> frozenset[str]:
    """UIDs of claimctl's holds: those in the list, and those that belong there."""
    wanted = {
        stand.reference.uid
        for stand in case.stands
        if stand.stand is Stand.HOLD and stand.reference is not None
    }
    return (case.own | wanted) - own_groups(case.snapshot)


def _waits_for_a_place(case: Case, pod: Pod) -> bool:
    """Whether a pod needs an entry of its own; one whose PodGroup is listed does not."""
    group = group_of(pod.spec)
    return not any(
        each.uid == pod.metadata.uid or (group and is_pod_group(each) and each.name == group)
        for each in case.snapshot.references
    )


def waiting_wishes(case: Case) -> Wishes:
    """While a release waits: holds stay until the consumers have gone, or leave no place for a
    pod; a fenced claim to which a consumer came gets its holder back.

    Where pods are listed one by one, a withdrawn hold goes as soon as one of them is bound: the
    pods keep their references, and KCM deallocates when it removes the last. One that only went
    with its workload waits for the pods, as any other that has ended: KCM knows no ghosts.
    """
    drop: set[str] = set()
    keep: dict[str, Reference] = {}
    steps_aside = yields(case)
    handed_over = not begins_with_fence(case.snapshot) and case.left_to_pods
    for stand in case.stands:
        if stand.reference is None or stand.stand is not Stand.LET_GO:
            continue
        withdrawn = stand.reason is Reason.WITHDRAWN and not _went_with_workload(stand)
        if steps_aside or (handed_over and withdrawn):
            drop |= {stand.reference.uid} | _old_incarnations(case, stand.reference)
        elif case.listed(stand.reference):
            keep[stand.reference.uid] = stand.reference
        elif (taken_out := _to_put_back(case, stand)) is not None:
            keep[taken_out.uid] = taken_out
    return Wishes(keep, frozenset(drop & case.own - keep.keys()), case.own)


def _went_with_workload(stand: Standing) -> bool:
    """Whether garbage collection deleted the reservation, after the workload that owned it."""
    return (
        not stand.held.workload.exists and stand.held.reservation.metadata.controller() is not None
    )


def _to_put_back(case: Case, stand: Standing) -> Reference | None:
    """The holder that was taken out, if a pod runs on a claim of which none is listed any more.

    An unschedulable pod may have such a claim deallocated (PostFilter). What is on record of the
    release proves nothing: it is gone since the pod was first seen, not bound yet. It is the
    incarnation that held the claim, also where the workload was made anew meanwhile.
    """
    shares = DIALECTS[case.snapshot.rules.dialect].groups or begins_with_fence(case.snapshot)
    lost = shares and bool(case.consumers.bound) and not case.own - own_groups(case.snapshot)
    return recorded(case.snapshot, stand.held) if lost else None


def plan_list(case: Case, wishes: Wishes) -> ListPlan:
    return consistent_list(case.snapshot, case.consumers, wishes)


def bury_first(case: Case) -> Decision | None:
    """The tombstones that are missing beside a hold that is about to go; None without any.

    A finished pod without one has KCM take it out and put it back, more often than the pods can
    be listed: the write of a release, which needs such a LIST, would come too late each time.
    """
    snapshot = case.snapshot
    plan = plan_list(case, waiting_wishes(case))
    planned = {each.uid for each in plan.reserved_for if is_tombstone(each)}
    planned -= {each.uid for each in snapshot.references if is_tombstone(each)}
    finished = to_bury(snapshot, case.consumers)
    moved = {pod.metadata.uid for pod in finished if _moved_by_kcm(case, pod)}
    return write_list(case, plan) if planned & moved and not case.fights else None


def _moved_by_kcm(case: Case, pod: Pod) -> bool:
    """Whether KCM writes about a finished pod; about one whose group is gone it does not."""
    if DIALECTS[case.snapshot.rules.dialect].groups and group_of(pod.spec):
        return case.listed(pod_reference(pod.metadata))
    return True


def write_list(case: Case, plan: ListPlan) -> Decision:
    """Write the list where it differs.

    It is never emptied beside an allocation here: nobody would ever deallocate that claim.
    """
    if plan.confirm:
        return Decision(needs=(ConfirmPods(plan.confirm),), after=plan.look_again)
    if not plan.reserved_for or plan.reserved_for == case.snapshot.references:
        return Decision(after=plan.look_again)
    if case.fights:
        return Decision(after=sooner(plan.look_again, FIGHT_REST))
    write = WriteList(case.claim.metadata.resource_version, plan.reserved_for)
    return Decision(write=write, after=plan.look_again)
