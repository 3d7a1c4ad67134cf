"""Pods that their node does not run: refused by its kubelet, or stuck before the first container.

The reasons are those of k8s.io/kubernetes/pkg/kubelet/lifecycle, cm and eviction.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from claimctl.reservation.facts.pods import claim_names
from claimctl.wire.meta import find_condition
from claimctl.wire.traces import BRAKE_GATE
from claimctl_reschedule.shapes.scheduling import SchedulingContainerState, SchedulingPod

AVOIDS = "claimctl.io/avoids"
"""The annotation by which the admission policy marks the pods that it has changed."""
_FOR_ITSELF = {
    "PodOSNotSupported",
    "PodOSSelectorNodeLabelDoesNotMatch",
    "InitContainerRestartPolicyForbidden",
    "SysctlForbidden",
    "SupplementalGroupsPolicyNotSupported",
}
_BY_NODE = {
    "UnexpectedAdmissionError",
    "TopologyAffinityError",
    "NodeAffinity",
    "InvalidNodeInfo",
    "UnknownReason",
    "UnexpectedPredicateFailureType",
}
_OUT_OF = "OutOf"
_REJECTED = "Pod was rejected"
_CREATE_FAILED = "CreateContainerError"
_CDI_FAILED = "CDI device injection failed"
_STRANDED = ("is not allowed to use ResourceClaim", "is not allocated")
"""Errors of preparation that the controller mends or reports (StrandedPod)."""


class Refusal(StrEnum):
    """Why a kubelet refused a pod."""

    BY_NODE = "ByNode"
    FOR_ITSELF = "ForItself"
    """Every node would refuse the pod."""


def refusal(pod: SchedulingPod) -> Refusal | None:
    """Whether a kubelet refused the pod; no container of a refused pod ever ran."""
    status = pod.status
    ran = any(state.running or state.terminated for state in _states(pod))
    if status.phase != "Failed" or not pod.spec.node_name or ran:
        return None
    if status.reason in _FOR_ITSELF:
        return Refusal.FOR_ITSELF
    listed = status.reason in _BY_NODE or status.reason.startswith(_OUT_OF)
    return Refusal.BY_NODE if listed or status.message.startswith(_REJECTED) else None


def _states(pod: SchedulingPod) -> list[SchedulingContainerState]:
    """Of all containers."""
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return [status.state for status in statuses]


def refused_at(pod: SchedulingPod) -> datetime | None:
    """When the kubelet saw the pod, else when the pod was created."""
    return pod.status.start_time or pod.metadata.creation_timestamp


def why_stuck(
    pod: SchedulingPod, unprepared: Mapping[str, str], now: datetime, seconds: float
) -> str:
    """Why a bound pod cannot start, in a few words; '' if it can, or may need more time: it is
    given ``seconds``, and twice that where the controller may help it. ``unprepared`` is what
    kubelets reported about pods whose devices they cannot prepare, by UID."""
    if not pod.spec.node_name or pod.metadata.deleting or not claim_names(pod):
        return ""
    sandbox = find_condition(pod.status.conditions, "PodReadyToStartContainers")
    if pod.status.phase == "Pending" and not (sandbox and sandbox.status == "True"):
        return _unprepared(pod, unprepared.get(pod.metadata.uid, ""), now, seconds)
    if pod.status.phase in ("Pending", "Running") and _lacks_cdi(pod):
        ready = find_condition(pod.status.conditions, "Ready")
        since = ready.last_transition_time if ready else pod.metadata.creation_timestamp
        return _CDI_FAILED if _is_over(since, now, seconds) else ""
    return ""


def _unprepared(pod: SchedulingPod, error: str, now: datetime, seconds: float) -> str:
    if not error:
        return ""
    bound = find_condition(pod.status.conditions, "PodScheduled")
    since = bound.last_transition_time if bound else pod.metadata.creation_timestamp
    patience = 2 if any(text in error for text in _STRANDED) else 1
    return error if _is_over(since, now, patience * seconds) else ""


def _is_over(since: datetime | None, now: datetime, seconds: float) -> bool:
    return since is not None and now - since >= timedelta(seconds=seconds)


def _lacks_cdi(pod: SchedulingPod) -> bool:
    """Whether a container waits for devices that the node forgot at a reboot. See
    kubernetes/kubernetes#141433."""
    waiting = [state.waiting for state in _states(pod) if state.waiting is not None]
    return any(wait.reason == _CREATE_FAILED and _CDI_FAILED in wait.message for wait in waiting)


def is_braked(pod: SchedulingPod) -> bool:
    """Whether the pod waits because of the brake."""
    return any(gate.name == BRAKE_GATE for gate in pod.spec.scheduling_gates)
