"""Whether a workload wants pods, may want some later, or has ended."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from claimctl.reservation.facts.workloads import (
    WorkloadPhase,
    WorkloadState,
    named_claims,
    observe,
    orphaned_replica_sets_of,
    with_group_of_pods,
)
from claimctl.wire.meta import Condition, ObjectMeta, OwnerReference
from claimctl.wire.pods import Pod, PodResourceClaim, PodSpec, PodTemplateSpec
from claimctl.wire.workloads import (
    Deployment,
    Job,
    JobSpec,
    JobStatus,
    ReplicaSet,
    StatefulSet,
    StatefulSetSpec,
    Workload,
)
from tests.support.builders import NOW, owned, running

TEMPLATE = PodTemplateSpec(
    spec=PodSpec(
        resource_claims=(
            PodResourceClaim(name="c", resource_claim_name="slice"),
            PodResourceClaim(name="d", resource_claim_name="slice"),
            PodResourceClaim(name="e", resource_claim_template_name="generated"),
            PodResourceClaim(name="f", resource_claim_name="other"),
        )
    )
)
META = ObjectMeta(name="w", uid="u")
GOING = ObjectMeta(name="w", uid="u", deletion_timestamp=NOW)


def scaled(replicas: int | None) -> StatefulSetSpec:
    return StatefulSetSpec(replicas=replicas, template=TEMPLATE)


def job(*conditions: str, parallelism: int | None = None, suspend: bool = False) -> Job:
    return Job(
        metadata=META,
        spec=JobSpec(parallelism=parallelism, suspend=suspend, template=TEMPLATE),
        status=JobStatus(
            conditions=tuple(Condition(type=type_, status="True") for type_ in conditions)
        ),
    )


@pytest.mark.parametrize(
    ("workload", "phase", "wants"),
    [
        (Deployment(metadata=META, spec=scaled(None)), WorkloadPhase.ACTIVE, 1),
        (Deployment(metadata=META, spec=scaled(600)), WorkloadPhase.ACTIVE, 600),
        (Deployment(metadata=META, spec=scaled(0)), WorkloadPhase.IDLE, 0),
        (StatefulSet(metadata=META, spec=scaled(0)), WorkloadPhase.IDLE, 0),
        (job(), WorkloadPhase.ACTIVE, 1),
        (job(parallelism=4), WorkloadPhase.ACTIVE, 4),
        (job(parallelism=4, suspend=True), WorkloadPhase.IDLE, 0),
        (job("Complete"), WorkloadPhase.ENDED, 1),
        (job("Failed"), WorkloadPhase.ENDED, 1),
        (job("SuccessCriteriaMet"), WorkloadPhase.ACTIVE, 1),
        (job("FailureTarget"), WorkloadPhase.ACTIVE, 1),
        (StatefulSet(metadata=GOING, spec=scaled(3)), WorkloadPhase.IDLE, 0),
        (replace(job(), metadata=GOING), WorkloadPhase.IDLE, 0),
        (replace(job("Complete"), metadata=GOING), WorkloadPhase.ENDED, 0),
        (Deployment(metadata=GOING, spec=scaled(3)), WorkloadPhase.ACTIVE, 3),
    ],
)
def test_a_workload(workload: Workload, phase: WorkloadPhase, wants: int) -> None:
    owners = frozenset() if isinstance(workload, Deployment) else frozenset({"u"})
    expected = WorkloadState(
        phase,
        "u",
        wants=wants,
        deleting=workload.metadata is GOING,
        pod_owners=owners,
        fixed_template=isinstance(workload, Job),
    )
    assert observe(workload, "slice") == expected


def test_claims_count_only_when_the_template_names_them_directly() -> None:
    assert named_claims(TEMPLATE) == ("slice", "other")
    workload = Deployment(metadata=META, spec=scaled(1))
    assert observe(workload, "other").names_claim
    assert not observe(workload, "generated").names_claim


def replica_set(name: str, replicas: int, owner: str | None) -> ReplicaSet:
    owners = (OwnerReference(kind="Deployment", name="w", uid=owner or "", controller=True),)
    return ReplicaSet(
        metadata=ObjectMeta(name=name, owner_references=owners if owner else ()),
        spec=scaled(replicas),
    )


def test_replica_sets_that_outlive_their_deployment_are_its_heirs() -> None:
    sets = [
        replica_set("not-collected-yet", 3, "u"),
        replica_set("orphaned", 3, None),
        replica_set("scaled-down", 0, "u"),
        replica_set("adopted-by-another", 3, "v"),
    ]
    assert orphaned_replica_sets_of("u", "slice", sets) == ("not-collected-yet", "orphaned")
    assert orphaned_replica_sets_of("u", "unnamed", sets) == ()


def test_a_replica_set_that_is_being_deleted_makes_no_pods() -> None:
    going = replace(replica_set("going", 3, "u"), metadata=GOING)
    assert orphaned_replica_sets_of("u", "slice", [going]) == ()


@pytest.mark.parametrize(
    ("sets", "phase", "wants"),
    [
        ([replica_set("rs", 3, "u")], WorkloadPhase.ACTIVE, 3),
        ([replica_set("rs", 0, "u")], WorkloadPhase.IDLE, 0),
        ([], WorkloadPhase.IDLE, 0),
    ],
)
def test_a_deployment_that_is_kept_from_going_wants_pods_for_as_long_as_its_replica_sets(
    sets: list[ReplicaSet], phase: WorkloadPhase, wants: int
) -> None:
    stuck = Deployment(metadata=GOING, spec=scaled(3))
    found = observe(stuck, "slice", sets)
    assert (found.phase, found.uid, found.wants) == (phase, "u", wants)
    stays = Deployment(metadata=META, spec=scaled(3))
    assert observe(stays, "slice", []).wants == 3


def test_the_pods_of_a_deployment_are_those_of_its_replica_sets() -> None:
    sets = [replica_set("old", 0, "u"), replica_set("new", 3, "u"), replica_set("other", 3, "v")]
    named = [
        replace(each, metadata=replace(each.metadata, uid=each.metadata.name)) for each in sets
    ]
    deployment = Deployment(metadata=META, spec=scaled(3))
    assert observe(deployment, "slice", named).pod_owners == {"old", "new"}


def test_a_workload_that_is_gone_has_ended_only_without_heirs() -> None:
    assert WorkloadState(WorkloadPhase.ABSENT).ended
    assert not WorkloadState(WorkloadPhase.ABSENT, orphaned_replica_sets=("rs",)).ended
    assert not WorkloadState(WorkloadPhase.UNSEEN).ended


@pytest.mark.parametrize(
    ("template", "pods", "expected"),
    [
        ("", [], ""),
        ("", [owned(running("a"), "uid-train")], ""),
        ("", [owned(running("a", group="made"), "uid-train")], "made"),
        ("", [owned(running("a", group="made"), "another")], ""),
        ("train", [owned(running("a", group="made"), "uid-train")], "train"),
    ],
    ids=["no pods", "no group", "the group of its pods", "pods of others", "the template"],
)
def test_the_group_of_a_workload(template: str, pods: list[Pod], expected: str) -> None:
    """The Job controller sets the group on pods, and not in the template."""
    state = WorkloadState(
        WorkloadPhase.ACTIVE, "uid-train", pod_group=template, pod_owners=frozenset({"uid-train"})
    )
    assert with_group_of_pods(state, pods).pod_group == expected
