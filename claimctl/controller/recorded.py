"""The times that stand in reservations' statuses, on this process's own clock.

Somebody else may have written them, by a clock that is wrong. Of a time whose coming was watched,
also as a standby, only that it came is believed. Of one that was there before this process, what
the wall clocks say is all there is.
"""

from __future__ import annotations

from datetime import datetime

from cachetools import LRUCache

from claimctl.wire.reservations import ClaimReservation, ClaimReservationStatus
from claimctl.wire.seams import Clock

REMEMBERED = 20_000
"""Times; two a reservation."""

_Key = tuple[str, str]


class RecordedTimes:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: LRUCache[_Key, tuple[datetime, float]] = LRUCache(REMEMBERED)

    def see(self, old: ClaimReservation | None, new: ClaimReservation) -> None:
        """Note a version of a reservation; ``old`` is the one that was known before."""
        watched = old is not None and old.metadata.uid == new.metadata.uid
        for name, moment in _times(new.status):
            key = (new.metadata.uid, name)
            known = self._since.get(key)
            if moment is None:
                self._since.pop(key, None)
            elif known is None or known[0] != moment:
                before = 0.0 if watched else self._passed(moment)
                self._since[key] = moment, self._clock.monotonic() - before

    def idle_age(self, reservation: ClaimReservation) -> float | None:
        """Seconds since ``idleSince``; None where that is not set, or was never seen."""
        return self._age(reservation, "idle")

    def unused_age(self, reservation: ClaimReservation) -> float | None:
        """Seconds since ``lastConsumerTime``; None where that is not set, or was never seen."""
        return self._age(reservation, "unused")

    def _age(self, reservation: ClaimReservation, name: str) -> float | None:
        known = self._since.get((reservation.metadata.uid, name))
        if known is None or known[0] != dict(_times(reservation.status))[name]:
            return None
        return self._clock.monotonic() - known[1]

    def _passed(self, moment: datetime) -> float:
        return max((self._clock.now() - moment).total_seconds(), 0.0)


def _times(status: ClaimReservationStatus) -> tuple[tuple[str, datetime | None], ...]:
    return ("idle", status.idle_since), ("unused", status.last_consumer_time)
