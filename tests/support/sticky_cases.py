"""Pods and workloads with sticky claims."""

from __future__ import annotations

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
)

SET = WorkloadRef(api_group="apps", kind="StatefulSet", name="train")
OWNER = OwnerReference(
    api_version="apps/v1", kind="StatefulSet", name="train", uid="uid-train", controller=True
)
NAME = "train-2.sts.gpu.big"


def pod(claim: str = NAME, note: str | None = "gpu=big", owner: OwnerReference = OWNER) -> Pod:
    annotations = {} if note is None else {STICKY_CLAIMS_ANNOTATION: note}
    return Pod(
        metadata=ObjectMeta(
            name="train-2",
            annotations={STICKY_ANNOTATION: "*"} | annotations,
            owner_references=(owner,),
        ),
        spec=PodSpec(resource_claims=(PodResourceClaim(name="gpu", resource_claim_name=claim),)),
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
