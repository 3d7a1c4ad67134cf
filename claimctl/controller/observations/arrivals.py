"""When pending pods came, for listing ahead (see ``reservation.reserved_for.listing_ahead``)."""

from __future__ import annotations

from collections.abc import Iterable

from cachetools import LRUCache

from claimctl.kube.informer import Change
from claimctl.reservation.facts.pods import is_bound
from claimctl.wire.pods import Pod
from claimctl.wire.seams import Clock

REMEMBERED_PODS = 50_000


class PodArrivals:
    """The arrivals of pods that are not bound yet, noted even while another replica leads.

    A pod arrives when a watch event shows it for the first time without a scheduling gate. If a
    LIST shows a pod first, it is unknown for how long a scheduler has been working on it.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at: LRUCache[str, float] = LRUCache(REMEMBERED_PODS)

    def observe(self, change: Change[Pod]) -> None:
        """Note one change in the pod cache."""
        old, new = change.old, change.new
        if old is not None and (new is None or is_bound(new) or _changed(old, new)):
            self._at.pop(old.metadata.uid, None)
        if new is None or not is_schedulable(new) or change.relist:
            return
        if old is None or _changed(old, new) or not is_schedulable(old):
            self._at[new.metadata.uid] = self._clock.monotonic()

    def ages(self, pods: Iterable[Pod]) -> dict[str, float]:
        """Seconds since the arrival of those pods of which it is known, by UID."""
        now = self._clock.monotonic()
        arrived = ((pod.metadata.uid, self._at.get(pod.metadata.uid)) for pod in pods)
        return {uid: now - at for uid, at in arrived if at is not None}


def _changed(old: Pod, new: Pod) -> bool:
    return old.metadata.uid != new.metadata.uid


def is_schedulable(pod: Pod) -> bool:
    """Whether a scheduler may begin to schedule the pod."""
    return not is_bound(pod) and not pod.spec.scheduling_gates
