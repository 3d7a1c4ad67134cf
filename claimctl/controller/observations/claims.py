"""What only this process knows of each claim, by its own monotonic clock.

Every age counts from the moment when this process first saw something. So neither the clocks of
other machines nor jumps of the wall clock can shorten a wait. The observations go on while another
replica leads, so that a failover needs no wait.

Unseen history. A claim may be released if this process saw every pod that used the present
allocation, so that each vanished pod is known as a ghost, or if the grace has passed since a pod
could have vanished unseen. Two versions decide it, which come from one etcd (``precedes``):

- The version of the last LIST of the pods. From there on, the pod watch misses nothing: after a
  gap, the pods are listed again. A watch that goes on from its last version has no gap, and a late
  one has none either (``claimctl.kube.probes``).
- The version by which the allocation was certainly made: of the claim without it, or of the watch
  event that brings it. A LIST or a live GET that shows an allocation does not prove when it was
  made. Pods are bound after that, so an allocation that is later than the LIST has no unseen
  history. For any other, the grace counts from the LIST.

Where pods are listed one by one, the claim's own list is a second witness. Each pod is listed
before it is bound, each version of the claim is one watch event, and each listed pod is noted. So a
gap in the pod watch hides no such pod, unless the watch of claims had a gap, too, and the claim has
another version after it.

The caches of pods and of claims have gaps of their own, so each question has a mark of its own:

- May a pod have used the allocation before the pods were listed? ``made_after`` and ``known_at``,
  compared with the version of the LIST (``Memory.blind_age``).
- May a listed pod have vanished unnoticed? ``noted_since`` and ``unnoticed_at``
  (``Memory.unnoticed_age``).
- Is every pod noted that the allocation ever listed? ``noted_from`` in ``openings``
  (``Memory.history_complete``).
- For how long is every version of the list known? ``watched`` in ``openings``
  (``Openings.watched_age``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import TypeVar

from claimctl.controller.keys import ClaimKey
from claimctl.controller.observations.openings import OpeningsSeen
from claimctl.controller.observations.own_writes import repeats
from claimctl.reservation.facts.devices import DeviceKey, JudgedDevice, stays_gone
from claimctl.reservation.facts.memory import Memory
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.meta import ObjectMeta, reaches
from claimctl.wire.seams import Clock

T = TypeVar("T")

REFUSED_SECONDS = 3600.0
"""How long a claim is left alone whose every change the API server refuses, in seconds."""

Content = tuple[Reference, ...]


@dataclass(slots=True)
class _Observed:
    """One claim: first its states, then what may have been missed, then this process's writes."""

    uid: str
    version: str
    version_since: float
    allocated_since: float | None = None
    deleting_since: float | None = None
    dead_since: dict[str, float] = field(default_factory=dict)
    """By UID of a listed pod: since when it is gone or done."""
    unstarted_since: dict[str, float] = field(default_factory=dict)
    """By UID of a bound pod: since when it has not started."""
    gone_since: dict[DeviceKey, float] = field(default_factory=dict)
    """By device of the present allocation: since when its pool lacks it."""
    evicting: bool = False
    """Whether a pod was evicted because of a taint of a device of the present allocation."""

    made_after: str = ""
    """The claim's present or next allocation was made by this version or a later one."""
    known_at: str = ""
    """The version up to which an earlier leader has put all vanished pods on record."""
    noted_since: str = ""
    """The version from which on this process noted every pod that the list has."""
    unnoticed_at: float | None = None
    """When a listed pod may last have vanished without this process having noted it."""

    fenced_at: float | None = None
    """When this process fenced the claim's present allocation."""
    deallocated: str = ""
    """The version of the write by which this process deallocated the claim."""
    refused_at: float | None = None
    """When the API server last refused to change the claim at all."""
    writes: deque[tuple[float, Content]] = field(default_factory=lambda: deque(maxlen=32))
    """The lists that this process wrote for the present allocation."""


