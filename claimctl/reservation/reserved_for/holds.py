"""Keeping the list of a claim in order: which references it should have, and one write for it."""

from __future__ import annotations

from dataclasses import replace

from claimctl.reservation.assessment import Assessment
from claimctl.reservation.decision import ConfirmPods, WriteList
from claimctl.reservation.dialects import DIALECTS
from claimctl.reservation.pod_groups.membership import needing_tombstones
from claimctl.reservation.reasons import Reason
from claimctl.reservation.release.protocol import begins_with_fence
from claimctl.reservation.reserved_for.consistency import DesiredHolds
from claimctl.reservation.reserved_for.references import (
    LIMIT,
    is_pod_group,
    is_tombstone,
    pod_reference,
    same_name,
)
from claimctl.reservation.retention import Action, RetentionDecision
from claimctl.reservation.workloads import group_of
from claimctl.wire.claims import Reference
from claimctl.wire.pods import Pod

FIGHT_REST = 300.0
"""Seconds after which a writer that undid what claimctl wrote is given another chance."""


def holds_while_held(found: Assessment) -> DesiredHolds:
    """While somebody holds the claim: theirs stay or come, those of others who let go leave."""
    keep: dict[str, Reference] = {}
    drop: set[str] = set()
    for retention in found.retentions:
        reference = retention.reference
        if reference is None or retention.action is Action.NONE:
            continue
        if retention.action is Action.RELEASE or found.steps_aside:
            drop |= {reference.uid} | _old_incarnations(found, reference)
        elif found.listed(reference) or not _refused(found, reference):
            keep[reference.uid] = reference
            drop |= _old_incarnations(found, reference)
    return DesiredHolds(keep, frozenset(drop & found.own - keep.keys()), found.own)


def _refused(found: Assessment, reference: Reference) -> bool:
    return DIALECTS[found.snapshot.rules.dialect].refuses(found.claim, reference) is not None


def _old_incarnations(found: Assessment, reference: Reference) -> set[str]:
    """A name belongs to one object at a time, so another UID under it is gone."""
    return {
        listed.uid
        for listed in found.snapshot.references
        if same_name(listed, reference) and listed.uid != reference.uid
    }


def holds_step_aside(found: Assessment) -> bool:
    """Where the holds leave a waiting pod no place, all of them step aside; live pods stay listed.

    They come back when there is a place for each beside the others, or nobody waits. A claim that
    is being deleted gives nobody a place, and its list has to stay as it is (``binding``).
    """
    if found.snapshot.shared or found.claim.metadata.deleting:
        return False
    listed = {reference.uid for reference in found.snapshot.references}
    holds = _holds(found)
    return (
        len(listed | holds) >= LIMIT
        and bool(holds)
        and any(_waits_for_a_place(found, pod) for pod in found.consumers.pending.values())
        and any(uid in listed for uid in found.consumers.bound)
    )


def _holds(found: Assessment) -> frozenset[str]:
    """UIDs of claimctl's holds: those in the list, and those that belong there."""
    wanted = {
        retention.reference.uid
        for retention in found.retentions
        if retention.action is Action.HOLD and retention.reference is not None
    }
    return (found.own | wanted) - found.groups


def _waits_for_a_place(found: Assessment, pod: Pod) -> bool:
    """Whether a pod needs an entry of its own; one whose PodGroup is listed does not."""
    group = group_of(pod.spec)
    return not any(
        each.uid == pod.metadata.uid or (group and is_pod_group(each) and each.name == group)
        for each in found.snapshot.references
    )


def holds_while_waiting(found: Assessment) -> DesiredHolds:
    """While a release waits: holds stay until the consumers have gone, or leave no place for a
    pod; a fenced claim to which a consumer came gets its holder back.

    Where pods are listed one by one, a withdrawn hold goes as soon as one of them is bound: the
    pods keep their references, and KCM deallocates when it removes the last. One that only went
    with its workload waits for the pods, as any other that has ended: KCM knows no ghosts.
    """
    drop: set[str] = set()
    keep: dict[str, Reference] = {}
    handed_over = not begins_with_fence(found.snapshot) and found.left_to_pods
    for retention in found.retentions:
        if retention.reference is None or retention.action is not Action.RELEASE:
            continue
        withdrawn = retention.reason is Reason.WITHDRAWN and not _went_with_workload(retention)
        if found.steps_aside or (handed_over and withdrawn):
            drop |= {retention.reference.uid} | _old_incarnations(found, retention.reference)
        elif found.listed(retention.reference):
            keep[retention.reference.uid] = retention.reference
        elif (taken_out := _to_put_back(found, retention)) is not None:
            keep[taken_out.uid] = taken_out
    return DesiredHolds(keep, frozenset(drop & found.own - keep.keys()), found.own)


def _went_with_workload(retention: RetentionDecision) -> bool:
    """Whether garbage collection deleted the reservation, after the workload that owned it."""
    return (
        not retention.held.workload.exists
        and retention.held.reservation.metadata.controller() is not None
    )


def _to_put_back(found: Assessment, retention: RetentionDecision) -> Reference | None:
    """The holder that was taken out, if a pod runs on a claim of which none is listed any more.

    An unschedulable pod may have such a claim deallocated (PostFilter). What is on record of the
    release proves nothing: it is gone since the pod was first seen, not bound yet. It is the
    incarnation that held the claim, also where the workload was made anew meanwhile.
    """
    shares = DIALECTS[found.snapshot.rules.dialect].groups or begins_with_fence(found.snapshot)
    lost = shares and bool(found.consumers.bound) and not found.own - found.groups
    return retention.recorded if lost else None


def lacks_tombstones(found: Assessment) -> bool:
    """Whether tombstones are missing beside a hold that is about to go.

    A finished pod without one has KCM take it out and put it back, more often than the pods can
    be listed: the write of a release, which needs such a LIST, would come too late each time.
    """
    assert found.plan is not None
    planned = {each.uid for each in found.plan.reserved_for if is_tombstone(each)}
    planned -= {each.uid for each in found.snapshot.references if is_tombstone(each)}
    finished = needing_tombstones(found.snapshot, found.consumers)
    moved = {pod.metadata.uid for pod in finished if _moved_by_kcm(found, pod)}
    return bool(planned & moved) and not found.fights


def _moved_by_kcm(found: Assessment, pod: Pod) -> bool:
    """Whether KCM writes about a finished pod; about one whose group is gone it does not."""
    if DIALECTS[found.snapshot.rules.dialect].groups and group_of(pod.spec):
        return found.listed(pod_reference(pod.metadata))
    return True


def write_list(found: Assessment) -> Assessment:
    """Write the list as it should be, where it differs.

    It is never emptied beside an allocation here: nobody would ever deallocate that claim.
    """
    plan = found.plan
    assert plan is not None
    found = found.sooner(plan.look_again)
    if plan.confirm:
        return replace(found, needs=(ConfirmPods(plan.confirm),))
    if not plan.reserved_for or plan.reserved_for == found.snapshot.references:
        return found
    if found.fights:
        return found.sooner(FIGHT_REST)
    version = found.claim.metadata.resource_version
    return replace(found, write=WriteList(version, plan.reserved_for))
