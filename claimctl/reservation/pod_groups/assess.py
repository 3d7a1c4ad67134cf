"""Assess one PodGroup: from a snapshot to a decision, by pure functions without I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from claimctl.reservation.annotation import Annotated, plan
from claimctl.reservation.assessment.assess import assess
from claimctl.reservation.facts.decision import Blocker
from claimctl.reservation.facts.membership import made_by_claimctl
from claimctl.reservation.facts.pods import claim_names, group_of, is_done
from claimctl.reservation.facts.reasons import ConditionType, Reason
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.facts.workloads import observe
from claimctl.reservation.pod_groups.lifecycle import (
    NOTHING,
    Asking,
    GroupCase,
    GroupDecision,
    decide_group,
    no_longer_needs,
)
from claimctl.reservation.users.withdrawal import leaves_to_group
from claimctl.wire.meta import OwnerReference
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import FINALIZER, ClaimReservation
from claimctl.wire.workloads import ReplicaSet, Workload

RESERVATIONS_COME = 0.5
"""Seconds to wait for the reservations that annotated workloads will get."""
LOOK_AGAIN = 5.0
"""Seconds after which to decide again about a guarded group that may go by time alone."""


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """Everything about one PodGroup name at one moment. Durations are in seconds."""

    name: str
    group: PodGroup | None
    workloads: tuple[Annotated, ...] = ()
    """The workloads whose pod templates name the group, with their reservations."""
    owners: tuple[Workload | None, ...] = ()
    """The objects with the names of the group's owners, in their order; None if there is none."""
    claims: tuple[Snapshot, ...] = ()
    """The claims that the group names, and the claims that list its name."""
    replica_sets: tuple[ReplicaSet, ...] = ()
    """The ReplicaSets whose pods use one of the claims."""
    live_pods: tuple[Pod, ...] | None = None
    """The namespace's pods by a LIST that began after the group was read; None before that."""
    listed: bool = False
    """Whether a claim lists a group of this name."""
    quiet: float = 0.0
    """Time since this process last saw the name in use."""
    settle_seconds: float = 5.0
    unreadable: bool = False
    """Whether the group, or an object that may concern one of its claims, cannot be read."""


def decide_about(snapshot: GroupSnapshot) -> GroupDecision:
    """Decide what to do about one PodGroup now: at most one write, or a LIST of its pods first."""
    # 1. Leave it alone when something about it cannot be read.
    if snapshot.unreadable:
        return NOTHING
    # 2. Find out which workloads ask for the group. A missing group is created at once, before its
    # pods are first scheduled. For anything else, wait for the reservations that are to come.
    asking = tuple(_asking(snapshot.workloads))
    if snapshot.group is not None and any(each.planned for each in asking):
        return GroupDecision(after=RESERVATIONS_COME)
    # 3. Find out which workloads and claims still need the group, and decide.
    case = _case(snapshot, asking)
    decision = decide_group(case)
    # 4. Decide again later if time alone (ghosts, settling) or pods without an owner block it, or
    # if a pod may be bound beside a withdrawn reservation.
    if decision == NOTHING and case.group is not None and _waits(snapshot, case, case.group):
        return replace(decision, after=LOOK_AGAIN)
    return decision


def _asking(workloads: Iterable[Annotated]) -> Iterator[Asking]:
    """The workloads that name the group and have not ended."""
    for each in workloads:
        if each.meta.deleting or observe(each.workload, "").ended:
            continue
        planned = _claims(plan(each).create)
        reserved = _claims(one for one in each.reservations if not one.metadata.deleting)
        yield Asking(_owner(each), each.workload.spec.template, reserved | planned, bool(planned))


def _claims(reservations: Iterable[ClaimReservation]) -> frozenset[str]:
    return frozenset(one.spec.resource_claim_name for one in reservations)


