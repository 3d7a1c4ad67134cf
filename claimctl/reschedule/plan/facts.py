"""For what a pod was chosen. The run that executes a plan compares these facts before it evicts."""

from __future__ import annotations

from claimctl.reschedule.plan.plan import Facts, PodRef
from claimctl.reschedule.plan.requests import pod_requests
from claimctl.reschedule.shapes.scheduling import SchedulingPod
from claimctl.reservation.facts.pods import claim_names
from claimctl.wire.meta import find_condition

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
    return pod.metadata.namespace, pod.metadata.name, pod.metadata.uid


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
