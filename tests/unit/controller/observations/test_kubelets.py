"""Signs of life of kubelets, and that nobody believes a ghost to have ended before it has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from claimctl.controller.observations.kubelets import Kubelets
from claimctl.reservation.facts.memory import SignsOfLife
from claimctl.reservation.users.ghosts import RESTARTED_SECONDS, WORK_SECONDS, has_ended
from claimctl.wire.coordination import Lease, LeaseSpec, micro_time
from claimctl.wire.nodes import NodeCondition, NodeStatus
from claimctl.wire.reservations import ForceDeletedPod
from tests.support.builders import after, node
from tests.support.hand_clock import HandClock

NODE = "node-0"


def renewed(at: float) -> Lease:
    return Lease(spec=LeaseSpec(holder_identity=NODE, renew_time=micro_time(after(at))))


def read(kubelets: Kubelets, clock: HandClock, at: float, lease: Lease | None) -> None:
    clock.time = at
    kubelets.read_lease(NODE, lease, at)


def test_a_renewal_is_as_old_as_the_read_before_it() -> None:
    clock = HandClock()
    kubelets = Kubelets(clock)
    for at, renewal in ((1, 0), (2, 0), (13, 10), (14, 10), (22, 20)):
        read(kubelets, clock, at, renewed(renewal))
    signs = kubelets.signs(NODE, 0.0, "") or SignsOfLife()
    assert list(signs.renewals) == [22 - 2, 22 - 14]
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
    for at, renewal in ((1, 0), (12, 10)):
        read(kubelets, clock, at, renewed(renewal))
    for ready, at in ((status, 20), ("True", 40)):
        condition = NodeCondition(type="Ready", status=ready)
        kubelets.observe(replace(node(NODE), status=NodeStatus(conditions=(condition,))))
        assert kubelets.last_renewal(NODE) is None
        read(kubelets, clock, at + 5, renewed(at))
        assert (kubelets.last_renewal(NODE) is not None) == (ready == "True")


def test_a_node_without_a_lease_shows_only_for_how_long_it_has_had_none() -> None:
    clock = HandClock()
    kubelets = Kubelets(clock)
    assert kubelets.signs(NODE, 0.0, "7") is None
    missing = []
    for at, lease in ((1, renewed(0)), (2, None), (9, None), (10, renewed(0)), (11, None)):
        read(kubelets, clock, at, lease)
        signs = kubelets.signs(NODE, 0.0, "7")
        assert signs is not None
        missing.append(signs.missing_age)
    assert missing == [None, 0, 7, None, 0]


@pytest.mark.parametrize(
    ("reports", "vanished", "start_age"),
    [
        pytest.param([("5", 1)], "7", None, id="reported before, not since"),
        pytest.param([("5", 1), ("9", 8)], "7", 2.0, id="reported since"),
        pytest.param([("5", 1), ("6", 1)], "7", None, id="a change that is no report"),
        pytest.param([("7", 1)], "7", 5.0, id="perhaps after the pod vanished"),
        pytest.param([("5", 1)], "", 5.0, id="it is unknown when the pod vanished"),
        pytest.param([], "7", 5.0, id="no node"),
        pytest.param([("5", None)], "7", 5.0, id="no report"),
    ],
)
def test_a_whole_report_may_be_a_start(
    reports: list[tuple[str, float | None]], vanished: str, start_age: float | None
) -> None:
    """The pod vanished at second 5. Each report is seen when it is made."""
    clock = HandClock()
    kubelets = Kubelets(clock)
    for version, at in reports:
        clock.time = at or 1.0
        kubelets.observe(node(NODE, version=version, report=at))
    read(kubelets, clock, 10, renewed(0))
    signs = kubelets.signs(NODE, 5.0, vanished)
    assert signs == SignsOfLife((), start_age)


RUNS = st.lists(st.tuples(st.floats(0.5, 120), st.floats(0.5, 40)), min_size=1, max_size=4)
"""For how long kubelets work, one after the other, and for how long none does after each."""


@given(
    runs=RUNS,
    grace=st.integers(0, 40),
    needed=st.floats(0, WORK_SECONDS),
    late=st.floats(0, 9),
    first=st.floats(-30, 60),
    looks=st.lists(st.floats(0.2, 12), min_size=20, max_size=60),
)
def test_no_ghost_has_ended_before_a_kubelet_has_ended_it(
    runs: list[tuple[float, float]],
    grace: int,
    needed: float,
    late: float,
    first: float,
    looks: list[float],
) -> None:
    """A pod vanishes at second 0, when kubelets come and go.

    Args:
        needed: how long a kubelet needs beyond the grace period.
        late: how long after its start a kubelet's report is seen.
        first: when the first kubelet starts.
        looks: the times between two reads of the Lease.
    """
    spans, at = [], first
    for working, pause in runs:
        spans.append((at, at + working))
        at += working + pause
    ended = next((end for span in spans if (end := _end(span, grace + needed)) is not None), None)
    renewals = sorted(
        start + 10 * number
        for start, stop in spans
        for number in range(int((stop - start) // 10) + 1)
    )
    events = sorted((start + late, start) for start, _ in spans)
    clock = HandClock()
    kubelets = Kubelets(clock)
    clock.time = -1000.0
    kubelets.observe(node(NODE, version="1", report=-900))
    ghost = ForceDeletedPod(uid="g", node_name=NODE, termination_grace_period_seconds=grace)
    now, reported = 0.0, 0
    while events and events[0][0] <= 0:
        _report(kubelets, clock, *events.pop(0), version="2")
    for pause in looks:
        now += pause
        while events and events[0][0] <= now:
            reported += 1
            _report(kubelets, clock, *events.pop(0), version=str(10 + reported))
        last = max((each for each in renewals if each <= now), default=-500.0)
        read(kubelets, clock, now, renewed(last))
        signs = kubelets.signs(NODE, 0.0, "5")
        assert signs is not None
        if has_ended(ghost, now, signs):
            assert ended is not None
            assert ended <= now
            break


@pytest.mark.parametrize("grace", [0, 30, 600])
@pytest.mark.parametrize("cut", [12, 19, 25, 39, 49])
def test_a_kubelet_that_was_cut_off_hears_late_which_pods_are_gone(cut: int, grace: int) -> None:
    """Nobody calls the node silent meanwhile, and the kubelet reports nothing afterwards."""
    for begin in range(-cut, 1, 3):
        clock = HandClock()
        kubelets = Kubelets(clock)
        kubelets.observe(node(NODE, version="1", report=-900))
        ghost = ForceDeletedPod(uid="g", node_name=NODE, termination_grace_period_seconds=grace)
        back = begin + cut
        renewals = [*range(begin - 20, begin, 10), *range(back, back + grace + 200, 10)]
        for second in range(grace + 200):
            last = max(each for each in renewals if each <= second)
            read(kubelets, clock, float(second), renewed(last))
            signs = kubelets.signs(NODE, 0.0, "5")
            assert signs is not None
            if has_ended(ghost, float(second), signs):
                assert second >= back + grace + 2
                break
        else:
            pytest.fail("the ghost stays for ever")


def test_a_kubelet_with_a_longer_lease_renews_more_slowly_and_is_not_away() -> None:
    clock = HandClock()
    kubelets = Kubelets(clock)
    kubelets.observe(node(NODE, version="1", report=-900))
    for second in range(90):
        spec = replace(renewed(second // 30 * 30).spec, lease_duration_seconds=120)
        read(kubelets, clock, float(second), Lease(spec=spec))
    signs = kubelets.signs(NODE, 0.0, "5")
    assert signs is not None
    assert signs.start_age is None


def _end(span: tuple[float, float], needed: float) -> float | None:
    """When the kubelet of this span of time has ended the pod; None if it stops before."""
    start, stop = span
    end = needed if start <= 0 else start + RESTARTED_SECONDS + needed
    return end if 0 <= end <= stop else None


def _report(kubelets: Kubelets, clock: HandClock, at: float, made: float, *, version: str) -> None:
    clock.time = at
    kubelets.observe(node(NODE, version=version, report=made or 0.001))


def test_a_kubelet_that_works_ends_a_ghost_within_35_seconds_and_its_grace() -> None:
    for phase in range(100):
        clock = HandClock()
        kubelets = Kubelets(clock)
        kubelets.observe(node(NODE, version="1", report=-900))
        ghost = ForceDeletedPod(uid="g", node_name=NODE, termination_grace_period_seconds=5)
        for second in range(60):
            last = (second * 10 - phase) // 104 * 10.4
            read(kubelets, clock, float(second), renewed(last))
            signs = kubelets.signs(NODE, 0.0, "5")
            assert signs is not None
            if has_ended(ghost, float(second), signs):
                assert second - 5 >= WORK_SECONDS
                break
        assert clock.time <= 35 + 5