def _owner(workload: Annotated) -> OwnerReference:
    """The owner reference, by which the group is deleted after its workload.

    It does not block a foreground deletion of the workload.
    """
    ref = workload.ref
    return OwnerReference(
        api_version=workload.api_version, kind=ref.kind, name=ref.name, uid=workload.meta.uid
    )


def _case(snapshot: GroupSnapshot, asking: tuple[Asking, ...]) -> GroupCase:
    group = snapshot.group
    case = GroupCase(
        group=group,
        asking=asking,
        listed=snapshot.listed,
        quiet=snapshot.quiet,
        settle_seconds=snapshot.settle_seconds,
    )
    if group is None or not made_by_claimctl(group):
        return case
    live = snapshot.live_pods
    return replace(
        case,
        owner_ended=_owner_ended(snapshot, group),
        guarded=any(claim.reservations and not leaves_to_group(claim) for claim in snapshot.claims),
        in_use=_in_use(snapshot, _pods(snapshot)),
        in_use_live=None if live is None else _in_use(snapshot, live),
        unneeded=all(
            no_longer_needs(claim, group, release_blockers(claim)) for claim in snapshot.claims
        ),
    )


def _pods(snapshot: GroupSnapshot) -> Iterator[Pod]:
    return (pod for claim in snapshot.claims for pod in claim.pods)


def _in_use(snapshot: GroupSnapshot, pods: Iterable[Pod]) -> bool:
    """Whether pods of the group may still be scheduled on its claims, or run."""
    names = {claim.name for claim in snapshot.claims}
    members = (pod for pod in pods if group_of(pod.spec) == snapshot.name)
    return any(not is_done(pod) and names & claim_names(pod) for pod in members)


def _owner_ended(snapshot: GroupSnapshot, group: PodGroup) -> bool:
    """Whether the workloads that own the group exist and have ended.

    If a workload is gone, garbage collection deletes the group. If the workload was deleted with
    cascade=orphan, the group has no owner any more.
    """
    owners = group.metadata.owner_references
    if not owners:
        return _left_alone(snapshot)
    return all(
        workload is not None and workload.metadata.uid == owner.uid and observe(workload, "").ended
        for owner, workload in zip(owners, snapshot.owners, strict=True)
    )


def _left_alone(snapshot: GroupSnapshot) -> bool:
    """Whether nothing needs a group without owners.

    No pod uses its claims, and either a reservation says that the workload has ended, or no object
    names the group.
    """
    if any(not is_done(pod) for pod in _pods(snapshot)):
        return False
    reported = [
        (condition.type, condition.status, condition.reason)
        for claim in snapshot.claims
        for held in claim.reservations
        for condition in held.reservation.status.conditions
    ]
    if reported:
        return (ConditionType.RELEASED, "True", Reason.WORKLOAD_ENDED) in reported
    return not _named(snapshot)


def _named(snapshot: GroupSnapshot) -> bool:
    """Whether a reservation, a workload or a ReplicaSet may still need the group."""
    return (
        bool(snapshot.workloads)
        or any(claim.reservations for claim in snapshot.claims)
        or any(group_of(each.spec.template.spec) == snapshot.name for each in snapshot.replica_sets)
    )


def release_blockers(claim: Snapshot) -> tuple[Blocker, ...] | None:
    """The blockers of the claim's release, without its finished pods; None without a release."""
    if not claim.allocated:
        return None
    found = assess(claim)
    if found.reason is None:
        return None
    return tuple(each for each in found.blockers if each.reason is not Reason.FINISHED_PODS_LEFT)


def _waits(snapshot: GroupSnapshot, case: GroupCase, group: PodGroup) -> bool:
    if not made_by_claimctl(group):
        return False
    guards, meta = FINALIZER in group.metadata.finalizers, group.metadata
    withdrawn = any(held.withdrawn for claim in snapshot.claims for held in claim.reservations)
    passes = meta.deleting or case.owner_ended or withdrawn or not case.guarded
    return (guards and passes) or not meta.owner_references
