"""Workloads seen from a claim: whether they want pods now, may want some later, or have ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from claimctl.reservation.pods import claim_names
from claimctl.wire.nodes import Toleration
from claimctl.wire.pods import Pod, PodSpec, PodTemplateSpec
from claimctl.wire.reservations import POD_GROUP_ANNOTATION
from claimctl.wire.workloads import Deployment, Job, ReplicaSet, Workload

INJECT = "inject"
"""The value of the annotation that allows claimctl to change the workload's pod template."""


class Life(StrEnum):
    """What may still come of a workload."""

    ACTIVE = "Active"
    """Wants pods."""
    IDLE = "Idle"
    """Wants none now, but may again: scaled to 0, suspended."""
    ENDED = "Ended"
    """Will create no more pods."""
    UNSEEN = "Unseen"
    """Not in the cache; whether it is gone has to be asked of the API server."""
    ABSENT = "Absent"
    """Confirmed not to exist."""
    UNREADABLE = "Unreadable"
    """It is there, and what it wants cannot be read."""


@dataclass(frozen=True, slots=True)
class WorkloadState:
    """One incarnation of a workload, or the lack of one under that name."""

    life: Life
    uid: str = ""
    wants: int = 0
    """How many pods it wants at the same time."""
    orphaned_replica_sets: tuple[str, ...] = ()
    """Names of ReplicaSets that may go on making pods after the workload's own end."""
    names_claim: bool = True
    """Whether its pod template names the claim by resourceClaimName."""
    pod_group: str = ""
    """The PodGroup that its pod template names, or ''."""
    injects: bool = False
    """Whether it asks for the template to be given a PodGroup."""
    confirmed: bool = False
    """Whether it was read live, and not from a cache that may be late."""
    tolerations: tuple[Toleration, ...] = ()
    """Of its pod template."""
    problem: str = ""
    """What cannot be read, where that is so."""

    @property
    def exists(self) -> bool:
        return bool(self.uid)

    @property
    def ended(self) -> bool:
        return self.life is Life.ENDED or (
            self.life is Life.ABSENT and not self.orphaned_replica_sets
        )


def observe(
    workload: Workload, claim_name: str, replica_sets: Iterable[ReplicaSet] | None = None
) -> WorkloadState:
    """The state of a workload whose object is there.

    A finalizer may keep one that is being deleted for as long as it likes. Its controller makes
    nothing more for it then; but the ReplicaSets of a Deployment go on until they are collected.

    Args:
        replica_sets: those that may make pods with the claim; None where they are not known.
    """
    wants = wanted_pods(workload)
    if workload.metadata.deleting and isinstance(workload, Deployment):
        known = replica_sets is not None
        left = orphaned_replica_sets_of(workload.metadata.uid, claim_name, replica_sets or ())
        wants = wants if left or not known else 0
    life = Life.ENDED if _finished_job(workload) else Life.ACTIVE if wants else Life.IDLE
    return WorkloadState(
        life=life,
        uid=workload.metadata.uid,
        wants=wants,
        names_claim=template_names(workload.spec.template, claim_name),
        pod_group=group_of(workload.spec.template.spec),
        injects=workload.metadata.annotation(POD_GROUP_ANNOTATION) == INJECT,
        tolerations=workload.spec.template.spec.tolerations,
    )


def group_of(spec: PodSpec) -> str:
    """The PodGroup that a pod, or a pod template, names; '' without one."""
    group = spec.scheduling_group
    return (group.pod_group_name or "") if group is not None else ""


def wanted_pods(workload: Workload | ReplicaSet) -> int:
    """How many pods may run at once; unset replicas and parallelism mean 1 (API defaults).

    The controllers of StatefulSets, ReplicaSets and Jobs make no pods for what is being deleted.
    """
    if workload.metadata.deleting and not isinstance(workload, Deployment):
        return 0
    if isinstance(workload, Job):
        return 0 if workload.spec.suspend else _or_one(workload.spec.parallelism)
    return _or_one(workload.spec.replicas)


def _or_one(number: int | None) -> int:
    return 1 if number is None else number


def _finished_job(workload: Workload) -> bool:
    return isinstance(workload, Job) and any(
        condition.type in {"Complete", "Failed"} and condition.status == "True"
        for condition in workload.status.conditions
    )


def template_names(template: PodTemplateSpec, claim_name: str) -> bool:
    """Whether pods of this template use the claim by name (generated claims never count)."""
    return claim_name in claim_names(Pod(spec=template.spec))


def named_claims(template: PodTemplateSpec) -> tuple[str, ...]:
    """The claims a pod template names by resourceClaimName, in its order, each once."""
    names = [claim.resource_claim_name for claim in template.spec.resource_claims]
    return tuple(dict.fromkeys(name for name in names if name))


def orphaned_replica_sets_of(
    uid: str, claim_name: str, replica_sets: Iterable[ReplicaSet]
) -> tuple[str, ...]:
    """ReplicaSets that go on making pods for the claim although their Deployment is gone.

    Garbage collection may not have come by yet (the owner's UID is still there), or the
    Deployment was deleted with cascade=orphan (nobody controls the ReplicaSet).
    """
    return tuple(
        sorted(
            replica_set.metadata.name
            for replica_set in replica_sets
            if wanted_pods(replica_set)
            and template_names(replica_set.spec.template, claim_name)
            and _left_by(replica_set, uid)
        )
    )


def _left_by(replica_set: ReplicaSet, uid: str) -> bool:
    owner = replica_set.metadata.controller()
    return owner is None or owner.uid == uid
