"""Pods seen from a claim: who uses it, who is done, and who may still use it unseen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from claimctl.wire.meta import find_condition
from claimctl.wire.pods import ContainerStatus, Pod

TERMINAL_PHASES = frozenset({"Succeeded", "Failed"})
DISRUPTED, SWEPT = "DisruptionTarget", "DeletionByPodGC"
"""Condition and reason by which PodGC marks a pod whose node is gone (Kubernetes 1.26)."""


def claim_names(pod: Pod) -> frozenset[str]:
    """The claims a pod uses, from the three places that can name one."""
    return frozenset(_claim_names(pod))


def _claim_names(pod: Pod) -> Iterator[str]:
    for claim in pod.spec.resource_claims:
        if claim.resource_claim_name:
            yield claim.resource_claim_name
    for status in pod.status.resource_claim_statuses:
        if status.resource_claim_name:
            yield status.resource_claim_name
    extended = pod.status.extended_resource_claim_status
    if extended is not None and extended.resource_claim_name:
        yield extended.resource_claim_name


def is_bound(pod: Pod) -> bool:
    return bool(pod.spec.node_name)


def is_done(pod: Pod) -> bool:
    """Whether the pod certainly uses no device any more.

    A terminal phase alone proves nothing: PodGC patches phase Failed onto the pods of a lost
    node while their containers are still 'running' in the status, or had not been reported to
    run. (It leaves no mark where an administrator has tainted the node as out of service: that
    is a word that nothing runs there.)
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
    told = all(container.state.terminated for container in _containers(pod))
    return told and bool(pod.status.container_statuses)


def is_finished(pod: Pod) -> bool:
    """Done, was bound, and its object is still there: what KCM's loop feeds on."""
    return is_done(pod) and is_bound(pod)


def vanishes_as_ghost(last: Pod) -> bool:
    """Whether a pod whose object is gone, last seen like this, may still use its devices.

    A kubelet sets a terminal phase after the containers have stopped and before it lets a pod
    go; who was bound and vanished otherwise may still be running.
    """
    return is_bound(last) and not is_done(last)


def unschedulable_since(pod: Pod) -> datetime | None:
    """Since when the scheduler has found no place for the pod, or None."""
    condition = find_condition(pod.status.conditions, "PodScheduled")
    if condition is None or condition.status != "False" or condition.reason != "Unschedulable":
        return None
    return condition.last_transition_time


def _containers(pod: Pod) -> Iterator[ContainerStatus]:
    yield from pod.status.container_statuses
    yield from pod.status.init_container_statuses
    yield from pod.status.ephemeral_container_statuses


@dataclass(frozen=True, slots=True)
class Consumers:
    """The pods that name one claim, sorted by what they mean for it; keyed by UID."""

    bound: dict[str, Pod]
    pending: dict[str, Pod]
    """Not bound yet; a listed one may be bound at any moment."""
    finished: dict[str, Pod]
    dropped: dict[str, Pod]
    """Being deleted and never bound."""

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
        return len(self.bound) + len(self.pending)

    def nodes(self) -> tuple[str, ...]:
        """The nodes on which the claim is in use, sorted."""
        return tuple(sorted({pod.spec.node_name for pod in self.bound.values()}))
