"""The facts for which a pod is chosen. The executing half compares them before it evicts."""

from __future__ import annotations

from claimctl.rescheduling.plan import Facts
from claimctl.rescheduling.requests import pod_requests
from claimctl.reservation.pods import claim_names
from claimctl.wire.meta import find_condition
from claimctl.wire.scheduling import SchedulingPod

ANNOTATIONS = frozenset(
    {
        "cluster-autoscaler.kubernetes.io/safe-to-evict",
        "descheduler.alpha.kubernetes.io/evict",
        "descheduler.alpha.kubernetes.io/prefer-no-eviction",
        "karpenter.sh/do-not-disrupt",
        "kubernetes.io/config.mirror",
        "scheduler.alpha.kubernetes.io/critical-pod",
    }
)
"""The annotations that the evictor's rules read."""


def facts_of(pod: SchedulingPod) -> Facts:
    """The facts of a pod as it is now."""
    owner = pod.metadata.controller()
    ready = find_condition(pod.status.conditions, "Ready")
    annotations = pod.metadata.annotations or {}
    return Facts(
        phase=pod.status.phase,
        ready=ready is not None and ready.status == "True",
        owner=owner.uid if owner is not None else "",
        priority=pod.spec.priority or 0,
        requests=_requests(pod),
        claims=tuple(sorted(claim_names(pod))),
        labels=tuple(sorted((pod.metadata.labels or {}).items())),
        annotations=tuple(
            sorted((key, value) for key, value in annotations.items() if key in ANNOTATIONS)
        ),
    )


def _requests(pod: SchedulingPod) -> tuple[tuple[str, str], ...]:
    try:
        found = pod_requests(pod)
    except ValueError:
        return (("unreadable", ""),)
    return tuple(sorted((name, str(number)) for name, number in found.items()))
