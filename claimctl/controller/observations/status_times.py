"""The times that stand in reservations' statuses, on this process's own clock; and since which
version a release is asked for.

Somebody else may have written them, by a clock that is wrong. Of a time whose coming was watched,
also as a standby, only that it came is believed. Of one that was there before this process, what
the wall clocks say is all there is.

What nobody wrote down, since nobody led while it happened, is believed before what is on record: a
claim that this process has seen in use was not idle.
"""

from __future__ import annotations

from datetime import datetime
from math import inf

from cachetools import LRUCache

from claimctl.controller.keys import ClaimKey
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.reservations import (
    RELEASE_ANNOTATION,
    ClaimReservation,
    ClaimReservationStatus,
)
from claimctl.wire.seams import Clock

REMEMBERED = 20_000
"""Times; two a reservation."""

OUT_OF_STEP_SECONDS = 5.0
"""Pods and reservations may be seen in another order than that in which they changed."""

_Key = tuple[str, str]


class RecordedTimes:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: LRUCache[_Key, tuple[datetime, float]] = LRUCache(REMEMBERED)
        self._used: LRUCache[ClaimKey, float] = LRUCache(REMEMBERED)
        self._asked: LRUCache[str, tuple[str, str]] = LRUCache(REMEMBERED)

    def used(self, claim: ClaimKey) -> None:
        """Note that a pod which is not done names the claim, or did so until now."""
        self._used[claim] = self._clock.monotonic()

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
        self._see_request(new.metadata)

    def _see_request(self, meta: ObjectMeta) -> None:
        asked = meta.annotation(RELEASE_ANNOTATION)
        if asked is None:
            self._asked.pop(meta.uid, None)
        elif self._asked.get(meta.uid, ("", ""))[0] != asked:
            self._asked[meta.uid] = asked, meta.resource_version

    def asked_at(self, reservation: ObjectMeta) -> str:
        """The first version that was seen to ask for the release it asks for now, or ''."""
        asked, version = self._asked.get(reservation.uid, (None, ""))
        return version if asked == reservation.annotation(RELEASE_ANNOTATION) else ""

    def idle_age(self, reservation: ClaimReservation) -> float | None:
        """Seconds since ``idleSince``, but no more than since the claim was seen in use.

        None where that time is not set, or was never seen.
        """
        age = self._age(reservation, "idle")
        return None if age is None else min(age, self._since_use(reservation))

    def idle_outdated(self, reservation: ClaimReservation) -> bool:
        """Whether the claim was seen in use after ``idleSince``, and nobody wrote that down."""
        age = self._age(reservation, "idle") or 0.0
        return age - self._since_use(reservation) > OUT_OF_STEP_SECONDS

    def _since_use(self, reservation: ClaimReservation) -> float:
        name = reservation.spec.resource_claim_name
        used = self._used.get(ClaimKey(reservation.metadata.namespace, name))
        return inf if used is None else self._clock.monotonic() - used

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
