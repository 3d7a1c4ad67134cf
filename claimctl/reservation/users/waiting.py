"""Pods that wait in vain: a hold keeps the claim where they cannot use it.

The scheduler frees an unused claim at once for a pod that finds no node with it. A hold forbids
that. Why such a pod is unschedulable does not matter: its node is gone, full or cordoned, the
device is tainted, its binding failed, another claim of the pod is on another node, or the pod has a
selector of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from claimctl.reservation.facts.pods import DISRUPTED, is_bound, is_done
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.pods import Pod

STUCK_SECONDS = 10.0
"""After so many seconds, no pod of those that wait for the claim is about to be bound."""
CLOCK_SKEW = timedelta(seconds=60)
"""Clocks of different machines agree to within this time."""
_EVICTED = "DeletionByDeviceTaintManager"
"""The reason of the condition that KCM sets on a pod before it evicts the pod from a device."""


def stuck_since(snapshot: Snapshot) -> datetime | None:
    """The time since which a pod has waited in vain for a claim that no bound pod uses, or None.

    It is not before the last consumer went, and not before the claim was allocated. An allocation
    that has no time yet is new: the pod for which it was made is about to be bound. A time that a
    wrong clock wrote does not count.
    """
    pods = snapshot.consumers
    if not snapshot.allocated or pods.bound or not pods.stuck:
        return None
    allocation = snapshot.claim.status.allocation if snapshot.claim else None
    statuses = [held.reservation.status for held in snapshot.reservations]
    given = allocation.allocation_timestamp if allocation else None
    allocated = [given] if given else [status.allocation_time for status in statuses]
    used = [
        status.last_consumer_time
        if held.unused_age is None
        else snapshot.now - timedelta(seconds=held.unused_age)
        for held, status in zip(snapshot.reservations, statuses, strict=True)
    ]
    times = [*filter(None, used), *(list(filter(None, allocated)) or [snapshot.now])]
    plausible = (time for time in times if time - snapshot.now < CLOCK_SKEW)
    return max([min(pods.stuck.values()), *plausible])


def until_in_vain(snapshot: Snapshot) -> float | None:
    """Seconds until pods wait in vain, so that none should be listed; 0 if they do now, or None."""
    asked, reservations = snapshot.asked_to_reallocate, snapshot.reservations
    if any(held.name in asked and held.may_reallocate for held in reservations) or snapshot.evicts:
        return 0.0
    since = stuck_since(snapshot)
    if since is None:
        return None
    return max(STUCK_SECONDS - (snapshot.now - since).total_seconds(), 0.0)


def evicts_a_pod(claim: ResourceClaim, pods: Iterable[Pod]) -> bool:
    """Whether a bound pod of the list shows that KCM evicts it from a device."""
    listed = {entry.uid for entry in claim.status.reserved_for}
    return any(
        condition.type == DISRUPTED and condition.reason == _EVICTED
        for pod in pods
        if pod.metadata.uid in listed and is_bound(pod) and not is_done(pod)
        for condition in pod.status.conditions
    )
