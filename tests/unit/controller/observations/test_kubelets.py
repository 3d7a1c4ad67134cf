"""Signs of life of kubelets, and that nobody believes a ghost to have ended before it has."""

from __future__ import annotations

from bisect import bisect_right
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from claimctl.controller.observations.kubelets import Kubelets
from claimctl.reservation.facts.memory import SignsOfLife
from claimctl.reservation.users.ghosts import (
    RESTARTED_SECONDS,
    WORK_SECONDS,
    has_ended,
    longest_pause,
)
from claimctl.wire.coordination import Lease, LeaseSpec, micro_time
from claimctl.wire.meta import Condition, ObjectMeta
from claimctl.wire.nodes import Node, NodeStatus
from claimctl.wire.reservations import ForceDeletedPod
from tests.support.builders import after, node
from tests.support.hand_clock import HandClock

NODE = "node-0"
VANISHED_AT = 1_000_000
"""The version at which a pod vanishes, at second 0."""


def renewed(at: float, *, duration: int | None = None) -> Lease:
    """A Lease as it was renewed at a time of the node; the version says when."""
    spec = LeaseSpec(
        holder_identity=NODE,
        renew_time=micro_time(after(at)),
        lease_duration_seconds=duration,
    )
    version = str(VANISHED_AT + round(at * 100))
    return Lease(metadata=ObjectMeta(name=NODE, resource_version=version), spec=spec)


def read(kubelets: Kubelets, clock: HandClock, at: float, lease: Lease | None) -> None:
    clock.time = at
    kubelets.read_lease(NODE, lease, at)


def signs_of(kubelets: Kubelets, since: float = 0.0) -> SignsOfLife:
    """The signs for a pod that vanished at second 0."""
    found = kubelets.signs(NODE, since, str(VANISHED_AT))
    assert found is not None
    return found


def ready(status: str) -> Node:
    condition = Condition(type="Ready", status=status)
    return replace(node(NODE), status=NodeStatus(conditions=(condition,)))


def test_a_renewal_is_as_old_as_the_read_before_it() -> None:
    clock = HandClock()
    kubelets = Kubelets(clock)
    for at, renewal in ((1, 0), (2, 0), (13, 10), (14, 10), (22, 20)):
        read(kubelets, clock, at, renewed(renewal))
    assert list(signs_of(kubelets).renewals) == [22 - 2, 22 - 14]
    assert kubelets.last_renewal(NODE) == 14


def test_a_lease_from_a_backup_renews_nothing() -> None:
    clock = HandClock()
    kubelets = Kubelets(clock)
    for at, renewal in ((1, 0), (12, 10), (13, 5), (14, 5)):
        read(kubelets, clock, at, renewed(renewal))
    assert kubelets.last_renewal(NODE) is None


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_renewals_count_only_from_when_the_node_is_ready_again(status: str) -> None:
    """A kubelet whose container runtime is down renews its Lease, and ends no container."""
    clock = HandClock()
    kubelets = Kubelets(clock)
    for at, renewal in ((1, -9), (2, 1), (12, 11)):
        read(kubelets, clock, at, renewed(renewal))
    assert signs_of(kubelets).start_age is None
    for now_ready, at in ((status, 20), ("True", 40)):
        kubelets.observe(ready(now_ready))
        assert kubelets.last_renewal(NODE) is None
        read(kubelets, clock, at + 5, renewed(at))
        assert (kubelets.last_renewal(NODE) is not None) == (now_ready == "True")
    assert signs_of(kubelets).start_age == 0.0


def test_a_node_without_a_lease_shows_only_for_how_long_it_has_had_none() -> None:
    clock = HandClock()
    kubelets = Kubelets(clock)
    assert kubelets.signs(NODE, 0.0, "7") is None
    missing = []
    for at, lease in ((1, renewed(0)), (2, None), (9, None), (10, renewed(0)), (11, None)):
        read(kubelets, clock, at, lease)
        missing.append(signs_of(kubelets).missing_age)
    assert missing == [None, 0, 7, None, 0]


