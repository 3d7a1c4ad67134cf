"""What is decided about a PodGroup from a snapshot: who needs it still, and who has ended."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from claimctl.reservation.annotation import Annotated
from claimctl.reservation.facts.memory import Memory
from claimctl.reservation.facts.snapshot import Held, Rules, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.reservation.pod_groups.case import (
    DropGroup,
    GroupDecision,
    GuardGroup,
    MakeGroup,
)
from claimctl.reservation.pod_groups.decide import (
    LOOK_AGAIN,
    RESERVATIONS_COME,
    GroupSnapshot,
    decide_about,
)
from claimctl.wire.meta import Condition, ObjectMeta, OwnerReference
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.pods import (
    Pod,
    PodResourceClaim,
    PodSchedulingGroup,
    PodSpec,
    PodTemplateSpec,
)
from claimctl.wire.reservations import (
    FINALIZER,
    RESERVE_ANNOTATION,
    ClaimReservation,
    ClaimReservationStatus,
    WorkloadRef,
)
from claimctl.wire.workloads import Job, JobSpec, JobStatus, ReplicaSet, ScalableSpec, Workload
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    NOW,
    claim,
    deployment_ref,
    finished,
    group_ref,
    pending,
    pod_group,
    reservation,
    running,
)

OWNER = OwnerReference(api_version="batch/v1", kind="Job", name="train", uid="uid-train")
GUARD = (FINALIZER,)
OURS = pod_group(made_by_claimctl=True, finalizers=GUARD, owner=OWNER)
ORPHANED = pod_group(made_by_claimctl=True, finalizers=GUARD)
GOING = pod_group(made_by_claimctl=True, finalizers=GUARD, owner=OWNER, deleting=True)
THEIRS = pod_group()
BLIND = Memory(blind_age=0.0)
"""This process began just now, and the claim was allocated by then."""

ENTRY = PodResourceClaim(name="c", resource_claim_name=CLAIM)
TEMPLATE = PodTemplateSpec(
    spec=PodSpec(
        resource_claims=(ENTRY,), scheduling_group=PodSchedulingGroup(pod_group_name="train")
    )
)


def job(*, uid: str = "uid-train", ended: bool = False, reserve: str = "") -> Job:
    conditions = (Condition(type="Complete", status="True"),) if ended else ()
    return Job(
        metadata=ObjectMeta(
            name="train",
            namespace=NAMESPACE,
            uid=uid,
            annotations={RESERVE_ANNOTATION: reserve} if reserve else None,
        ),
        spec=JobSpec(template=TEMPLATE),
        status=JobStatus(conditions=conditions),
    )


def naming(workload: Workload, *reservations: ClaimReservation) -> Annotated:
    ref = WorkloadRef(api_group="batch", kind="Job", name="train")
    return Annotated(ref, "batch/v1", workload, reservations)


def reservation_with(*conditions: tuple[str, str, str]) -> ClaimReservation:
    status = ClaimReservationStatus(
        conditions=tuple(Condition(type=t, status=s, reason=r) for t, s, r in conditions)
    )
    return reservation(status=status)


def free(*pods: Pod, by: tuple[ClaimReservation, ...] = ()) -> Snapshot:
    """The group's claim without an allocation: it gets along without the group."""
    return Snapshot(
        now=NOW,
        namespace=NAMESPACE,
        name=CLAIM,
        claim=claim(allocated=False),
        reservations=tuple(
            Held(each, WorkloadState(WorkloadPhase.ENDED, "uid-train")) for each in by
        ),
        pods=pods,
    )


def withdrawn(*pods: Pod) -> Snapshot:
    """The group's claim, held, with the group in its list and its reservation withdrawn."""
    job_wants_pods = WorkloadState(WorkloadPhase.ACTIVE, "uid-train", wants=1)
    return Snapshot(
        now=NOW,
        namespace=NAMESPACE,
        name=CLAIM,
        claim=claim(group_ref(), deployment_ref()),
        reservations=(Held(reservation(deleting=True), job_wants_pods),),
        pods=pods,
        groups=(OURS,),
        rules=Rules("podgroup"),
    )


def seen(group: PodGroup | None = OURS, **facts: Any) -> GroupSnapshot:
    """A group of a Job that has ended, whose claim is free."""
    ended = GroupSnapshot("train", group, quiet=10.0, owners=(job(ended=True),), claims=(free(),))
    return replace(ended, **facts)


MADE = MakeGroup((OWNER,), (PodResourceClaim(name="c", resource_claim_name=CLAIM),))
GROUPS: dict[str, Any] = {"group": None, "owners": (), "claims": ()}
"""No group of that name."""
REPLICAS = ReplicaSet(metadata=ObjectMeta(name="left"), spec=ScalableSpec(template=TEMPLATE))
FREED = ("Released", "True", "WorkloadEnded")


