"""The state of a claim's workloads: do they want pods now, perhaps later, or never again?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from claimctl.reservation.facts.pods import claim_names, group_of
from claimctl.wire.pods import Pod, PodTemplateSpec
from claimctl.wire.reservations import POD_GROUP_ANNOTATION
from claimctl.wire.workloads import Deployment, Job, ReplicaSet, Workload

INJECT = "inject"
"""The value of the annotation that allows claimctl to change the workload's pod template."""


class WorkloadPhase(StrEnum):
    """Whether a workload wants pods, or what is known about that."""

    ACTIVE = "Active"
    """The workload wants pods."""
    IDLE = "Idle"
    """The workload wants no pods now and may want some later: it is scaled to 0 or suspended."""
    ENDED = "Ended"
    """The workload will create no more pods."""
    UNSEEN = "Unseen"
    """The cache lacks the workload; only a live read shows whether it is gone."""
    ABSENT = "Absent"
    """The API server has confirmed that the workload does not exist."""
    UNREADABLE = "Unreadable"
    """The workload exists and cannot be read."""


@dataclass(frozen=True, slots=True)
class WorkloadState:
    """The state of one incarnation of a workload, or that none exists under the name."""

    phase: WorkloadPhase
    uid: str = ""
    wants: int = 0
    """The number of pods that the workload wants at the same time."""
    orphaned_replica_sets: tuple[str, ...] = ()
    """Names of ReplicaSets that may go on making pods after the workload is gone."""
    names_claim: bool = True
    """Whether the pod template names the claim by resourceClaimName."""
    pod_group: str = ""
    """The PodGroup that the pod template names, or ''."""
    injects: bool = False
    """Whether the workload allows claimctl to put a PodGroup into its pod template."""
    confirmed: bool = False
    """Whether the workload was read live, and not from a cache."""
    pod_owners: frozenset[str] = frozenset()
    """UIDs of the objects that control this incarnation's pods: the workload itself, or the
    ReplicaSets of a Deployment."""
    problem: str = ""
    """For UNREADABLE: what cannot be read."""

    @property
    def exists(self) -> bool:
        return bool(self.uid)

    @property
    def ended(self) -> bool:
        return self.phase is WorkloadPhase.ENDED or (
            self.phase is WorkloadPhase.ABSENT and not self.orphaned_replica_sets
        )


def observe(
    workload: Workload, claim_name: str, replica_sets: Iterable[ReplicaSet] | None = None
) -> WorkloadState:
    """The state of a workload whose object exists.

    A finalizer may keep a workload that is being deleted for a long time. Its controller makes no
    pods then. But the ReplicaSets of a deleted Deployment make pods until they are collected.

    Args:
        replica_sets: the ReplicaSets that may make pods with the claim; None if unknown.
    """
    wants, uid = wanted_pods(workload), workload.metadata.uid
    owners = frozenset((uid,))
    if isinstance(workload, Deployment):
        metas = [replica_set.metadata for replica_set in replica_sets or ()]
        owners = frozenset(m.uid for m in metas if (owner := m.controller()) and owner.uid == uid)
        if workload.metadata.deleting and replica_sets is not None:
            wants = wants if orphaned_replica_sets_of(uid, claim_name, replica_sets) else 0
    phase = WorkloadPhase.ACTIVE if wants else WorkloadPhase.IDLE
    return WorkloadState(
        phase=WorkloadPhase.ENDED if is_finished_job(workload) else phase,
        uid=uid,
        wants=wants,
        names_claim=template_names(workload.spec.template, claim_name),
        pod_group=group_of(workload.spec.template.spec),
        injects=workload.metadata.annotation(POD_GROUP_ANNOTATION) == INJECT,
        pod_owners=owners,
    )


def wanted_pods(workload: Workload | ReplicaSet) -> int:
    """The number of pods that may run at once. Unset replicas or parallelism mean 1 (API defaults).

    The controllers of StatefulSets, ReplicaSets and Jobs make no pods for a deleted object.
    """
    if workload.metadata.deleting and not isinstance(workload, Deployment):
        return 0
    if isinstance(workload, Job):
        number = 0 if workload.spec.suspend else workload.spec.parallelism
    else:
        number = workload.spec.replicas
    return 1 if number is None else number


def is_finished_job(workload: Workload) -> bool:
    return isinstance(workload, Job) and any(
        condition.type in {"Complete", "Failed"} and condition.status == "True"
        for condition in workload.status.conditions
    )


def template_names(template: PodTemplateSpec, claim_name: str) -> bool:
    """Whether pods of this template name the claim. Generated claims do not count."""
    return claim_name in claim_names(Pod(spec=template.spec))


def named_claims(template: PodTemplateSpec) -> tuple[str, ...]:
    """The claims that a pod template names by resourceClaimName, in its order, each once."""
    names = [claim.resource_claim_name for claim in template.spec.resource_claims]
    return tuple(dict.fromkeys(name for name in names if name))


def orphaned_replica_sets_of(
    uid: str, claim_name: str, replica_sets: Iterable[ReplicaSet]
) -> tuple[str, ...]:
    """The ReplicaSets that go on making pods for the claim although their Deployment is gone.

    Either garbage collection has not deleted the ReplicaSet yet (it names the owner's UID), or the
    Deployment was deleted with cascade=orphan (the ReplicaSet has no controller).
    """
    return tuple(
        sorted(
            replica_set.metadata.name
            for replica_set in replica_sets
            if wanted_pods(replica_set)
            and template_names(replica_set.spec.template, claim_name)
            and ((owner := replica_set.metadata.controller()) is None or owner.uid == uid)
        )
    )
