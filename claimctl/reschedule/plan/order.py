"""The order in which pods are chosen as victims."""

from __future__ import annotations

from claimctl.reschedule.plan.facts import PREFER_NO_EVICTION, is_ready
from claimctl.reschedule.plan.world import WorldPod

_QOS = {"BestEffort": 0, "Burstable": 1, "Guaranteed": 2}

Rank = tuple[bool, int, int, bool, float, tuple[str, str, str]]


def victim_rank(pod: WorldPod) -> Rank:
    """The least comes first: not ready, low priority, BestEffort before Burstable before
    Guaranteed, pods that prefer no eviction last, youngest first."""
    meta = pod.pod.metadata
    created = meta.creation_timestamp
    return (
        is_ready(pod.pod),
        pod.pod.spec.priority or 0,
        _quality(pod),
        meta.annotation(PREFER_NO_EVICTION) is not None,
        -created.timestamp() if created else 0.0,
        pod.key,
    )


def _quality(pod: WorldPod) -> int:
    """The QoS class; without one in the status, a pod that requests something is Burstable."""
    guessed = "Burstable" if len(pod.requests) > 1 else "BestEffort"
    return _QOS.get(pod.pod.status.qos_class or guessed, _QOS["Guaranteed"])
