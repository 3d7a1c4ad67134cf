"""Turning workload references into pod references, so that a feature can be switched off.

Without the feature the kubelet looks for the pod itself in ``status.reservedFor``; so every pod
that may be running has to stand there, and nothing but pods may hold the claim.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from claimctl.reservation.consumers import Consumers
from claimctl.reservation.references import (
    LIMIT,
    WORKLOAD_RESOURCES,
    is_pod,
    is_pod_group,
    is_tombstone,
    is_workload,
    pod_reference,
)
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.pods import Pod

_RESERVED_FOR = frozenset((group, resource) for (group, _), resource in WORKLOAD_RESOURCES.items())


class Obstacle(StrEnum):
    """Why the holders of a claim cannot be written as pods."""

    TOO_MANY_CONSUMERS = "TooManyConsumers"
    GENERATED_FOR_POD_GROUP = "GeneratedForPodGroup"
    BEING_DELETED = "BeingDeleted"
    NO_CONSUMER = "NoConsumer"
    UNKNOWN_REFERENCE = "UnknownReference"


@dataclass(frozen=True, slots=True)
class Expanded:
    """The list as it should be written."""

    reserved_for: tuple[Reference, ...]
    removed: tuple[Reference, ...]
    """The workload references that are not in it any more."""

    @property
    def pods(self) -> int:
        return sum(map(is_pod, self.reserved_for))


@dataclass(frozen=True, slots=True)
class Refused:
    """The claim has to stay as it is; ``message`` names the workload and what would help."""

    obstacle: Obstacle
    message: str
    pods: int = 0


@dataclass(frozen=True, slots=True)
class Unchanged:
    """There is nothing to write."""

    pods: int = 0
    by_pods: bool = False
    """Allocated, and held by pods alone."""


Expansion = Expanded | Refused | Unchanged


def workload_references(claim: ResourceClaim) -> tuple[Reference, ...]:
    """The references that an expansion has to replace."""
    return tuple(filter(is_workload, claim.status.reserved_for))


def expand(
    claim: ResourceClaim,
    pods: Iterable[Pod],
    *,
    again: bool = False,
    tombstones: bool = True,
) -> Expansion:
    """Write the holders of a claim as pods.

    Args:
        claim: the claim under the version that will be the write's precondition.
        pods: those that name the claim, from a live LIST that began after that version was read.
        again: the workload references were taken out before; where none is left, pods that are
            bound and not listed are still added.
        tombstones: whether a controller goes on looking after them. Without one they would stay
            for ever and keep KCM from deallocating, so they go.
    """
    listed = claim.status.reserved_for
    workloads = workload_references(claim)
    consumers = Consumers.of(pods)
    missing = _missing(listed, consumers)
    if claim.status.allocation is None:
        return Unchanged()
    if not workloads and not (again and missing):
        return Unchanged(pods=sum(map(is_pod, listed)), by_pods=True)
    kept = _kept(listed, consumers) if workloads else listed
    reserved_for = _with_marks((*kept, *missing), consumers, tombstones)
    return _refusal(claim, workloads, reserved_for) or Expanded(reserved_for, workloads)


def _missing(listed: tuple[Reference, ...], consumers: Consumers) -> tuple[Reference, ...]:
    """Pods that use the claim and are not in the list, sorted."""
    known = {entry.uid for entry in listed if is_pod(entry)}
    pods = (pod for uid, pod in consumers.bound.items() if uid not in known)
    return tuple(
        sorted(
            (pod_reference(pod.metadata) for pod in pods),
            key=lambda reference: (reference.name, reference.uid),
        )
    )


def _kept(listed: tuple[Reference, ...], consumers: Consumers) -> tuple[Reference, ...]:
    """The list without workloads and without pods that are gone or done.

    A listed pod without a node may be between the scheduler's two writes (claim, then binding).
    """
    alive = consumers.bound.keys() | consumers.pending.keys()
    return tuple(
        entry for entry in listed if is_tombstone(entry) or (is_pod(entry) and entry.uid in alive)
    )


def _with_marks(
    entries: tuple[Reference, ...], consumers: Consumers, tombstones: bool
) -> tuple[Reference, ...]:
    """Leave out tombstones that mark nothing, and all of them where living pods need the room."""
    marked = consumers.finished.keys() if tombstones and len(entries) <= LIMIT else frozenset()
    return tuple(entry for entry in entries if not is_tombstone(entry) or entry.uid in marked)


def _refusal(
    claim: ResourceClaim, workloads: tuple[Reference, ...], reserved_for: tuple[Reference, ...]
) -> Refused | None:
    pods = sum(map(is_pod, reserved_for))
    found = _obstacle(claim, workloads, reserved_for)
    return Refused(found, _explain(found, claim, workloads, pods), pods) if found else None


def _obstacle(
    claim: ResourceClaim, workloads: tuple[Reference, ...], reserved_for: tuple[Reference, ...]
) -> Obstacle | None:
    if _generated_for_group(claim):
        return Obstacle.GENERATED_FOR_POD_GROUP
    if claim.metadata.deleting:
        return Obstacle.BEING_DELETED
    if any(not _may_go(claim, reference) for reference in workloads):
        return Obstacle.UNKNOWN_REFERENCE
    if len(reserved_for) > LIMIT:
        return Obstacle.TOO_MANY_CONSUMERS
    return None if any(map(is_pod, reserved_for)) else Obstacle.NO_CONSUMER


def _generated_for_group(claim: ResourceClaim) -> bool:
    """Whether the claim was made from a PodGroup's template (its controller owner tells)."""
    owner = claim.metadata.controller()
    return (
        owner is not None
        and owner.kind == "PodGroup"
        and owner.api_version.startswith("scheduling.k8s.io/")
    )


def _may_go(claim: ResourceClaim, reference: Reference) -> bool:
    """Whether the reference comes from the feature, not from somebody's own hold.

    KEP-5194 lets any object stand in ``spec.reservedFor``, from where the scheduler copied it.
    """
    allocation = claim.status.allocation
    return (
        (allocation is not None and allocation.reserved_for_any_pod)
        or is_pod_group(reference)
        or (reference.api_group, reference.resource) in _RESERVED_FOR
    )


def _explain(
    obstacle: Obstacle, claim: ResourceClaim, workloads: tuple[Reference, ...], pods: int
) -> str:
    names = ", ".join(f"{workload.resource}/{workload.name}" for workload in workloads)
    holders = names or "its former workload"
    match obstacle:
        case Obstacle.TOO_MANY_CONSUMERS:
            return (
                f"{holders} runs {pods} pods on it and a claim lists at most {LIMIT}: scale down "
                f"to {LIMIT} pods or spread them over several claims"
            )
        case Obstacle.GENERATED_FOR_POD_GROUP:
            return (
                f"generated from the template of {holders}; without the feature its pods fail "
                "whatever is listed: move them to a claim of their own first"
            )
        case Obstacle.BEING_DELETED:
            return f"being deleted, so no pod of {holders} can be listed: wait until they are gone"
        case Obstacle.NO_CONSUMER:
            return (
                f"held by {holders} with no pod running; an empty list would leave its devices "
                f"allocated for good: scale up, or release it (claimctl release "
                f"{claim.metadata.name} -n {claim.metadata.namespace})"
            )
        case Obstacle.UNKNOWN_REFERENCE:
            return f"held by {holders}, of which some are not claimctl's: let their owner let go"