@pytest.mark.parametrize("duration", [1, 4, 8, 16])
@pytest.mark.parametrize("look", [0.7, 1.0, 1.6, 2.3])
def test_reads_may_miss_renewals_of_a_kubelet_that_renews_often(duration: int, look: float) -> None:
    clock, rng = HandClock(), Random(duration)
    kubelets = Kubelets(clock)
    renewals = [-duration / 8]
    while renewals[-1] < 60:
        renewals.append(renewals[-1] + duration / 4 * rng.uniform(1, 1.04))
    now = 0.0
    while now < 60:
        last = renewals[bisect_right(renewals, now) - 1]
        read(kubelets, clock, now, renewed(last, duration=duration))
        now += look * rng.uniform(1, 1.1)
    assert signs_of(kubelets).start_age is None


@pytest.mark.parametrize(
    ("renewals", "start_age"),
    [
        pytest.param([-3], None, id="the last renewal before the pod vanished"),
        pytest.param([-3, 7, 17.4, 28], None, id="a rhythm"),
        pytest.param([-3, 6], 24.0, id="too early"),
        pytest.param([-3, 9], 21.0, id="too late"),
        pytest.param([-3, 8.3], None, id="a slow request"),
        pytest.param([-3, 7.2, 27.4], 2.6, id="one is missing"),
        pytest.param([-3, 4, 14, 24], 26.0, id="a new rhythm"),
        pytest.param([-3, 4, 14, 20], 10.0, id="started twice"),
        pytest.param([2, 12], 28.0, id="the first one may be that of a start"),
    ],
)
def test_a_start_shows_in_the_rhythm_of_the_renewals(
    renewals: list[float], start_age: float | None
) -> None:
    """Each renewal is read at once. It is second 30 then."""
    clock = HandClock()
    kubelets = Kubelets(clock)
    for at in renewals:
        read(kubelets, clock, max(at, 0.5), renewed(at))
    clock.time = 30
    found = signs_of(kubelets).start_age
    assert found == (start_age if start_age is None else pytest.approx(start_age))


def test_another_duration_of_the_lease_is_that_of_another_kubelet() -> None:
    clock = HandClock()
    kubelets = Kubelets(clock)
    for at, duration in ((-1, 40), (9, 42)):
        read(kubelets, clock, max(at, 0), renewed(at, duration=duration))
    assert signs_of(kubelets).start_age == 0.0


def test_a_pod_that_vanished_at_an_unknown_time_may_be_older_than_a_start() -> None:
    clock = HandClock()
    kubelets = Kubelets(clock)
    for at in (-20, -10, 0, 10):
        read(kubelets, clock, at, renewed(at))
    found = kubelets.signs(NODE, 5.0, "")
    assert found is not None
    assert found.start_age == 5.0


