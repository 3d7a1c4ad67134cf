"""The ages of the times in reservations' statuses, by this process's clock.

Another controller may have written a time by a wrong clock. If this process saw the time appear,
even as a standby, its age starts then. If the time is older than this process, its age is taken
from the wall clock.

What this process has seen takes precedence over the status: a claim that it has seen in use was
not idle, even if no controller led at that time and recorded it.

The module also notes the version at which a release was requested.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime
from math import inf

from cachetools import LRUCache

from claimctl.controller.keys import ClaimKey
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.reservations import (
    RELEASE_REQUESTS,
    ClaimReservation,
    ClaimReservationStatus,
)
from claimctl.wire.seams import Clock

REMEMBERED = 20_000
"""The number of remembered times; each reservation has two."""

OUT_OF_STEP_SECONDS = 5.0
"""Changes of pods and of reservations may arrive in another order within so many seconds."""

_Key = tuple[str, str]


class RecordedTimes:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: LRUCache[_Key, tuple[datetime, float]] = LRUCache(REMEMBERED)
        self._used: OrderedDict[ClaimKey, float] = OrderedDict()
        self._asked: LRUCache[_Key, tuple[str, str]] = LRUCache(REMEMBERED)

    def used(self, claim: ClaimKey) -> None:
        """Note that a pod uses the claim or will soon, or did so until now."""
        # every pod of a LIST comes here, and an LRUCache takes twice as long
        self._used[claim] = self._clock.monotonic()
        self._used.move_to_end(claim)
        if len(self._used) > REMEMBERED:
            self._used.popitem(last=False)

    def see(self, old: ClaimReservation | None, new: ClaimReservation) -> None:
        """Note a version of a reservation; ``old`` is the last known one."""
        watched = old is not None and old.metadata.uid == new.metadata.uid
        for name, moment in _times(new.status):
            key = (new.metadata.uid, name)
            known = self._since.get(key)
            if moment is None:
                self._since.pop(key, None)
            elif known is None or known[0] != moment:
                before = 0.0 if watched else self._seconds_since(moment)
                self._since[key] = moment, self._clock.monotonic() - before
        for annotation in RELEASE_REQUESTS:
            self._see_request(new.metadata, annotation)

    def _see_request(self, meta: ObjectMeta, annotation: str) -> None:
        asked, key = meta.annotation(annotation), (meta.uid, annotation)
        if asked is None:
            self._asked.pop(key, None)
        elif self._asked.get(key, ("", ""))[0] != asked:
            self._asked[key] = asked, meta.resource_version

    def asked_at(self, reservation: ObjectMeta, annotation: str) -> str:
        """The first seen version with the present request for a release, or ''."""
        asked, version = self._asked.get((reservation.uid, annotation), (None, ""))
        return version if asked == reservation.annotation(annotation) else ""

    def idle_age(self, reservation: ClaimReservation) -> float | None:
        """Seconds since ``idleSince``, or since the claim was last seen in use if that is less.

        None if ``idleSince`` is not set, or was not seen to appear.
        """
        age = self._age(reservation, "idle")
        return None if age is None else min(age, self._since_use(reservation))

    def idle_outdated(self, reservation: ClaimReservation) -> bool:
        """Whether the claim was seen in use after ``idleSince``, and no status records this."""
        age = self._age(reservation, "idle") or 0.0
        return age - self._since_use(reservation) > OUT_OF_STEP_SECONDS

    def _since_use(self, reservation: ClaimReservation) -> float:
        name = reservation.spec.resource_claim_name
        used = self._used.get(ClaimKey(reservation.metadata.namespace, name))
        return inf if used is None else self._clock.monotonic() - used

    def unused_age(self, reservation: ClaimReservation) -> float | None:
        """Seconds since ``lastConsumerTime``; None if it is not set, or was not seen to appear."""
        return self._age(reservation, "unused")

    def _age(self, reservation: ClaimReservation, name: str) -> float | None:
        known = self._since.get((reservation.metadata.uid, name))
        if known is None or known[0] != dict(_times(reservation.status))[name]:
            return None
        return self._clock.monotonic() - known[1]

    def _seconds_since(self, moment: datetime) -> float:
        return max((self._clock.now() - moment).total_seconds(), 0.0)


def _times(status: ClaimReservationStatus) -> tuple[tuple[str, datetime | None], ...]:
    return ("idle", status.idle_since), ("unused", status.last_consumer_time)
