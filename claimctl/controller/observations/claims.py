"""What only this process knows of each claim, on its own monotonic clock.

Every age is measured from this process's own first sight, so that clocks of other machines and
jumps of the wall clock cannot shorten a wait. Seeing is cheap and goes on while another replica
leads: a failover needs no blind wait.

Blindness. A claim may be released when every pod that used its present allocation was seen by
this process, so that who vanished is known as a ghost, or when the grace has passed since one
could have vanished unseen. From the version of the last LIST of the pods on, the pod watch misses
nothing: where it does, because it is told 410 or its stream is replaced, the pods are listed anew.
So whoever vanished unseen did so before that LIST ended. Pods are bound to an allocation after it
was made. Hence an allocation that was certainly made after that LIST's version has no unseen
history, and any other one has waited long enough when the grace has passed since that LIST.

When it was made is proven by a version of the claim without allocation, or by a watch event that
brings the allocation: then it was made by that very write. A list of the claims that shows one
proves nothing, and neither does a live GET: the claim was unallocated at the last version that was
seen so, and that is all. So a relist of either kind, in whatever order, a claim that is seen late
and a process that has just started all come down to comparing two versions. A watch that is
opened again where it ended loses nothing. Events that are late make no gap, either: the last live
LIST counts only when the pod cache has come as far (``Informer.catch_up``), and a claim seen late
cannot be written. Nodes matter in one place only: a boot that is not certainly younger than the
deletion ends no ghost.

Versions of pods and of claims are compared here. They come from one etcd, unless somebody has
separated the two with ``--etcd-servers-overrides``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from cachetools import LRUCache
from msgspec.structs import replace

from claimctl.controller.keys import ClaimKey
from claimctl.controller.observations.ghosts import Ghosts
from claimctl.controller.observations.openings import OpeningsSeen
from claimctl.controller.observations.status_times import RecordedTimes
from claimctl.kube.versions import reaches
from claimctl.reservation.snapshot import Memory
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.reservations import RELEASE_ANNOTATION, ClaimReservationStatus
from claimctl.wire.seams import Clock

REMEMBERED_RESERVATIONS = 10_000

REPEAT_SECONDS = 60.0
"""For how long what was written is remembered, to notice a writer that undoes it."""

Content = tuple[Reference, ...]
_Told = deque[tuple[float, int]]
"""When a status was written, and its digest."""


@dataclass(slots=True)
class _Sight:
    uid: str
    version: str
    version_since: float
    allocated_since: float | None = None
    deleting_since: float | None = None
    made_after: str = ""
    """Its present allocation, or its next one, was made by this version or by a later one."""
    dead_since: dict[str, float] = field(default_factory=dict)
    unstarted_since: dict[str, float] = field(default_factory=dict)
    fenced_at: float | None = None
    """When this process fenced its present allocation."""
    deallocated: str = ""
    """The version by which this process deallocated it."""
    writes: deque[tuple[float, Content]] = field(default_factory=lambda: deque(maxlen=32))


class Memories:
    """The memory of every claim in the cache; bounded by their number."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.recorded = RecordedTimes(clock)
        self.openings = OpeningsSeen(clock)
        self._sights: dict[ClaimKey, _Sight] = {}
        self._withdrawn: LRUCache[str, float] = LRUCache(REMEMBERED_RESERVATIONS)
        self._statuses: dict[ClaimKey, dict[str, _Told]] = {}
        self._pods_listed = ""
        self._pods_listed_at = clock.monotonic()

    def see(self, claim: ResourceClaim, *, just_allocated: bool = False) -> None:
        """Note a version of a claim, from the cache or from a live GET.

        Args:
            just_allocated: it was a watch event that told of its allocation, so that this version
                is the one by which it was made.
        """
        now, key = self._clock.monotonic(), ClaimKey.of(claim.metadata)
        sight = self._sights.get(key)
        if sight is None or sight.uid != claim.metadata.uid:
            sight = self._sights[key] = _first_sight(claim, now)
        if sight.version != claim.metadata.resource_version:
            sight.version, sight.version_since = claim.metadata.resource_version, now
        _note(sight, claim, now, just_allocated=just_allocated)

    def pods_listed(self, version: str) -> None:
        """All pods were listed: before that version some may have come and vanished unseen."""
        self._pods_listed, self._pods_listed_at = version, self._clock.monotonic()

    def withdrawn_age(self, reservation: ObjectMeta) -> float:
        """Seconds since this process first asked about a reservation that is being deleted."""
        now = self._clock.monotonic()
        return now - self._withdrawn.setdefault(reservation.uid, now)

    def forget(self, key: ClaimKey) -> None:
        self._sights.pop(key, None)
        self._statuses.pop(key, None)

    def reservation_gone(self, key: ClaimKey, reservation: str) -> None:
        told = self._statuses.get(key, {})
        told.pop(reservation, None)
        if not told:
            self._statuses.pop(key, None)

    def wrote_list(self, key: ClaimKey, references: Content) -> None:
        if (sight := self._sights.get(key)) is not None:
            content = tuple(sorted(references, key=lambda reference: reference.uid))
            sight.writes.append((self._clock.monotonic(), content))

    def fenced(self, key: ClaimKey) -> None:
        """Note that this process has just fenced the claim for its release."""
        if (sight := self._sights.get(key)) is not None:
            sight.fenced_at = self._clock.monotonic()

    def fenced_age(self, key: ClaimKey) -> float | None:
        """Seconds since this process fenced the claim; None where it did not."""
        sight = self._sights.get(key)
        return _age(self._clock.monotonic(), sight.fenced_at) if sight is not None else None

    def deallocated(self, written: ObjectMeta) -> None:
        if (sight := self._sights.get(ClaimKey.of(written))) is not None:
            sight.deallocated = sight.made_after = written.resource_version

    def released_since_asked(self, key: ClaimKey, reservation: ObjectMeta) -> bool:
        """Whether the claim was without allocation after its release was asked for."""
        sight, asked_at = self._sights.get(key), self.recorded.asked_at(reservation)
        asked = sight is not None and reservation.annotation(RELEASE_ANNOTATION) == sight.uid
        return asked and sight is not None and _certainly(sight.made_after, asked_at)

    def wrote_status(self, key: ClaimKey, reservation: str, status: ClaimReservationStatus) -> None:
        told = self._statuses.setdefault(key, {}).setdefault(reservation, deque(maxlen=8))
        told.append((self._clock.monotonic(), _digest(status)))

    def allocated_age(self, key: ClaimKey) -> float:
        """Seconds since this process first saw the claim allocated; 0 when it is not."""
        sight = self._sights.get(key)
        if sight is None or sight.allocated_since is None:
            return 0.0
        return self._clock.monotonic() - sight.allocated_since

    def observe_pods(self, key: ClaimKey, dead: Iterable[str], unstarted: Iterable[str]) -> None:
        """Take note of the claim's pods as they are now.

        Args:
            dead: UIDs of the listed pods that are gone or done.
            unstarted: UIDs of the bound pods that have not started.
        """
        sight, now = self._sights.get(key), self._clock.monotonic()
        if sight is None:
            # it went while it was being looked at
            return
        sight.dead_since = {uid: sight.dead_since.get(uid, now) for uid in dead}
        starting = sight.unstarted_since
        sight.unstarted_since = {uid: starting.get(uid, now) for uid in unstarted}

    def memory(self, claim: ResourceClaim, ghosts: Ghosts) -> Memory:
        """The memory of a claim; of one that is forgotten by now, as at its first sight."""
        now, key = self._clock.monotonic(), ClaimKey.of(claim.metadata)
        sight = self._sights.get(key) or _first_sight(claim, now)
        ages, repeats = self._told(key, now)
        return Memory(
            version_age=now - sight.version_since,
            deleting_age=_age(now, sight.deleting_since) or 0.0,
            openings=self.openings.of(claim),
            blind_age=self._blind_age(sight, claim, now),
            ghost_age=dict(ghosts.ages),
            told_ghosts=ghosts.told,
            dead_age={uid: now - since for uid, since in sight.dead_since.items()},
            unstarted_age={uid: now - at for uid, at in sight.unstarted_since.items()},
            status_age=ages,
            repeated_statuses=repeats,
            deallocated=sight.deallocated == claim.metadata.resource_version,
            repeated_writes=_repeats(sight.writes, now),
        )

    def _blind_age(self, sight: _Sight, claim: ResourceClaim, now: float) -> float | None:
        if claim.status.allocation is None or _certainly(sight.made_after, self._pods_listed):
            return None
        return now - self._pods_listed_at

    def memory_without_claim(self, key: ClaimKey) -> Memory:
        ages, repeats = self._told(key, self._clock.monotonic())
        return Memory(status_age=ages, repeated_statuses=repeats)

    def _told(self, key: ClaimKey, now: float) -> tuple[dict[str, float], dict[str, int]]:
        """Per reservation: since its status was written last, and how often it was before."""
        written = self._statuses.get(key, {})
        ages = {name: now - told[-1][0] for name, told in written.items()}
        return ages, {name: _repeats(told, now) for name, told in written.items()}


