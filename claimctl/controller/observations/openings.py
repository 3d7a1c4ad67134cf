"""The entries of each claim's list over time, and the arrivals of pods.

``OpeningsSeen`` notes since when each claim is closed to pods (for ``reservation.users.blockers``)
and which pods it has listed. ``PodArrivals`` notes when pending pods came. Listing ahead needs both
(``reservation.reserved_for.listing_ahead``).

Each version of a claim is one watch event, so nothing is missed while the watch goes on. A LIST may
skip versions: after a LIST that shows another version, the claim counts as seen for the first time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf

from cachetools import LRUCache

from claimctl.controller.keys import ClaimKey
from claimctl.kube.informer import Change
from claimctl.reservation.facts.memory import Arrivals, Openings
from claimctl.reservation.facts.pods import is_bound
from claimctl.reservation.facts.references import groups_in, is_pod, is_pod_group, pods_in
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.meta import reaches
from claimctl.wire.pods import Pod
from claimctl.wire.seams import Clock

KEPT_SECONDS = 3600.0
"""How long a pod's entry is remembered, in seconds. This is the maximum of the binding times."""


@dataclass(slots=True)
class _Seen:
    """Times by this process's clock: -inf means never, inf means that the entry is listed now."""

    uid: str
    version: str
    watched: float
    """Since when this process has seen every version."""
    group: float = -inf
    """When the last entry of any PodGroup left the list."""
    holder: float = -inf
    """When the last entry that is no pod left the list."""
    delisted: dict[str, float] = field(default_factory=dict)
    """By UID of a pod: when its entry left the list."""
    groups: dict[str, float] = field(default_factory=dict)
    """By name of a PodGroup: when its entry left the list."""
    listed: dict[str, float] = field(default_factory=dict)
    """By UID of a pod: when its entry was first seen. Removed entries are kept."""
    noted_from: str = ""
    """The first version from which on this process saw every version of the claim's present or next
    allocation; '' if it did not see the beginning of the allocation."""


class OpeningsSeen:
    """The openings of all claims in the cache, noted even while another replica leads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[ClaimKey, _Seen] = {}

    def observe(self, change: Change[ResourceClaim]) -> None:
        """Note one change in the cache of claims. A claim that a watch event adds is new."""
        key, claim = ClaimKey(change.namespace, change.name), change.new
        if claim is None:
            self._seen.pop(key, None)
            return
        meta, now, seen = claim.metadata, self._clock.monotonic(), self._seen.get(key)
        if seen is None:
            first = -inf if change.old is None else now
            seen = self._seen[key] = _Seen(meta.uid, "", first)
            seen.noted_from = meta.resource_version if change.old is None else ""
        if change.relist:
            seen.watched, seen.noted_from = now, ""
        if claim.status.allocation is None:
            seen.noted_from = seen.noted_from or meta.resource_version
        seen.version = meta.resource_version
        before = change.old.status.reserved_for if change.old is not None else ()
        _note(seen, before, claim.status.reserved_for, now)

    def of(self, claim: ResourceClaim) -> Openings:
        """The ages of the claim's openings. An unknown version counts as seen first now."""
        meta, now = claim.metadata, self._clock.monotonic()
        seen = self._seen.get(ClaimKey(*meta.key))
        if seen is None or (seen.uid, seen.version) != (meta.uid, meta.resource_version):
            return Openings(watched_age=0.0)
        return Openings(
            watched_age=now - seen.watched,
            group_age=max(now - seen.group, 0.0),
            group_ages={name: now - at for name, at in seen.groups.items()},
            holder_age=max(now - seen.holder, 0.0),
            entry_age={uid: now - at for uid, at in seen.delisted.items()},
        )

    def arrivals(self, claim: ResourceClaim, pod_age: Mapping[str, float]) -> Arrivals:
        """What listing ahead needs to know. It also holds for a version that was read live."""
        now, seen = self._clock.monotonic(), self._seen.get(ClaimKey(*claim.metadata.key))
        if seen is None or seen.uid != claim.metadata.uid:
            return Arrivals()
        entry_age = {uid: now - at for uid, at in seen.listed.items()}
        return Arrivals(now - seen.watched, pod_age, entry_age)

    def seen_by_another(self, key: ClaimKey, version: str) -> None:
        """Note that another controller saw all versions of the claim up to this one; '' takes that
        back."""
        if (seen := self._seen.get(key)) is not None:
            seen.noted_from = version

    def history_lost(self) -> None:
        """Note that etcd was restored: what was noted up to a version may not be all of it."""
        for seen in self._seen.values():
            seen.noted_from = ""

    def history_complete(self, claim: ResourceClaim, pods: str) -> bool:
        """Whether every pod that the present allocation ever listed is noted.

        Args:
            pods: the version that the pod cache has reached. A pod that was listed before this
                process saw the claim may be bound late; only the pod cache then shows that pod.
        """
        meta = claim.metadata
        seen = self._seen.get(ClaimKey(*meta.key))
        if seen is None or (seen.uid, seen.version) != (meta.uid, meta.resource_version):
            return False
        return bool(seen.noted_from and pods) and reaches(pods, seen.noted_from)


def _note(
    seen: _Seen, before: tuple[Reference, ...], after: tuple[Reference, ...], now: float
) -> None:
    """Note the entries of a version: an entry that is not listed any more has gone now."""
    listed = pods_in(after)
    for uid in pods_in(before) - listed:
        seen.delisted[uid] = now
    for name in groups_in(before) - groups_in(after):
        seen.groups[name] = now
    for uid in listed:
        seen.listed.setdefault(uid, now)
    for name in [name for name, at in seen.groups.items() if now - at > KEPT_SECONDS]:
        del seen.groups[name]
    for uid in [uid for uid, at in seen.delisted.items() if now - at > KEPT_SECONDS]:
        del seen.delisted[uid]
        if uid not in listed:
            seen.listed.pop(uid, None)
    seen.group = _last(seen.group, now, listed=any(map(is_pod_group, after)))
    seen.holder = _last(seen.holder, now, listed=not all(map(is_pod, after)))


def _last(last: float, now: float, *, listed: bool) -> float:
    """When such an entry last left the list; inf while one is listed."""
    if listed:
        return inf
    return now if last == inf else last


REMEMBERED_PODS = 50_000
"""The number of pods whose arrival is remembered."""


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
        other = old is None or new is None or old.metadata.uid != new.metadata.uid
        if old is not None and (other or new is None or is_bound(new)):
            self._at.pop(old.metadata.uid, None)
        if new is None or not is_schedulable(new) or change.relist:
            return
        if old is None or other or not is_schedulable(old):
            self._at[new.metadata.uid] = self._clock.monotonic()

    def ages(self, pods: Iterable[Pod]) -> dict[str, float]:
        """Seconds since the arrival of those pods of which it is known, by UID."""
        now = self._clock.monotonic()
        arrived = ((pod.metadata.uid, self._at.get(pod.metadata.uid)) for pod in pods)
        return {uid: now - at for uid, at in arrived if at is not None}


def is_schedulable(pod: Pod) -> bool:
    """Whether a scheduler may begin to schedule the pod."""
    return not is_bound(pod) and not pod.spec.scheduling_gates
