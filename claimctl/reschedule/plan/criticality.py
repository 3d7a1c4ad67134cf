"""Which pods are critical: the one rule for pods that get room, and for pods that nobody evicts."""

from __future__ import annotations

from collections.abc import Collection

from claimctl.reschedule.plan.facts import CRITICAL
from claimctl.reschedule.plan.policy import CRITICAL_PRIORITY
from claimctl.reschedule.shapes.scheduling import SchedulingPod

CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})
_MARKS = ("", "true")
"""Values of the annotation: Kubernetes asked for '', the manifests of 2018 also have 'true'."""


def is_critical(pod: SchedulingPod, system_namespaces: Collection[str]) -> bool:
    """Whether the pod is critical by its priority, or by the annotation of 2018.

    Args:
        system_namespaces: where the annotation counts. Elsewhere anybody could set it.
    """
    return is_critical_by_priority(pod) or (
        pod.metadata.annotation(CRITICAL) in _MARKS and pod.metadata.namespace in system_namespaces
    )


def is_critical_by_priority(pod: SchedulingPod) -> bool:
    high = (pod.spec.priority or 0) >= CRITICAL_PRIORITY
    return high or pod.spec.priority_class_name in CLASSES
