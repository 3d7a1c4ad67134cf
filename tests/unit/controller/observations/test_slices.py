"""Which drivers are there on a node, as the looks at its ResourceSlices show."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimctl.controller.observations.slices import SlicesOnNodes
from claimctl.reservation.facts.memory import SignsOfLife
from claimctl.reservation.users.ghosts import WORK_SECONDS, has_ended
from claimctl.wire.claims import ResourcePool, ResourceSlice, ResourceSliceSpec
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.reservations import ForceDeletedPod
from tests.support.hand_clock import HandClock

NODE, GPU, NIC = "node-0", "gpu.example.com", "nic.example.com"
WITHDRAWN_AFTER = 30.0
"""When a kubelet deletes the slices of a driver that is away."""
RETRY_SECONDS = 15.0
"""How long a kubelet may take until it tries a failed unprepare again."""


def piece(uid: str, driver: str = GPU, generation: int = 1) -> ResourceSlice:
    pool = ResourcePool(name=NODE, generation=generation, resource_slice_count=1)
    spec = ResourceSliceSpec(driver=driver, pool=pool, node_name=NODE)
    return ResourceSlice(metadata=ObjectMeta(name=uid, uid=uid), spec=spec)


class Looks:
    """A look every ten seconds, each at these slices."""

    def __init__(self, *looks: tuple[ResourceSlice, ...]) -> None:
        self.clock = HandClock()
        self.slices = SlicesOnNodes(self.clock)
        self.gone = []
        for at, pieces in enumerate(looks):
            self.clock.time = 10.0 * at
            self.gone.append(self.slices.look(NODE, pieces, self.clock.time))

    def of(self, *drivers: str) -> tuple[tuple[str, ...], tuple[float, float] | None]:
        found = self.slices.beside(SignsOfLife(), NODE, drivers)
        return found.away, found.stood


A, B, OF_NIC = piece("a"), piece("b"), piece("c", NIC)


@pytest.mark.parametrize(
    ("looks", "drivers", "away", "stood"),
    [
        pytest.param((), (GPU,), (), (0, 0), id="nobody has looked yet"),
        pytest.param(((A,), (A,)), (), (), None, id="its devices belong to no node"),
        pytest.param(((A,),), (GPU,), (), (0, 0), id="the first look"),
        pytest.param(((A,), (A,), (A,)), (GPU,), (), (20, 0), id="it stands"),
        pytest.param(((A,), (piece("a", generation=2),)), (GPU,), (), (10, 0), id="a generation"),
        pytest.param(((A,), (A, B), (B,)), (GPU,), (), (20, 0), id="one follows the other"),
        pytest.param(((A,), (A,), (B,)), (GPU,), (), (0, 0), id="withdrawn and back between looks"),
        pytest.param(((A,), ()), (GPU,), (GPU,), (0, 0), id="withdrawn"),
        pytest.param(((A,), (), (B,), (B,)), (GPU,), (), (10, 0), id="back"),
        pytest.param(((OF_NIC,), (OF_NIC,)), (GPU,), (GPU,), (0, 0), id="only another driver"),
        pytest.param(((A, OF_NIC), (OF_NIC,)), (NIC,), (), (10, 0), id="the other one is away"),
        pytest.param(((A,), (A, OF_NIC)), (GPU, NIC), (), (0, 0), id="the later one counts"),
        pytest.param(((), ()), (GPU, NIC), (GPU, NIC), (0, 0), id="both are away"),
    ],
)
def test_since_when_the_slices_of_drivers_stand(
    looks: tuple[tuple[ResourceSlice, ...], ...],
    drivers: tuple[str, ...],
    away: tuple[str, ...],
    stood: tuple[float, float] | None,
) -> None:
    assert Looks(*looks).of(*drivers) == (away, stood)


def test_a_slice_that_is_gone_shows_that_a_kubelet_may_have_been_started() -> None:
    assert Looks((A, B), (A, B), (A,), (A, OF_NIC), (A,)).gone == [False, False, True, False, True]


def test_a_node_that_nobody_watches_any_more_is_forgotten() -> None:
    on = Looks((A,))
    on.slices.keep({"node-1"})
    assert on.slices.drivers(NODE) == frozenset()
    assert on.of(GPU) == ((), (0, 0))


@given(
    grace=st.integers(0, 40),
    absences=st.lists(
        st.tuples(st.floats(RETRY_SECONDS, 120), st.floats(31, 200)), min_size=1, max_size=3
    ),
    looks=st.lists(st.floats(0.5, 12), min_size=30, max_size=60),
)
def test_no_ghost_has_ended_while_a_driver_has_its_devices_prepared(
    grace: int, absences: list[tuple[float, float]], looks: list[float]
) -> None:
    """A pod vanishes at second 0, and its kubelet works all the time.

    Args:
        absences: for how long the driver is there, and then is away.
        looks: the times between two looks.
    """
    spans, at = [], -60.0
    for there, gone in absences:
        spans.append((at, at + there))
        at += there + gone
    spans.append((at, inf))
    needed = grace + WORK_SECONDS
    start, _ = next(span for span in spans if span[1] > needed)
    unprepared = needed if start <= needed else start + RETRY_SECONDS
    clock = HandClock()
    slices, now = SlicesOnNodes(clock), 0.0
    ghost = ForceDeletedPod(uid="g", node_name=NODE, termination_grace_period_seconds=grace)
    for pause in looks:
        clock.time = now
        shown = [
            piece(f"of-{start}") for start, end in spans if start <= now < end + WITHDRAWN_AFTER
        ]
        slices.look(NODE, shown, now)
        if has_ended(ghost, now, slices.beside(SignsOfLife((0.0, 0.0)), NODE, (GPU,))):
            assert unprepared <= now
            break
        now += pause
