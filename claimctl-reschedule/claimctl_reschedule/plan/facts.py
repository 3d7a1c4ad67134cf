"""What is true of a pod: whether it is critical, which goes first, and what a plan relied on.

A run compares these facts before it evicts, and skips a pod that no longer matches.
"""

from __future__ import annotations

from collections.abc import Collection

from claimctl.reservation.facts.pods import claim_names
from claimctl.wire.meta import find_condition
from claimctl.wire.pods import Pod
from claimctl_reschedule.plan.plan import Facts, PodRef
from claimctl_reschedule.plan.policy import CRITICAL_PRIORITY
from claimctl_reschedule.plan.requests import pod_requests
from claimctl_reschedule.plan.world import WorldPod
from claimctl_reschedule.shapes.scheduling import SchedulingPod

EVICT = "descheduler.alpha.kubernetes.io/evict"
PREFER_NO_EVICTION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
CRITICAL = "scheduler.alpha.kubernetes.io/critical-pod"
MIRROR = "kubernetes.io/config.mirror"
SOURCE = "kubernetes.io/config.source"
ANNOTATIONS = (EVICT, PREFER_NO_EVICTION, DO_NOT_DISRUPT, SAFE_TO_EVICT, CRITICAL, MIRROR, SOURCE)
"""The annotations that the evictor's rules read. A cache may drop all others."""


def reference(pod: SchedulingPod) -> PodRef:
    meta = pod.metadata
    return PodRef(namespace=meta.namespace, name=meta.name, uid=meta.uid, node=pod.spec.node_name)


def by_name(pod: SchedulingPod) -> tuple[str, str, str]:
    """Namespace, name and UID: the order in which pods are looked at."""
    return *pod.metadata.key, pod.metadata.uid


def created_at(pod: Pod) -> float:
    """In seconds; 0 if it is not known."""
    created = pod.metadata.creation_timestamp
    return created.timestamp() if created else 0.0


def is_ready(pod: SchedulingPod) -> bool:
    ready = find_condition(pod.status.conditions, "Ready")
    return ready is not None and ready.status == "True"


def facts_of(pod: SchedulingPod) -> Facts:
    """The facts as they are now; ``requests`` is empty if they cannot be read."""
    meta, owner = pod.metadata, pod.metadata.controller()
    try:
        requests = pod_requests(pod)
    except ValueError:
        requests = {}
    annotations = meta.annotations or {}
    return Facts(
        phase=pod.status.phase,
        ready=is_ready(pod),
        owner=owner.uid if owner else "",
        priority=pod.spec.priority or 0,
        requests=tuple((name, str(number)) for name, number in sorted(requests.items())),
        claims=tuple(sorted(claim_names(pod))),
        labels=tuple(sorted((meta.labels or {}).items())),
        annotations=tuple((key, annotations[key]) for key in ANNOTATIONS if key in annotations),
    )


CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})
_MARKS = ("", "true")
"""Values of the annotation: Kubernetes asked for '', the manifests of 2018 also have 'true'."""


def is_critical(pod: SchedulingPod, system_namespaces: Collection[str]) -> bool:
    """Whether the pod is critical by its priority, or by the annotation of 2018, which counts in
    the system namespaces only: elsewhere anybody could set it."""
    return is_critical_by_priority(pod) or (
        pod.metadata.annotation(CRITICAL) in _MARKS and pod.metadata.namespace in system_namespaces
    )


def is_critical_by_priority(pod: SchedulingPod) -> bool:
    high = (pod.spec.priority or 0) >= CRITICAL_PRIORITY
    return high or pod.spec.priority_class_name in CLASSES


_QOS = {"BestEffort": 0, "Burstable": 1, "Guaranteed": 2}

Rank = tuple[bool, int, int, bool, float, tuple[str, str, str]]


def victim_rank(pod: WorldPod) -> Rank:
    """The least comes first: not ready, low priority, BestEffort before Burstable before
    Guaranteed, pods that prefer no eviction last, youngest first."""
    # without a QoS class in the status, a pod that requests something is Burstable
    guessed = "Burstable" if len(pod.requests) > 1 else "BestEffort"
    return (
        is_ready(pod.pod),
        pod.pod.spec.priority or 0,
        _QOS.get(pod.pod.status.qos_class or guessed, _QOS["Guaranteed"]),
        pod.pod.metadata.annotation(PREFER_NO_EVICTION) is not None,
        -created_at(pod.pod),
        pod.key,
    )