def _first_sight(claim: ResourceClaim, now: float) -> _Sight:
    meta = claim.metadata
    return _Sight(meta.uid, meta.resource_version, now)


def _note(sight: _Sight, claim: ResourceClaim, now: float, *, just_allocated: bool) -> None:
    meta = claim.metadata
    if meta.deleting and sight.deleting_since is None:
        sight.deleting_since = now
    if claim.status.allocation is None:
        sight.allocated_since = sight.fenced_at = None
        sight.writes.clear()
    elif sight.allocated_since is None:
        sight.allocated_since = now
    if claim.status.allocation is None or just_allocated:
        older = _certainly(sight.made_after, meta.resource_version)
        sight.made_after = sight.made_after if older else meta.resource_version


def _certainly(version: str, other: str) -> bool:
    """Whether one version is known and at least the other, which is known too."""
    return bool(version and other) and reaches(version, other)


def _age(now: float, since: float | None) -> float | None:
    return None if since is None else now - since


def _digest(status: ClaimReservationStatus) -> int:
    """The same for statuses that say the same, whenever their conditions began."""
    conditions = (replace(each, last_transition_time=None) for each in status.conditions)
    return hash(replace(status, conditions=tuple(conditions)))


def _repeats(writes: Iterable[tuple[float, object]], now: float) -> int:
    """How often what was written most lately had been written before."""
    recent = [content for at, content in writes if now - at < REPEAT_SECONDS]
    return recent.count(recent[-1]) - 1 if recent else 0
