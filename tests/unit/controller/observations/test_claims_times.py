"""Times of statuses, however wrong the clock that wrote them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from claimctl.controller.keys import ClaimKey
from claimctl.controller.observations.claims import OUT_OF_STEP_SECONDS, RecordedTimes
from claimctl.wire.reservations import ClaimReservation, ClaimReservationStatus
from tests.support.builders import CLAIM, NAMESPACE, NOW, after, reservation
from tests.support.hand_clock import HandClock

DAY = 86_400
KEY = ClaimKey(NAMESPACE, CLAIM)


class JumpingClock(HandClock):
    jump = timedelta()

    def now(self) -> datetime:
        return super().now() + self.jump


def idle(since: datetime | None) -> ClaimReservation:
    return reservation(status=ClaimReservationStatus(idle_since=since))


@pytest.mark.parametrize("told", [NOW, after(-DAY), after(DAY)])
def test_a_time_whose_coming_was_watched_begins_when_it_came(told: datetime) -> None:
    clock = JumpingClock()
    times = RecordedTimes(clock)
    times.see(None, idle(None))
    times.see(idle(None), idle(told))
    clock.time, clock.jump = 7, timedelta(days=3)
    assert times.idle_age(idle(told)) == 7


def test_a_time_from_before_is_as_old_as_the_wall_clocks_say_and_then_ages_by_itself() -> None:
    clock = JumpingClock()
    times = RecordedTimes(clock)
    times.see(None, idle(after(-100)))
    clock.time, clock.jump = 5, timedelta(days=-1)
    assert times.idle_age(idle(after(-100))) == 105


def test_a_time_of_the_future_begins_now() -> None:
    times = RecordedTimes(HandClock())
    times.see(None, idle(after(DAY)))
    assert times.idle_age(idle(after(DAY))) == 0


def test_a_time_that_is_written_anew_begins_anew() -> None:
    clock = HandClock()
    times = RecordedTimes(clock)
    times.see(None, idle(NOW))
    clock.time = 9
    times.see(idle(NOW), idle(None))
    assert times.idle_age(idle(None)) is None
    times.see(idle(None), idle(after(9)))
    assert times.idle_age(idle(after(9))) == 0


def test_a_version_that_was_not_seen_has_no_age() -> None:
    times = RecordedTimes(HandClock())
    times.see(None, idle(NOW))
    assert times.idle_age(idle(after(1))) is None
    assert times.unused_age(idle(NOW)) is None


def test_another_reservation_under_the_name_was_not_watched() -> None:
    times = RecordedTimes(HandClock())
    times.see(None, idle(None))
    second = idle(after(-50))
    second = replace(second, metadata=replace(second.metadata, uid="another"))
    times.see(idle(None), second)
    assert times.idle_age(second) == 50


def test_the_last_consumer_is_told_apart_from_idleness() -> None:
    clock = HandClock()
    times = RecordedTimes(clock)
    before = reservation(status=ClaimReservationStatus())
    used = reservation(status=ClaimReservationStatus(last_consumer_time=after(DAY)))
    times.see(before, used)
    clock.time = 2
    assert (times.unused_age(used), times.idle_age(used)) == (2, None)


def test_a_claim_that_was_seen_in_use_is_idle_only_since_then() -> None:
    """Nobody led while it was used, so that the time of an earlier idleness is still there."""
    clock = HandClock()
    times = RecordedTimes(clock)
    times.see(None, idle(after(-100)))
    assert times.idle_age(idle(after(-100))) == 100
    assert not times.idle_outdated(idle(after(-100)))
    clock.time = 10
    times.used(ClaimKey(NAMESPACE, "other"))
    assert times.idle_age(idle(after(-100))) == 110
    times.used(KEY)
    clock.time = 13
    assert times.idle_age(idle(after(-100))) == 3
    assert times.idle_outdated(idle(after(-100)))
    times.see(idle(after(-100)), idle(after(13)))
    assert times.idle_age(idle(after(13))) == 0
    assert not times.idle_outdated(idle(after(13)))


def test_an_end_of_use_that_is_seen_a_little_late_leaves_the_record_alone() -> None:
    clock = HandClock()
    times = RecordedTimes(clock)
    times.see(idle(None), idle(NOW))
    clock.time = OUT_OF_STEP_SECONDS
    times.used(KEY)
    assert times.idle_age(idle(NOW)) == 0
    assert not times.idle_outdated(idle(NOW))
