"""What only this process knows of each ClaimReservation, by its own monotonic clock.

Another controller may have written a time into a status by a wrong clock. If this process saw the
time appear, even as a standby, its age starts then. Else its age is taken from the wall clock. A
claim that this process has seen in use was not idle, even if no status records it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import inf

from msgspec import structs

from claimctl.controller.caches.informers import reserved_key
from claimctl.controller.keys import ClaimKey
from claimctl.controller.observations.own_writes import repeats
from claimctl.reservation.facts.snapshot import Held
from claimctl.wire.reservations import RELEASE_REQUESTS, ClaimReservation, ClaimReservationStatus
from claimctl.wire.seams import Clock

REMEMBERED_CLAIMS = 20_000
"""The number of claims whose last use is remembered."""
OUT_OF_STEP_SECONDS = 5.0
"""Changes of pods and of reservations may arrive in another order within so many seconds."""

_IDLE, _UNUSED = "idleSince", "lastConsumerTime"


@dataclass(slots=True)
class _SeenReservation:
    """One ClaimReservation."""

    since: dict[str, tuple[datetime, float]] = field(default_factory=dict)
    """By name of a time in the status: the time, and when it was by this process's clock."""
    asked: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By annotation that asks for a release: its value, and the first seen version with it."""
    deleting_since: float | None = None
    """When this process first noted that it is being deleted."""
    written: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=8))
    """The statuses that this process wrote: when, and a digest of each."""
    due_since: float | None = None
    """Since when it should have another status; None if its status is as it should be."""


class ReservationsSeen:
    """The observations of all reservations in the cache, noted even while another replica leads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[ClaimKey, dict[str, _SeenReservation]] = {}
        """By claim and by UID."""
        self._used: OrderedDict[ClaimKey, float] = OrderedDict()

    def used(self, claim: ClaimKey) -> None:
        """Note that a pod uses the claim or will soon, or did so until now."""
        # every pod of a LIST comes here, and an LRUCache takes twice as long
        self._used[claim] = self._clock.monotonic()
        self._used.move_to_end(claim)
        if len(self._used) > REMEMBERED_CLAIMS:
            self._used.popitem(last=False)

    def see(self, old: ClaimReservation | None, new: ClaimReservation) -> None:
        """Note a version of a reservation; ``old`` is the last known one."""
        meta, seen = new.metadata, self._noted(new)
        watched = old is not None and old.metadata.uid == meta.uid
        for name, moment in _times(new.status).items():
            known = seen.since.get(name)
            if moment is None:
                seen.since.pop(name, None)
            elif known is None or known[0] != moment:
                passed = max((self._clock.now() - moment).total_seconds(), 0.0)
                before = 0.0 if watched else passed
                seen.since[name] = moment, self._clock.monotonic() - before
        for name in RELEASE_REQUESTS:
            asked = meta.annotation(name)
            if asked is None:
                seen.asked.pop(name, None)
            elif seen.asked.get(name, ("", ""))[0] != asked:
                seen.asked[name] = asked, meta.resource_version

    def gone(self, reservation: ClaimReservation) -> None:
        """Note that a reservation was deleted."""
        key = reserved_key(reservation)
        of_claim = self._seen.get(key, {})
        of_claim.pop(reservation.metadata.uid, None)
        if not of_claim:
            self._seen.pop(key, None)

    def claim_gone(self, key: ClaimKey) -> None:
        """Note that a claim was deleted: its reservations' statuses say something else now."""
        for seen in self._seen.get(key, {}).values():
            seen.written.clear()
            seen.due_since = None

    def being_deleted(self, reservation: ClaimReservation) -> None:
        """Note that a reservation is being deleted."""
        seen = self._noted(reservation)
        if seen.deleting_since is None:
            seen.deleting_since = self._clock.monotonic()

    def wrote_status(self, reservation: ClaimReservation, status: ClaimReservationStatus) -> None:
        written = self._noted(reservation).written
        written.append((self._clock.monotonic(), _digest(status)))

    def statuses_due(self, key: ClaimKey, due: Collection[str]) -> None:
        """Note which reservations of the claim, by UID, have another status than they should."""
        now = self._clock.monotonic()
        for uid, seen in self._seen.get(key, {}).items():
            since = now if seen.due_since is None else seen.due_since
            seen.due_since = since if uid in due else None

    def requests(self, reservation: ClaimReservation) -> dict[str, tuple[str, str]]:
        """By annotation: the UID of the claim whose release is asked for now, and the first seen
        version of the reservation that asks; '' if none was seen."""
        meta, seen = reservation.metadata, self._known(reservation)
        asked = {name: meta.annotation(name) for name in RELEASE_REQUESTS}
        known = {name: seen.asked.get(name, ("", "")) for name in asked}
        return {
            name: (value, known[name][1] if known[name][0] == value else "")
            for name, value in asked.items()
            if value is not None
        }

    def with_memory(self, held: Held) -> Held:
        """The reservation with the ages of what this process knows of it."""
        reservation, now = held.reservation, self._clock.monotonic()
        seen, used = self._known(reservation), self._used.get(reserved_key(reservation))
        since_use = inf if used is None else now - used
        idle, unused = self._age(reservation, _IDLE), self._age(reservation, _UNUSED)
        deleting_since = now if seen.deleting_since is None else seen.deleting_since
        return replace(
            held,
            deleting_age=now - deleting_since if reservation.metadata.deleting else inf,
            idle_age=None if idle is None else min(idle, since_use),
            idle_outdated=(idle or 0.0) - since_use > OUT_OF_STEP_SECONDS,
            unused_age=unused,
            since_use=since_use,
            status_age=now - seen.written[-1][0] if seen.written else inf,
            due_age=0.0 if seen.due_since is None else now - seen.due_since,
            repeated_statuses=repeats(seen.written, now),
        )

    def _age(self, reservation: ClaimReservation, name: str) -> float | None:
        """Seconds since a time in the status; None if it is not set, or was not seen to appear."""
        known = self._known(reservation).since.get(name)
        if known is None or known[0] != _times(reservation.status)[name]:
            return None
        return self._clock.monotonic() - known[1]

    def _known(self, reservation: ClaimReservation) -> _SeenReservation:
        """What was noted of the reservation; nothing if it was not seen."""
        of_claim = self._seen.get(reserved_key(reservation), {})
        return of_claim.get(reservation.metadata.uid) or _SeenReservation()

    def _noted(self, reservation: ClaimReservation) -> _SeenReservation:
        """The same, to be changed."""
        of_claim = self._seen.setdefault(reserved_key(reservation), {})
        return of_claim.setdefault(reservation.metadata.uid, _SeenReservation())


def _times(status: ClaimReservationStatus) -> dict[str, datetime | None]:
    return {_IDLE: status.idle_since, _UNUSED: status.last_consumer_time}


def _digest(status: ClaimReservationStatus) -> int:
    """A digest of the status without the times of its conditions."""
    timeless = [structs.replace(entry, last_transition_time=None) for entry in status.conditions]
    return hash(structs.replace(status, conditions=tuple(timeless)))