class Memories:
    """The memory of every claim in the cache."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.openings = OpeningsSeen(clock)
        self._claims: dict[ClaimKey, _Observed] = {}
        self.checkpoint = ""
        """The version that the first LISTs show, if an earlier leader noted it in the Lease."""
        self.covers: Callable[[ClaimKey], bool] = lambda key: True
        """Whether the checkpoint tells everything about a claim."""
        self.least_checkpoint = ""
        """No earlier version may be noted as the checkpoint: reservations that were there then may
        be gone, and nobody looks at their claims any more."""
        self._reservation_gone_at: dict[str, str] = {}
        """By namespace: the version at which a reservation was last seen to be gone."""
        self._pods_began = self._pods_listed = ""
        self._pods_listed_at = clock.monotonic()

    def see(
        self, claim: ResourceClaim, *, just_allocated: bool = False, created: bool = False
    ) -> None:
        """Note a version of a claim, from the cache or from a live GET.

        Args:
            just_allocated: whether a watch event brought the allocation, so that the write of this
                version made it.
            created: whether a watch event brought the claim, so that this is its first version.
        """
        now, key = self._clock.monotonic(), ClaimKey(*claim.metadata.key)
        observed = self._claims.get(key)
        if observed is None or observed.uid != claim.metadata.uid:
            observed = self._claims[key] = _first_observed(claim, now)
            observed.unnoticed_at = self._pods_listed_at
        if created:
            observed.noted_since, observed.unnoticed_at = claim.metadata.resource_version, None
        if observed.version != claim.metadata.resource_version:
            observed.version, observed.version_since = claim.metadata.resource_version, now
        _note(observed, claim, now, just_allocated=just_allocated)

    def missed(self, claim: ResourceClaim) -> None:
        """Note a claim that a LIST shows changed: its list may have had pods in between. From this
        version on its pods are noted again."""
        if (observed := self._claims.get(ClaimKey(*claim.metadata.key))) is not None:
            observed.noted_since = claim.metadata.resource_version
            observed.unnoticed_at = self._pods_listed_at

    def pods_listed(self, before: str, version: str) -> None:
        """Note a LIST of all pods: pods may have come and vanished unseen before its version.

        Args:
            before: the version that the pod cache had reached before; '' if none.
        """
        if before and not _certainly(version, before):
            self._history_lost()
        self._pods_began = self._pods_began or version
        self._pods_listed, self._pods_listed_at = version, self._clock.monotonic()
        for observed in self._claims.values():
            if not _certainly(before, observed.noted_since):
                observed.unnoticed_at = self._pods_listed_at

    def claims_listed(self, before: str, version: str, reserved: Iterable[ClaimKey] = ()) -> None:
        """Note a LIST of all claims.

        If its version is lower than ``before``, etcd was restored from a backup: then nothing is
        known about what the claims listed before. If the first lists of pods and claims show the
        checkpoint, an earlier leader has put on record what vanished before. But if the watch has
        brought nothing when the claims are listed again, the API server did not accept a watch from
        the checkpoint on. It was started later, perhaps on an etcd that was restored from a backup.

        Args:
            reserved: the claims that had a reservation then.
        """
        if before and not _certainly(version, before):
            self._history_lost()
        if before and before == self.checkpoint:
            self._forget_checkpoint()
        if before or not version or not version == self._pods_began == self.checkpoint:
            return
        for key in filter(self.covers, reserved):
            if (known := self._claims.get(key)) is not None:
                known.unnoticed_at, known.known_at = None, version
                self.openings.seen_by_another(key, version)

    def _forget_checkpoint(self) -> None:
        """Forget what an earlier leader knew: this may be another history."""
        now = self._clock.monotonic()
        for key, observed in self._claims.items():
            if observed.known_at:
                observed.known_at, observed.unnoticed_at = "", now
                self.openings.seen_by_another(key, "")

    def _history_lost(self) -> None:
        """Forget the versions of a history that etcd has lost: later ones may be lower. The pods,
        too, are not known until they are listed again."""
        self._pods_listed, self._pods_listed_at = "", self._clock.monotonic()
        self.openings.history_lost()
        for observed in self._claims.values():
            observed.unnoticed_at = self._pods_listed_at
            observed.made_after = observed.known_at = observed.noted_since = (
                observed.deallocated
            ) = ""

    def reservations_listed(self, version: str) -> None:
        """Note a LIST of all reservations: some may have come and gone unseen before it."""
        self.least_checkpoint = version

    def forget(self, key: ClaimKey) -> None:
        self._claims.pop(key, None)

    def reservation_gone(self, key: ClaimKey, version: str) -> None:
        """Note that a reservation was deleted at this version, or before it."""
        last = self._reservation_gone_at.get(key.namespace, version)
        self._reservation_gone_at[key.namespace] = version if _certainly(version, last) else last
        # The status of this reservation may have been the only record of a ghost.
        if (observed := self._claims.get(key)) is not None and observed.known_at:
            observed.known_at, observed.unnoticed_at = "", self._pods_listed_at

    def not_covered_by(self, version: str) -> set[str]:
        """The namespaces that a checkpoint of this version does not cover: a reservation that was
        there then is gone, and nobody looks at its claim any more. Others are forgotten."""
        later = {
            namespace: at
            for namespace, at in self._reservation_gone_at.items()
            if not _certainly(version, at)
        }
        self._reservation_gone_at = later
        return set(later)

    def wrote_list(self, key: ClaimKey, references: Content) -> None:
        """Note a written list. A late hold empties the list after each last pod: no fight."""
        if references and (observed := self._claims.get(key)) is not None:
            content = tuple(sorted(references, key=lambda reference: reference.uid))
            observed.writes.append((self._clock.monotonic(), content))

    def refused(self, key: ClaimKey) -> None:
        """Note that the API server refuses every change of the claim."""
        if (observed := self._claims.get(key)) is not None:
            observed.refused_at = self._clock.monotonic()

    def fenced(self, key: ClaimKey) -> None:
        """Note that this process has just fenced the claim."""
        if (observed := self._claims.get(key)) is not None:
            observed.fenced_at = self._clock.monotonic()

    def fenced_age(self, key: ClaimKey) -> float | None:
        """Seconds since this process fenced the claim; None if it did not."""
        observed = self._claims.get(key)
        return _age(self._clock.monotonic(), observed.fenced_at, None) if observed else None

    def deallocated(self, written: ObjectMeta) -> None:
        if (observed := self._claims.get(ClaimKey(*written.key))) is not None:
            observed.deallocated = observed.made_after = written.resource_version

    def requests_met(
        self, key: ClaimKey, requests: Mapping[str, tuple[str, str]]
    ) -> tuple[str, ...]:
        """The annotations that asked for a release, if the claim had no allocation since then.

        Args:
            requests: see ``ReservationsSeen.requests``.
        """
        observed = self._claims.get(key)
        if observed is None:
            return ()
        return tuple(
            name
            for name, (asked, version) in requests.items()
            if asked == observed.uid and _certainly(observed.made_after, version)
        )

    def allocated_age(self, key: ClaimKey) -> float:
        """Seconds since this process first saw the claim allocated; 0 if it is not allocated."""
        observed = self._claims.get(key)
        return _age(self._clock.monotonic(), observed.allocated_since, 0.0) if observed else 0.0

    def evicts(self, key: ClaimKey) -> None:
        """Note that a pod of the claim's list is evicted because of a device's taint."""
        if (observed := self._claims.get(key)) is not None:
            observed.evicting = True

    def observe_present(
        self,
        key: ClaimKey,
        dead: Iterable[str],
        unstarted: Iterable[str],
        devices: Iterable[JudgedDevice] = (),
    ) -> None:
        """Note the present state of the claim's pods and devices.

        Args:
            devices: those of the present allocation.
            dead: UIDs of the listed pods that are gone or done.
            unstarted: UIDs of the bound pods that have not started.
        """
        observed, now = self._claims.get(key), self._clock.monotonic()
        if observed is None:
            # the claim was deleted during its reconcile
            return
        observed.dead_since = {uid: observed.dead_since.get(uid, now) for uid in dead}
        starting = observed.unstarted_since
        observed.unstarted_since = {uid: starting.get(uid, now) for uid in unstarted}
        before, observed.gone_since = observed.gone_since, {}
        for judged in devices:
            since = before.get(judged.key, now)
            if stays_gone(judged, now - since):
                observed.gone_since[judged.key] = since

    def memory(
        self,
        claim: ResourceClaim,
        pod_age: Mapping[str, float] | None = None,
        *,
        history_complete: bool = False,
        done_pods: frozenset[str] = frozenset(),
    ) -> Memory:
        """The memory of a claim. A claim that is not known counts as seen for the first time.

        Args:
            pod_age: see ``Arrivals``.
            history_complete, done_pods: see ``Memory``.
        """
        now, key = self._clock.monotonic(), ClaimKey(*claim.metadata.key)
        observed = self._claims.get(key) or _first_observed(claim, now)
        return Memory(
            version_age=now - observed.version_since,
            allocated_age=_age(now, observed.allocated_since, inf),
            deleting_age=_age(now, observed.deleting_since, 0.0),
            openings=self.openings.of(claim),
            arrivals=self.openings.arrivals(claim, pod_age or {}),
            blind_age=self._blind_age(observed, claim, now),
            unnoticed_age=_age(now, observed.unnoticed_at, inf),
            dead_age={uid: now - since for uid, since in observed.dead_since.items()},
            unstarted_age={uid: now - at for uid, at in observed.unstarted_since.items()},
            evicting=observed.evicting,
            gone_age={device: now - since for device, since in observed.gone_since.items()},
            history_complete=history_complete,
            done_pods=done_pods,
            deallocated=observed.deallocated == claim.metadata.resource_version,
            unchangeable_left=max(REFUSED_SECONDS - _age(now, observed.refused_at, inf), 0.0),
            repeated_writes=repeats(observed.writes, now),
        )

    def _blind_age(self, observed: _Observed, claim: ResourceClaim, now: float) -> float | None:
        if claim.status.allocation is None or _certainly(observed.made_after, self._pods_listed):
            return None
        if _certainly(observed.known_at, self._pods_listed):
            return None
        return now - self._pods_listed_at


def _first_observed(claim: ResourceClaim, now: float) -> _Observed:
    meta = claim.metadata
    return _Observed(meta.uid, meta.resource_version, now, unnoticed_at=now)


def _note(observed: _Observed, claim: ResourceClaim, now: float, *, just_allocated: bool) -> None:
    meta = claim.metadata
    if meta.deleting and observed.deleting_since is None:
        observed.deleting_since = now
    if claim.status.allocation is None:
        observed.allocated_since = observed.fenced_at = None
        observed.writes.clear()
    elif observed.allocated_since is None:
        observed.allocated_since = now
    if claim.status.allocation is None or just_allocated:
        observed.unnoticed_at, observed.evicting, observed.gone_since = None, False, {}
        older = _certainly(observed.made_after, meta.resource_version)
        observed.made_after = observed.made_after if older else meta.resource_version


def _certainly(version: str, other: str) -> bool:
    """Whether both versions are known and ``version`` is at least ``other``."""
    return bool(version and other) and reaches(version, other)


def _age(now: float, since: float | None, never: T) -> float | T:
    return never if since is None else now - since