@pytest.mark.parametrize("every_report", [2, 4, 10, 300])
def test_reports_of_the_status_are_no_starts(every_report: int) -> None:
    clock = HandClock()
    kubelets = Kubelets(clock)
    for second in range(60):
        if second % every_report == 0:
            clock.time = second
            kubelets.observe(ready("True"))
        read(kubelets, clock, second, renewed((second - 5) // 10 * 10 + 5))
    assert signs_of(kubelets).start_age is None


RUNS = st.lists(st.tuples(st.floats(0.5, 120), st.floats(0.5, 40)), min_size=1, max_size=4)
"""For how long kubelets work, one after the other, and for how long none does after each."""


@given(
    runs=RUNS,
    grace=st.integers(0, 40),
    needed=st.floats(0, WORK_SECONDS),
    first=st.floats(-30, 60),
    duration=st.sampled_from([20, 40, 300]),
    looks=st.lists(st.floats(0.2, 12), min_size=20, max_size=60),
)
def test_no_ghost_has_ended_before_a_kubelet_has_ended_it(
    runs: list[tuple[float, float]],
    grace: int,
    needed: float,
    first: float,
    duration: int,
    looks: list[float],
) -> None:
    """A pod vanishes at second 0, when kubelets come and go.

    Args:
        needed: how long a kubelet needs beyond the grace period.
        first: when the first kubelet starts.
        looks: the times between two reads of the Lease.
    """
    every, spans, at, last = duration / 4, [], first, -500.0
    for working, pause in runs:
        if every * 0.99 <= at - last <= longest_pause(every):
            at = last + longest_pause(every) + 1
        spans.append((at, at + working))
        last = at + working // every * every
        at += working + pause
    ended = next((end for span in spans if (end := _end(span, grace + needed)) is not None), None)
    renewals = sorted(
        start + every * number
        for start, stop in spans
        for number in range(int((stop - start) // every) + 1)
    )
    clock = HandClock()
    kubelets = Kubelets(clock)
    ghost = ForceDeletedPod(uid="g", node_name=NODE, termination_grace_period_seconds=grace)
    now = 0.0
    for pause in looks:
        last = max((each for each in renewals if each <= now), default=-500.0)
        read(kubelets, clock, now, renewed(last, duration=duration))
        if has_ended(ghost, now, signs_of(kubelets)):
            assert ended is not None
            assert ended <= now
            break
        now += pause


@pytest.mark.parametrize("grace", [0, 30, 600])
@pytest.mark.parametrize(("duration", "cut"), [(40, 10), (40, 25), (40, 49), (300, 74), (300, 99)])
def test_a_kubelet_that_was_cut_off_hears_late_which_pods_are_gone(
    duration: int, cut: int, grace: int
) -> None:
    """Nobody calls the node silent meanwhile, and the kubelet goes on with its renewals."""
    every = duration // 4
    for begin in range(-cut, 1, 3):
        clock = HandClock()
        kubelets = Kubelets(clock)
        ghost = ForceDeletedPod(uid="g", node_name=NODE, termination_grace_period_seconds=grace)
        back, end = begin + cut, grace + 120 + 4 * every
        renewals = [*range(begin - 2 * every, begin, every), *range(back, back + end, every)]
        for second in range(end):
            last = max(each for each in renewals if each <= second)
            read(kubelets, clock, float(second), renewed(last, duration=duration))
            if has_ended(ghost, float(second), signs_of(kubelets)):
                assert second >= back + grace + 2
                break
        else:
            pytest.fail("the ghost stays for ever")


def _end(span: tuple[float, float], needed: float) -> float | None:
    """When the kubelet of this span of time has ended the pod; None if it stops before."""
    start, stop = span
    end = needed if start <= 0 else start + RESTARTED_SECONDS + needed
    return end if 0 <= end <= stop else None


@pytest.mark.parametrize("duration", [20, 40, 300])
def test_a_kubelet_that_works_ends_a_ghost_within_two_renewals(duration: int) -> None:
    every, rng = duration / 4, Random(duration)
    for _ in range(50):
        clock = HandClock()
        kubelets = Kubelets(clock)
        ghost = ForceDeletedPod(uid="g", node_name=NODE, termination_grace_period_seconds=5)
        renewals = [-rng.uniform(0, every)]
        while renewals[-1] < 300:
            renewals.append(renewals[-1] + every * rng.uniform(1, 1.04) + rng.uniform(0, 0.3))
        for second in range(300):
            last = renewals[bisect_right(renewals, second) - 1]
            read(kubelets, clock, float(second), renewed(last, duration=duration))
            if has_ended(ghost, float(second), signs_of(kubelets)):
                assert second - 5 >= WORK_SECONDS
                break
        assert clock.time <= 5 + WORK_SECONDS + 2 * (1.04 * every + 0.3) + 2
