"""What is known of reservations, however wrong the clock that wrote the times in a status."""

from __future__ import annotations

from datetime import datetime, timedelta
from math import inf

import pytest
from msgspec.structs import replace

from claimctl.controller.keys import ClaimKey
from claimctl.controller.observations.own_writes import REPEAT_SECONDS
from claimctl.controller.observations.reservations import OUT_OF_STEP_SECONDS, ReservationsSeen
from claimctl.reservation.facts.snapshot import Held
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.meta import Condition
from claimctl.wire.reservations import ClaimReservation, ClaimReservationStatus
from tests.support.builders import CLAIM, NAMESPACE, NOW, after, reservation
from tests.support.hand_clock import HandClock

DAY = 86_400
KEY = ClaimKey(NAMESPACE, CLAIM)


class JumpingClock(HandClock):
    jump = timedelta()

    def now(self) -> datetime:
        return super().now() + self.jump


def held(seen: ReservationsSeen, made: ClaimReservation) -> Held:
    return seen.with_memory(Held(made, WorkloadState(WorkloadPhase.ABSENT)))


def idle(since: datetime | None) -> ClaimReservation:
    return reservation(status=ClaimReservationStatus(idle_since=since))


@pytest.mark.parametrize("told", [NOW, after(-DAY), after(DAY)])
def test_a_time_whose_coming_was_watched_begins_when_it_came(told: datetime) -> None:
    clock = JumpingClock()
    times = ReservationsSeen(clock)
    times.see(None, idle(None))
    times.see(idle(None), idle(told))
    clock.time, clock.jump = 7, timedelta(days=3)
    assert held(times, idle(told)).idle_age == 7


def test_a_time_from_before_is_as_old_as_the_wall_clocks_say_and_then_ages_by_itself() -> None:
    clock = JumpingClock()
    times = ReservationsSeen(clock)
    times.see(None, idle(after(-100)))
    clock.time, clock.jump = 5, timedelta(days=-1)
    assert held(times, idle(after(-100))).idle_age == 105


def test_a_time_of_the_future_begins_now() -> None:
    times = ReservationsSeen(HandClock())
    times.see(None, idle(after(DAY)))
    assert held(times, idle(after(DAY))).idle_age == 0


def test_a_time_that_is_written_anew_begins_anew() -> None:
    clock = HandClock()
    times = ReservationsSeen(clock)
    times.see(None, idle(NOW))
    clock.time = 9
    times.see(idle(NOW), idle(None))
    assert held(times, idle(None)).idle_age is None
    times.see(idle(None), idle(after(9)))
    assert held(times, idle(after(9))).idle_age == 0


def test_a_version_that_was_not_seen_has_no_age() -> None:
    times = ReservationsSeen(HandClock())
    times.see(None, idle(NOW))
    assert held(times, idle(after(1))).idle_age is None
    assert held(times, idle(NOW)).unused_age is None


def test_another_reservation_under_the_name_was_not_watched() -> None:
    times = ReservationsSeen(HandClock())
    times.see(None, idle(None))
    second = idle(after(-50))
    second = replace(second, metadata=replace(second.metadata, uid="another"))
    times.see(idle(None), second)
    assert held(times, second).idle_age == 50


def test_the_last_consumer_is_told_apart_from_idleness() -> None:
    clock = HandClock()
    times = ReservationsSeen(clock)
    before = reservation(status=ClaimReservationStatus())
    used = reservation(status=ClaimReservationStatus(last_consumer_time=after(DAY)))
    times.see(before, used)
    clock.time = 2
    assert (held(times, used).unused_age, held(times, used).idle_age) == (2, None)


def test_a_claim_that_was_seen_in_use_is_idle_only_since_then() -> None:
    """Nobody led while it was used, so that the time of an earlier idleness is still there."""
    clock = HandClock()
    times = ReservationsSeen(clock)
    times.see(None, idle(after(-100)))
    assert held(times, idle(after(-100))).idle_age == 100
    assert not held(times, idle(after(-100))).idle_outdated
    clock.time = 10
    times.used(ClaimKey(NAMESPACE, "other"))
    assert held(times, idle(after(-100))).idle_age == 110
    times.used(KEY)
    clock.time = 13
    assert held(times, idle(after(-100))).idle_age == 3
    assert held(times, idle(after(-100))).idle_outdated
    times.see(idle(after(-100)), idle(after(13)))
    assert held(times, idle(after(13))).idle_age == 0
    assert not held(times, idle(after(13))).idle_outdated


def test_an_end_of_use_that_is_seen_a_little_late_leaves_the_record_alone() -> None:
    clock = HandClock()
    times = ReservationsSeen(clock)
    times.see(idle(None), idle(NOW))
    clock.time = OUT_OF_STEP_SECONDS
    times.used(KEY)
    assert held(times, idle(NOW)).idle_age == 0
    assert not held(times, idle(NOW)).idle_outdated


def test_a_status_is_as_old_as_this_process_s_last_write_of_it() -> None:
    clock = HandClock()
    seen, one = ReservationsSeen(clock), reservation("one")
    assert held(seen, one).status_age == inf
    seen.wrote_status(one, ClaimReservationStatus())
    clock.time = 1.5
    assert held(seen, one).status_age == 1.5
    seen.claim_gone(KEY)
    assert held(seen, one).status_age == inf


def test_a_status_that_has_to_be_written_again_is_counted_for_a_minute() -> None:
    clock = HandClock()
    seen, one, two = ReservationsSeen(clock), reservation("one"), reservation("two")

    def repeated() -> tuple[int, int]:
        return held(seen, one).repeated_statuses, held(seen, two).repeated_statuses

    for second in range(4):
        mine = Condition(type="Ready", status="True", last_transition_time=after(second))
        seen.wrote_status(one, ClaimReservationStatus(conditions=(mine,)))
        clock.time += 1
    seen.wrote_status(two, ClaimReservationStatus(consumers=1))
    assert repeated() == (3, 0)
    seen.wrote_status(one, ClaimReservationStatus(consumers=2))
    assert repeated() == (0, 0)
    clock.time += REPEAT_SECONDS
    assert repeated() == (0, 0)


def test_a_status_is_due_until_it_is_as_it_should_be() -> None:
    clock = HandClock()
    seen, one, two = ReservationsSeen(clock), reservation("one"), reservation("two")
    seen.see(None, one)
    seen.see(None, two)
    seen.statuses_due(KEY, [one.metadata.uid])
    clock.time = 3
    seen.statuses_due(KEY, [one.metadata.uid, two.metadata.uid])
    clock.time = 4
    assert (held(seen, one).due_age, held(seen, two).due_age) == (4, 1)
    seen.statuses_due(KEY, [two.metadata.uid])
    assert (held(seen, one).due_age, held(seen, two).due_age) == (0, 1)


def test_a_reservation_that_is_gone_leaves_nothing() -> None:
    seen, one, two = ReservationsSeen(HandClock()), reservation("one"), reservation("two")
    for made in (one, two):
        seen.wrote_status(made, ClaimReservationStatus())
    seen.gone(one)
    assert (held(seen, one).status_age, held(seen, two).status_age) == (inf, 0)
    seen.gone(two)
    seen.gone(reservation("never seen"))
    assert seen._seen == {}
