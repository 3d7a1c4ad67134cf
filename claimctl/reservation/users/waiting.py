"""Pods that wait in vain: a hold keeps the claim where they cannot use it.

The scheduler frees an unused claim at once for a pod that finds no node with it. A hold forbids
that. Why such a pod is unschedulable does not matter: its node is gone, full or cordoned, the
device is tainted, its binding failed, another claim of the pod is on another node, or the pod has a
selector of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from claimctl.reservation.facts.pods import (
    DISRUPTED,
    Consumers,
    is_bound,
    is_done,
    is_stuck,
    unschedulable_since,
)
from claimctl.reservation.facts.references import LIMIT
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.wire.claims import DeviceRequestAllocationResult, ResourceClaim, ResourceSlice
from claimctl.wire.placement import NO_EXECUTE, admits
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import REALLOCATE_ANNOTATION

STUCK_SECONDS = 10.0
"""After so many seconds, no pod of those that wait for the claim is about to be bound."""
CLOCK_SKEW = timedelta(seconds=60)
"""Clocks of different machines agree to within this time."""
_EVICTED = "DeletionByDeviceTaintManager"
"""The reason of the condition that KCM sets on a pod before it evicts the pod from a device."""


def stuck_since(snapshot: Snapshot, consumers: Consumers) -> datetime | None:
    """The time since which a pod has waited in vain for a claim that no bound pod uses, or None."""
    if not snapshot.allocated or consumers.bound:
        return None
    stuck = (unschedulable_since(pod) for pod in consumers.pending.values() if is_stuck(pod))
    since = min(filter(None, stuck), default=None)
    return None if since is None else max([since, *_last_used(snapshot)])


def _last_used(snapshot: Snapshot) -> list[datetime]:
    """When the last consumer went, and when the claim was allocated.

    An allocation that has no time yet is new: the pod for which it was made is about to be bound. A
    time that a wrong clock wrote does not count.
    """
    allocation = snapshot.claim.status.allocation if snapshot.claim else None
    statuses = (held.reservation.status.allocation_time for held in snapshot.reservations)
    given = allocation.allocation_timestamp if allocation else None
    allocated = [given] if given else list(filter(None, statuses))
    used = [_last_consumer(snapshot, held) for held in snapshot.reservations]
    times = (*filter(None, used), *(allocated or [snapshot.now]))
    return [each for each in times if each - snapshot.now < CLOCK_SKEW]


def _last_consumer(snapshot: Snapshot, held: Held) -> datetime | None:
    """When the last consumer went: by our clock if known, else by the status."""
    if held.unused_age is None:
        return held.reservation.status.last_consumer_time
    return snapshot.now - timedelta(seconds=held.unused_age)


def asks_to_reallocate(claim: ResourceClaim | None, held: Held) -> bool:
    """Whether the reservation has a request to give the claim's devices up without a timeout."""
    asked = held.reservation.metadata.annotation(REALLOCATE_ANNOTATION)
    return claim is not None and asked == claim.metadata.uid


def may_reallocate(held: Held) -> bool:
    """Whether the reservation ever lets claimctl give up devices that its pods cannot use."""
    return held.reservation.spec.reallocate_timeout_seconds is not None


def until_in_vain(snapshot: Snapshot, consumers: Consumers) -> float | None:
    """Seconds until pods wait in vain, so that none should be listed; 0 if they do now, or None."""
    asked = (each for each in snapshot.reservations if asks_to_reallocate(snapshot.claim, each))
    if any(map(may_reallocate, asked)) or evicts(snapshot):
        return 0.0
    since = stuck_since(snapshot, consumers)
    if since is None:
        return None
    return max(STUCK_SECONDS - (snapshot.now - since).total_seconds(), 0.0)


def evicts(snapshot: Snapshot) -> bool:
    """Whether kube-controller-manager (KCM) evicts the claim's pods because of a device's taint.

    A hold would bring each new pod to the same device, since the scheduler looks at taints only
    when it allocates. A ResourceSlice shows its taints. The taint of a DeviceTaintRule shows in the
    pods that it evicts (``evicts_a_pod``).
    """
    devices = snapshot.claim.devices if snapshot.claim is not None else ()
    return snapshot.memory.evicting or any(
        _is_tainted(device, piece) for device in devices for piece in snapshot.slices
    )


def evicts_a_pod(claim: ResourceClaim, pods: Iterable[Pod]) -> bool:
    """Whether a bound pod of the list shows that KCM evicts it from a device."""
    listed = {each.uid for each in claim.status.reserved_for}
    return any(
        condition.type == DISRUPTED and condition.reason == _EVICTED
        for pod in pods
        if pod.metadata.uid in listed and is_bound(pod) and not is_done(pod)
        for condition in pod.status.conditions
    )


def _is_tainted(result: DeviceRequestAllocationResult, piece: ResourceSlice) -> bool:
    """Whether the slice shows a taint of the device that evicts, and that is not tolerated."""
    if (piece.spec.driver, piece.spec.pool.name) != (result.driver, result.pool):
        return False
    return any(
        not admits([t for t in device.all_taints if t.effect == NO_EXECUTE], result.tolerations)
        for device in piece.spec.devices or ()
        if device.name == result.device
    )


def list_full(snapshot: Snapshot, consumers: Consumers) -> bool:
    """Whether finished pods fill the list, so that a pending pod cannot be listed.

    claimctl cannot remove their tombstones alone, because KCM would add the pods again.
    """
    listed = snapshot.listed_uids
    return (
        len(listed) >= LIMIT
        and not snapshot.shared
        and not snapshot.group_listed
        and not consumers.bound
        and bool(consumers.pending)
        and not listed & consumers.pending.keys()
    )
