"""Decide what to do about one PodGroup: from a snapshot to at most one write, in numbered steps.

Here the facts are found: who asks for the group, who needs it, who uses it. They are the fields of
a ``GroupCase``, by which ``case.decide_group`` decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from claimctl.reservation.annotation import Annotated, plan
from claimctl.reservation.assessment.assess import assess
from claimctl.reservation.facts.decision import Blocker
from claimctl.reservation.facts.pods import claim_names, is_done
from claimctl.reservation.facts.reasons import ConditionType, Reason
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.facts.workloads import observe
from claimctl.reservation.pod_groups.case import (
    NOTHING,
    Asking,
    GroupCase,
    GroupDecision,
    decide_group,
    no_longer_needs,
)
from claimctl.reservation.users.withdrawal import withdraws_beside_group
from claimctl.wire.meta import OwnerReference
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import FINALIZER, ClaimReservation
from claimctl.wire.workloads import ReplicaSet, Workload, template_of

RESERVATIONS_COME = 0.5
"""Seconds to wait for the reservations that annotated workloads will get."""
LOOK_AGAIN = 5.0
"""Seconds after which to decide again about a guarded group that may go by time alone."""


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """Everything about one PodGroup name at one moment."""

    name: str
    group: PodGroup | None
    listed: bool = False
    quiet: float = 0.0
    settle_seconds: float = 5.0
    """``GroupCase`` says what these four are."""
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
    unreadable: bool = False
    """Whether the group, or an object that may concern one of its claims, cannot be read."""


def decide_about(snapshot: GroupSnapshot) -> GroupDecision:
    """Decide what to do about one PodGroup now: at most one write, or a LIST of its pods first."""
    # 1. Leave it alone when something about it cannot be read.
    if snapshot.unreadable:
        return NOTHING
    # 2. Find out which workloads ask for the group. A missing group is created at once, before its
    # pods are first scheduled. For anything else, wait for the reservations that are to come.
    asking, group = tuple(_asking(snapshot.workloads)), snapshot.group
    if group is not None and any(workload.planned for workload in asking):
        return GroupDecision(after=RESERVATIONS_COME)
    # 3. Find out which workloads and claims still need the group, and decide.
    case = GroupCase(
        group,
        asking,
        listed=snapshot.listed,
        quiet=snapshot.quiet,
        settle_seconds=snapshot.settle_seconds,
    )
    if group is None or not group.made_by_claimctl:
        return decide_group(case)
    live, claims = snapshot.live_pods, snapshot.claims
    case = replace(
        case,
        owner_ended=_owner_has_ended(snapshot, group),
        reserved=any(claim.reservations and not withdraws_beside_group(claim) for claim in claims),
        in_use=_is_in_use(snapshot, _pods(snapshot)),
        in_use_live=None if live is None else _is_in_use(snapshot, live),
        unneeded=all(no_longer_needs(claim, group, release_blockers(claim)) for claim in claims),
    )
    decision = decide_group(case)
    # 4. Decide again later if no event may tell when the group can go.
    if decision == NOTHING and _may_go_without_event(group, case, claims):
        return replace(decision, after=LOOK_AGAIN)
    return decision


def _may_go_without_event(group: PodGroup, case: GroupCase, claims: Iterable[Snapshot]) -> bool:
    """Whether time alone (ghosts, settling), pods without an owner, or a pod that may be bound
    beside a withdrawn reservation is in the group's way."""
    meta = group.metadata
    if not meta.owner_references:
        return True
    withdrawn = any(held.withdrawn_by_user for claim in claims for held in claim.reservations)
    is_to_go = meta.deleting or case.owner_ended or withdrawn or not case.reserved
    return is_to_go and FINALIZER in meta.finalizers


def _asking(workloads: Iterable[Annotated]) -> Iterator[Asking]:
    """The workloads that name the group and have not ended."""
    for annotated in workloads:
        meta, ref, workload = annotated.meta, annotated.ref, annotated.workload
        if meta.deleting or observe(workload, "").ended:
            continue
        planned = _claims(plan(annotated).create)
        kept = (
            reservation
            for reservation in annotated.reservations
            if not reservation.metadata.deleting
        )
        # by this owner, the group is deleted after its workload. It does not block a foreground
        # deletion of the workload
        owner = OwnerReference(
            api_version=annotated.api_version, kind=ref.kind, name=ref.name, uid=meta.uid
        )
        yield Asking(owner, template_of(workload), _claims(kept) | planned, bool(planned))


def _claims(reservations: Iterable[ClaimReservation]) -> frozenset[str]:
    return frozenset(reservation.spec.resource_claim_name for reservation in reservations)


def _pods(snapshot: GroupSnapshot) -> Iterator[Pod]:
    return (pod for claim in snapshot.claims for pod in claim.pods)


def _is_in_use(snapshot: GroupSnapshot, pods: Iterable[Pod]) -> bool:
    """Whether pods of the group may still be scheduled on its claims, or run."""
    names = {claim.name for claim in snapshot.claims}
    members = (pod for pod in pods if pod.spec.group_name == snapshot.name)
    return any(not is_done(pod) and names & claim_names(pod) for pod in members)


def _owner_has_ended(snapshot: GroupSnapshot, group: PodGroup) -> bool:
    """Whether the workloads that own the group exist and have ended. If a workload is gone, garbage
    collection deletes the group."""
    owners = group.metadata.owner_references
    if not owners:
        return _is_left_behind(snapshot)
    return all(
        workload is not None and workload.metadata.uid == owner.uid and observe(workload, "").ended
        for owner, workload in zip(owners, snapshot.owners, strict=True)
    )


def _is_left_behind(snapshot: GroupSnapshot) -> bool:
    """Whether nothing needs a group that has no owner any more, because its workload was deleted
    with cascade=orphan.

    No pod uses its claims, and either a reservation says that the workload has ended, or no object
    names the group.
    """
    if any(not is_done(pod) for pod in _pods(snapshot)):
        return False
    reservations = [held.reservation for claim in snapshot.claims for held in claim.reservations]
    reported = [
        (condition.type, condition.status, condition.reason)
        for reservation in reservations
        for condition in reservation.status.conditions
    ]
    if reported:
        return (ConditionType.RELEASED, "True", Reason.WORKLOAD_ENDED) in reported
    templates = (replica_set.spec.template for replica_set in snapshot.replica_sets)
    named = any(template.spec.group_name == snapshot.name for template in templates)
    return not snapshot.workloads and not reservations and not named


def release_blockers(claim: Snapshot) -> tuple[Blocker, ...] | None:
    """The blockers of the claim's release, without its finished pods; None without a release."""
    if not claim.allocated:
        return None
    facts = assess(claim)
    if facts.reason is None:
        return None
    return tuple(b for b in facts.blockers if b.reason is not Reason.FINISHED_PODS_LEFT)
