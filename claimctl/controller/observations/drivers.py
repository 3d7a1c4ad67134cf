"""Which drivers refuse a claim whose list has a hold, by the pods that started beside one.

A driver may want one pod in the list, and nothing but its refusal says so. So this process watches
the only pod of a list with a hold: a pod that does not get its devices for some seconds shows that
its driver refuses. A driver that has ever prepared a claim with a hold is never suspected again:
the pod started beside a hold that is listed before it. A hold that is listed after the pod may have
come after the driver was asked.

A slow driver looks like one that refuses. A kubelet that was refused usually tries again after a
minute, so a pod that starts sooner was probably not refused. But kubelets may be set to try sooner.
So the suspicion is dropped once, and the next pod gets the time beside the hold that shows for
certain what the driver does.
"""

from __future__ import annotations

from collections.abc import Iterable

from cachetools import LRUCache

from claimctl.reservation.facts.pods import is_bound, is_done, is_prepared
from claimctl.reservation.facts.reasons import ConditionType, Reason
from claimctl.reservation.facts.references import (
    FEW_ENTRIES,
    is_pod,
    is_pod_group,
)
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.meta import find_condition
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservation
from claimctl.wire.seams import Clock

REFUSED_SECONDS = 10.0
"""A bound pod without devices for so long, beside a hold, was refused by its driver."""
RETRY_SECONDS = 45.0
"""A kubelet whose ``syncFrequency`` is the default tries a failed prepare again after 60 to 90 s. A
driver that is suspected again gets this time."""
REMEMBERED_PODS = 10_000


class DriversSeen:
    """The drivers, by what they did with a claim that has a hold."""

    def __init__(self, clock: Clock, one_pod_drivers: frozenset[str] = frozenset()) -> None:
        self._clock = clock
        self._one_pod_drivers = one_pod_drivers
        self._since: LRUCache[str, float] = LRUCache(REMEMBERED_PODS)
        """By UID of a pod: when it was first seen without devices as the only pod beside a hold."""
        self._accepting: set[str] = set()
        """Drivers that have prepared a claim with a hold. They are never suspected again."""
        self._doubtful: set[str] = set()
        """Drivers that were suspected, and whose pod then started sooner than after a refusal."""
        self._refusing: set[str] = set()
        """Drivers that count as refusing a claim with a hold."""

    @property
    def refusing(self) -> frozenset[str]:
        """The drivers that refuse a claim with a hold."""
        return frozenset(self._refusing)

    def want_one_pod(self, claim: ResourceClaim) -> bool:
        """Whether a driver of the claim wants the list for a pod alone, as far as that is known."""
        return bool(_drivers(claim) & (self._one_pod_drivers | self._refusing))

    def observe(self, claim: ResourceClaim, pod: Pod, *, alone: bool) -> None:
        """Note a version of a pod that names the claim.

        Args:
            alone: False if a pod that vanished may still have the devices prepared, so that the
                driver is not asked.
        """
        uid, now = pod.metadata.uid, self._clock.monotonic()
        prepared = is_prepared(pod) if is_bound(pod) and not is_done(pod) else None
        beside_hold = _is_only_pod_beside_hold(claim, uid)
        suspects = _drivers(claim) - self._accepting
        since = self._since.get(uid)
        if prepared is None or not suspects:
            return
        if prepared:
            if since is not None and suspects & self._refusing:
                # sooner than a kubelet that was refused tries again: the driver was only slow
                if now - since < RETRY_SECONDS:
                    self._refusing -= suspects
                    self._doubtful |= suspects
            # the hold was listed before the pod, so the driver was asked beside it
            elif since is not None and beside_hold and claim.status.reserved_for[0].uid != uid:
                self._accepting |= suspects
            self._since.pop(uid, None)
        elif since is None and beside_hold and alone:
            self._since[uid] = now
        elif since is not None and beside_hold and now - since >= self._patience(suspects):
            self._refusing |= suspects

    def _patience(self, suspects: set[str]) -> float:
        """For how long a pod waits until its drivers count as refusing."""
        return RETRY_SECONDS if suspects & self._doubtful else REFUSED_SECONDS

    def suspicion_left(self, claim: ResourceClaim, pods: Iterable[Pod]) -> float | None:
        """Seconds until a driver of the claim counts as refusing; None if no pod waits so.

        A pod that has waited for longer is not alone any more. Only an event changes that.
        """
        waiting = [self._since.get(pod.metadata.uid) for pod in pods if is_prepared(pod) is False]
        since = min((at for at in waiting if at is not None), default=None)
        suspects = _drivers(claim) - self._accepting
        if since is None or suspects <= self._refusing:
            return None
        left = since + self._patience(suspects) - self._clock.monotonic()
        return left if left > 0 else None

    def recall(self, claim: ResourceClaim, reservations: Iterable[ClaimReservation]) -> None:
        """Note what an earlier controller saw, by the conditions that it wrote."""
        for reservation in reservations:
            reserved = find_condition(reservation.status.conditions, ConditionType.RESERVED)
            ours = reservation.status.claim_uid == claim.metadata.uid
            if ours and reserved is not None and reserved.reason == Reason.DRIVER_REFUSES_HOLD:
                self._refusing |= _drivers(claim) - self._accepting - self._doubtful


def _drivers(claim: ResourceClaim) -> set[str]:
    return {device.driver for device in claim.devices}


def _is_only_pod_beside_hold(claim: ResourceClaim, uid: str) -> bool:
    """Whether the list has this pod and, besides, nothing but holds and tombstones."""
    entries = claim.status.reserved_for
    if not 2 <= len(entries) <= FEW_ENTRIES or claim.is_open_to_any:
        return False
    others = [entry for entry in entries if entry.uid != uid]
    shared = any(is_pod(e) or is_pod_group(e) for e in others)
    return len(others) == len(entries) - 1 and not shared
