"""Pods of a claim: which use it, which are done, and which may be ghosts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from claimctl.wire.meta import find_condition
from claimctl.wire.pods import ContainerStatus, Pod, PodResourceClaim, PodResourceClaimStatus

TERMINAL_PHASES = frozenset({"Succeeded", "Failed"})
DISRUPTED, SWEPT = "DisruptionTarget", "DeletionByPodGC"
"""The condition and reason that PodGC sets on a pod whose node is gone (since Kubernetes 1.26)."""


def claim_names(pod: Pod) -> frozenset[str]:
    """The claims that a pod uses, from the three fields that can name one."""
    named, status = _named(pod.spec.resource_claims), pod.status
    if status.resource_claim_statuses:
        named |= _named(status.resource_claim_statuses)
    if status.extended_resource_claim_status is not None:
        named |= {status.extended_resource_claim_status.resource_claim_name} - {""}
    return named


@lru_cache(maxsize=10_000)
def _named(claims: tuple[PodResourceClaim | PodResourceClaimStatus, ...]) -> frozenset[str]:
    """The names in the entries. The pods of a workload have equal entries."""
    return frozenset(filter(None, (each.resource_claim_name for each in claims)))


def is_bound(pod: Pod) -> bool:
    return bool(pod.spec.node_name)


def is_done(pod: Pod) -> bool:
    """Whether the pod certainly uses no device any more.

    A terminal phase alone does not prove it. PodGC sets the phase Failed on the pods of a lost
    node, although their containers may be running, whatever the status says of them. PodGC sets no
    condition if an administrator has tainted the node as out of service; by this taint, the
    administrator states that nothing runs there.
    """
    if pod.status.phase in TERMINAL_PHASES:
        if is_bound(pod) and _swept(pod):
            return _all_terminated(pod)
        return not any(container.state.running for container in _containers(pod))
    return pod.metadata.deleting and not is_bound(pod)


def _swept(pod: Pod) -> bool:
    condition = find_condition(pod.status.conditions, DISRUPTED)
    return condition is not None and condition.reason == SWEPT


def _all_terminated(pod: Pod) -> bool:
    terminated = all(container.state.terminated for container in _containers(pod))
    return terminated and bool(pod.status.container_statuses)


def is_finished(pod: Pod) -> bool:
    """Whether the pod is done, was bound, and its object still exists.

    kube-controller-manager may remove such a pod from a list and add it again without end.
    """
    return is_done(pod) and is_bound(pod)


def vanishes_as_ghost(last: Pod) -> bool:
    """Whether a pod that is gone, and that was last seen as ``last``, may still use its devices.

    A kubelet sets a terminal phase after the containers have stopped, and before the pod's object
    may be removed. A bound pod that vanished without it may still be running.
    """
    return is_bound(last) and not is_done(last)


def unschedulable_since(pod: Pod) -> datetime | None:
    """The time since which the pod is unschedulable, by its condition PodScheduled; or None."""
    condition = find_condition(pod.status.conditions, "PodScheduled")
    if condition is None or condition.status != "False" or condition.reason != "Unschedulable":
        return None
    return condition.last_transition_time


def is_stuck(pod: Pod) -> bool:
    """Whether a scheduler found no node for the pod, and is not binding the pod now.

    While the pod is being bound, its condition stays Unschedulable. From Kubernetes 1.35 on, the
    pod is nominated to the node then.
    """
    return not pod.status.nominated_node_name and unschedulable_since(pod) is not None


def failed_to_bind(pod: Pod) -> bool:
    """Whether a scheduler failed at the pod by an error, such as a conflict, and tries it again."""
    condition = find_condition(pod.status.conditions, "PodScheduled")
    return condition is not None and condition.reason == "SchedulerError"


def _containers(pod: Pod) -> Iterator[ContainerStatus]:
    yield from pod.status.container_statuses
    yield from pod.status.init_container_statuses
    yield from pod.status.ephemeral_container_statuses


@dataclass(frozen=True, slots=True)
class Consumers:
    """The pods that name one claim, by state, each with its UID as key."""

    bound: dict[str, Pod]
    pending: dict[str, Pod]
    """Pods that are not bound yet. A listed one may be bound at any moment."""
    finished: dict[str, Pod]
    dropped: dict[str, Pod]
    """Pods that are being deleted and were never bound."""

    @classmethod
    def of(cls, pods: Iterable[Pod]) -> Consumers:
        sorted_ = cls({}, {}, {}, {})
        for pod in pods:
            sorted_._place(pod)[pod.metadata.uid] = pod
        return sorted_

    def _place(self, pod: Pod) -> dict[str, Pod]:
        if is_done(pod):
            return self.finished if is_bound(pod) else self.dropped
        return self.bound if is_bound(pod) else self.pending

    @property
    def count(self) -> int:
        """The number of pods that use the claim, or will soon."""
        return len(self.bound) + sum(not is_stuck(pod) for pod in self.pending.values())

    def nodes(self) -> tuple[str, ...]:
        """The nodes of the bound pods, sorted."""
        return tuple(sorted({pod.spec.node_name for pod in self.bound.values()}))