@pytest.mark.parametrize(
    ("snapshot", "decision"),
    [
        pytest.param(
            seen(**GROUPS, workloads=(naming(job(), reservation()),)),
            GroupDecision(MADE),
            id="no group, and a Job that names one has a reservation: made",
        ),
        pytest.param(
            seen(**GROUPS, workloads=(naming(job(reserve="*")),)),
            GroupDecision(MADE),
            id="no group, and the reservation of an annotated Job is still to come: made",
        ),
        pytest.param(
            seen(workloads=(naming(job(reserve="*")),)),
            GroupDecision(after=RESERVATIONS_COME),
            id="a group, and the reservation of an annotated Job is still to come: left alone",
        ),
        pytest.param(
            seen(**GROUPS, workloads=(naming(job()),)),
            GroupDecision(),
            id="no group, and a Job that names one without a reservation: not made",
        ),
        pytest.param(
            seen(**GROUPS, workloads=(naming(job(ended=True), reservation()),)),
            GroupDecision(),
            id="the Job that names it has ended: not made",
        ),
        pytest.param(
            seen(unreadable=True), GroupDecision(), id="something cannot be read: left alone"
        ),
        pytest.param(seen(), GroupDecision(DropGroup(OURS)), id="its Job has ended: deleted"),
        pytest.param(
            seen(owners=(job(),)),
            GroupDecision(GuardGroup(OURS, present=False)),
            id="its Job goes on, and nothing is reserved: without a guard",
        ),
        pytest.param(
            seen(owners=(None,)),
            GroupDecision(GuardGroup(OURS, present=False)),
            id="its Job is gone: left to garbage collection",
        ),
        pytest.param(
            seen(owners=(job(uid="uid-other", ended=True),)),
            GroupDecision(GuardGroup(OURS, present=False)),
            id="another Job of that name has ended: not the owner",
        ),
        pytest.param(
            seen(claims=(free(running("p", group="train")),)),
            GroupDecision(GuardGroup(OURS, present=False)),
            id="its Job has ended, and a pod of the group runs: kept",
        ),
        pytest.param(
            seen(claims=(free(running("p", group="other"), finished("q", group="train")),)),
            GroupDecision(DropGroup(OURS)),
            id="only pods of other groups and finished ones are left: deleted",
        ),
        pytest.param(
            seen(claims=(free(by=(reservation(),)),), owners=(job(),)),
            GroupDecision(),
            id="its Job goes on and has a reservation: guarded",
        ),
        pytest.param(
            seen(claims=(withdrawn(running("p", group="train")),), owners=(job(),)),
            GroupDecision(GuardGroup(OURS, present=False)),
            id="its reservation is withdrawn beside a running pod: without a guard",
        ),
        pytest.param(
            seen(claims=(withdrawn(pending("p", group="train")),), owners=(job(),)),
            GroupDecision(after=LOOK_AGAIN),
            id="its reservation is withdrawn and no pod runs: guarded, looked at again",
        ),
        pytest.param(
            seen(
                claims=(
                    withdrawn(running("p", group="train")),
                    free(by=(reservation("other"),)),
                ),
                owners=(job(),),
            ),
            GroupDecision(after=LOOK_AGAIN),
            id="another claim of the group is still reserved: guarded, looked at again",
        ),
        pytest.param(
            seen(claims=(replace(withdrawn(), reservations=(), memory=BLIND),), owners=(job(),)),
            GroupDecision(after=LOOK_AGAIN),
            id="nothing is reserved, and pods may have vanished: guarded, looked at again",
        ),
        pytest.param(
            seen(group=ORPHANED, owners=()),
            GroupDecision(DropGroup(ORPHANED)),
            id="without owner, and nobody names it: deleted",
        ),
        pytest.param(
            seen(group=ORPHANED, owners=(), replica_sets=(REPLICAS,)),
            GroupDecision(GuardGroup(ORPHANED, present=False)),
            id="without owner, and a ReplicaSet names it: kept",
        ),
        pytest.param(
            seen(group=ORPHANED, owners=(), workloads=(naming(job()),)),
            GroupDecision(GuardGroup(ORPHANED, present=False)),
            id="without owner, and a Job names it: kept",
        ),
        pytest.param(
            seen(group=ORPHANED, owners=(), claims=(free(by=(reservation_with(FREED),)),)),
            GroupDecision(DropGroup(ORPHANED)),
            id="without owner, and the reservation tells that the workload ended: deleted",
        ),
        pytest.param(
            seen(
                group=ORPHANED,
                owners=(),
                claims=(free(by=(reservation_with(("Released", "False", "Held")),)),),
            ),
            GroupDecision(after=LOOK_AGAIN),
            id="without owner and held: looked at again",
        ),
        pytest.param(
            seen(group=ORPHANED, owners=(), claims=(free(pending("p")),)),
            GroupDecision(GuardGroup(ORPHANED, present=False)),
            id="without owner, and a pod uses its claim: kept",
        ),
        pytest.param(seen(group=GOING), GroupDecision(lists=True), id="deleted: pods are listed"),
        pytest.param(
            seen(group=GOING, live_pods=(finished("p", group="train"),)),
            GroupDecision(GuardGroup(GOING, present=False)),
            id="deleted, and no pod of it is left: let go",
        ),
        pytest.param(
            seen(group=GOING, live_pods=(pending("p", group="train"),)),
            GroupDecision(after=LOOK_AGAIN),
            id="deleted, and a pod came that the cache does not show: kept, looked at again",
        ),
        pytest.param(
            seen(group=THEIRS, owners=()), GroupDecision(), id="made by others: never touched"
        ),
    ],
)
def test_a_group(snapshot: GroupSnapshot, decision: GroupDecision) -> None:
    assert decide_about(snapshot) == decision
