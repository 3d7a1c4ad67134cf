"""Pods and workloads with sticky claims."""

from __future__ import annotations

from msgspec.structs import replace

from claimctl.reservation.facts.workloads import JudgedWorkload
from claimctl.reservation.kinds.rules import Verdict
from claimctl.wire.meta import ObjectMeta, OwnerReference
from claimctl.wire.pods import Pod, PodResourceClaim, PodSchedulingGroup, PodSpec, PodTemplateSpec
from claimctl.wire.reservations import (
    STICKY_ANNOTATION,
    STICKY_CLAIMS_ANNOTATION,
    WorkloadRef,
)
from claimctl.wire.workloads import (
    Job,
    JobSpec,
    JobStatus,
    StatefulSet,
    StatefulSetOrdinals,
    StatefulSetSpec,
    Workload,
)

SET = WorkloadRef(api_group="apps", kind="StatefulSet", name="train")
OWNER = OwnerReference(
    api_version="apps/v1", kind="StatefulSet", name="train", uid="uid-train", controller=True
)
NAME = "train-2.sts.gpu.big"
GROUPS = WorkloadRef(api_group="leaderworkerset.x-k8s.io", kind="LeaderWorkerSet", name="train")


def pod(
    claim: str = NAME,
    note: str | None = "gpu=big",
    owner: OwnerReference = OWNER,
    name: str = "train-2",
) -> Pod:
    annotations = {} if note is None else {STICKY_CLAIMS_ANNOTATION: note}
    return Pod(
        metadata=ObjectMeta(
            name=name,
            annotations={STICKY_ANNOTATION: "*"} | annotations,
            owner_references=(owner,),
        ),
        spec=PodSpec(resource_claims=(PodResourceClaim(name="gpu", resource_claim_name=claim),)),
    )


def member(group: int, member: int, claim: str = "") -> Pod:
    """A pod of a LeaderWorkerSet, with its sticky claim."""
    leader = f"train-{group}"
    owner = replace(OWNER, name=leader if member else "train")
    name = f"{leader}-{member}" if member else leader
    return pod(claim or f"train-{group}-{member}.lws.gpu.big", owner=owner, name=name)


def leader_worker_set(groups: int | None = 2, size: int | None = 2, idle: bool = False) -> Workload:
    """A LeaderWorkerSet as its rule sees it."""
    return JudgedWorkload(
        api_version="leaderworkerset.x-k8s.io/v1",
        metadata=ObjectMeta(name="train", uid="uid-train"),
        verdict=Verdict(idle=idle, ordinals=(groups, size)),
    )


def template(
    sticky: str | None = "*", *entries: tuple[str, str], group: str = ""
) -> PodTemplateSpec:
    made = entries or (("gpu", "big"),)
    return PodTemplateSpec(
        metadata=ObjectMeta(annotations=None if sticky is None else {STICKY_ANNOTATION: sticky}),
        spec=PodSpec(
            scheduling_group=PodSchedulingGroup(pod_group_name=group) if group else None,
            resource_claims=tuple(
                PodResourceClaim(name=name, resource_claim_template_name=made)
                for name, made in made
            ),
        ),
    )


def stateful_set(
    replicas: int | None = 3, start: int = 0, sticky: str | None = "*", group: str = ""
) -> StatefulSet:
    return StatefulSet(
        metadata=ObjectMeta(name="train", uid="uid-train"),
        spec=StatefulSetSpec(
            replicas=replicas,
            ordinals=StatefulSetOrdinals(start=start) if start else None,
            template=template(sticky, group=group),
        ),
    )


def job(completed: str = "", failed: str | None = None, completions: int | None = 8) -> Job:
    return Job(
        metadata=ObjectMeta(name="train", uid="uid-train"),
        spec=JobSpec(completions=completions, completion_mode="Indexed", template=template()),
        status=JobStatus(completed_indexes=completed, failed_indexes=failed),
    )
