"""Which drivers refuse a claim with a hold, by how pods start beside one."""

from __future__ import annotations

from msgspec.structs import replace

from claimctl.controller.observations.drivers import REFUSED_SECONDS, RETRY_SECONDS, DriversSeen
from claimctl.reservation.facts.pods import PREPARED
from claimctl.reservation.facts.references import tombstone
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.meta import Condition
from claimctl.wire.pods import Pod
from tests.support.builders import claim, deployment_ref, pod, pod_ref, reservation, running
from tests.support.claim_cases import held_status
from tests.support.hand_clock import HandClock

HOLD, DRIVER = deployment_ref(), frozenset({"gpu.example.com"})
BESIDE = claim(HOLD, pod_ref("a"))
BEFORE = claim(pod_ref("a"), HOLD)
"""The hold came after the pod was listed, and perhaps after its driver was asked."""
ALONE = claim(pod_ref("a"))


def unprepared(name: str = "a") -> Pod:
    made = pod(name, node="node-0", phase="Pending")
    waits = Condition(type=PREPARED, status="False")
    return replace(made, status=replace(made.status, conditions=(waits,)))


class SeenDrivers:
    """The drivers as one process sees them."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.drivers = DriversSeen(self.clock)

    def see(
        self, made: Pod, listed: ResourceClaim = BESIDE, *, after: float = 0.0, alone: bool = True
    ) -> SeenDrivers:
        self.clock.time += after
        self.drivers.observe(listed, made, alone=alone)
        return self

    @property
    def refusing(self) -> frozenset[str]:
        return self.drivers.refusing


def refused() -> SeenDrivers:
    return SeenDrivers().see(unprepared()).see(unprepared(), after=REFUSED_SECONDS)


def test_a_pod_that_does_not_start_beside_a_hold_shows_a_driver_that_refuses() -> None:
    assert refused().refusing == DRIVER


def test_a_tombstone_beside_the_hold_hides_nothing() -> None:
    """A pod of a Job that is retried starts beside both."""
    listed = claim(HOLD, tombstone(pod_ref("b")), pod_ref("a"))
    seen = SeenDrivers().see(unprepared(), listed).see(unprepared(), listed, after=REFUSED_SECONDS)
    assert seen.refusing == DRIVER


def test_a_moment_shows_nothing() -> None:
    seen = SeenDrivers().see(unprepared()).see(unprepared(), after=REFUSED_SECONDS - 1)
    assert seen.refusing == frozenset()
    assert seen.drivers.suspicion_left(BESIDE, [unprepared()]) == 1.0


def test_a_pod_that_is_joined_by_another_is_not_looked_at_again_and_again() -> None:
    joined = claim(HOLD, pod_ref("a"), pod_ref("b"))
    seen = SeenDrivers().see(unprepared()).see(unprepared(), joined, after=REFUSED_SECONDS)
    assert seen.refusing == frozenset()
    assert seen.drivers.suspicion_left(joined, [unprepared()]) is None
    assert seen.see(unprepared()).refusing == DRIVER


def test_nothing_is_shown_by_a_pod_that_is_not_alone_beside_a_hold() -> None:
    group = Reference(api_group="scheduling.k8s.io", resource="podgroups", name="g", uid="g")
    for listed in (
        ALONE,
        claim(pod_ref("a"), pod_ref("b"), HOLD),
        claim(pod_ref("a"), group),
        claim(pod_ref("b"), HOLD),
        claim(pod_ref("a"), HOLD, shared=True),
    ):
        seen = SeenDrivers().see(unprepared(), listed).see(unprepared(), listed, after=60)
        assert seen.refusing == frozenset()
    ghosts = SeenDrivers().see(unprepared(), alone=False).see(unprepared(), after=5)
    assert ghosts.refusing == frozenset()


def test_a_pod_that_does_not_say_whether_it_is_prepared_shows_nothing() -> None:
    silent = pod("a", node="node-0", phase="Pending")
    assert SeenDrivers().see(silent).see(silent, after=60).refusing == frozenset()


def test_a_driver_that_has_started_a_pod_beside_a_hold_is_never_suspected() -> None:
    seen = SeenDrivers().see(unprepared()).see(running("a"), after=1)
    seen.see(unprepared("b"), claim(pod_ref("b"), HOLD))
    seen.see(unprepared("b"), claim(pod_ref("b"), HOLD), after=600)
    assert seen.refusing == frozenset()
    assert seen.drivers.suspicion_left(claim(pod_ref("b"), HOLD), [unprepared("b")]) is None


def test_a_pod_that_was_listed_before_the_hold_proves_nothing_when_it_starts() -> None:
    seen = SeenDrivers().see(unprepared(), BEFORE).see(running("a"), BEFORE, after=1)
    beside = claim(HOLD, pod_ref("b"))
    seen.see(unprepared("b"), beside).see(unprepared("b"), beside, after=REFUSED_SECONDS)
    assert seen.refusing == DRIVER


def doubtful() -> SeenDrivers:
    return refused().see(running("a"), ALONE, after=5)


def test_a_driver_that_was_suspected_too_soon_gets_more_time() -> None:
    beside = claim(HOLD, pod_ref("b"))
    seen = doubtful().see(unprepared("b"), beside)
    seen.see(unprepared("b"), beside, after=RETRY_SECONDS - 1)
    assert seen.refusing == frozenset()
    assert seen.drivers.suspicion_left(beside, [unprepared("b")]) == 1.0
    seen.see(running("b"), beside)
    seen.see(unprepared("c"), claim(HOLD, pod_ref("c")))
    seen.see(unprepared("c"), claim(HOLD, pod_ref("c")), after=600)
    assert seen.refusing == frozenset()


def test_kubelets_that_try_again_soon_hide_a_driver_that_refuses_only_once() -> None:
    beside = claim(HOLD, pod_ref("b"))
    seen = doubtful().see(unprepared("b"), beside)
    seen.see(unprepared("b"), beside, after=RETRY_SECONDS)
    assert seen.refusing == DRIVER
    assert seen.see(running("b"), claim(pod_ref("b")), after=3).refusing == DRIVER


def test_a_slow_driver_gives_itself_away_when_it_is_done_before_the_kubelet_tries_again() -> None:
    assert refused().see(running("a"), ALONE, after=5).refusing == frozenset()


def test_a_pod_that_starts_at_the_second_try_shows_nothing_new() -> None:
    assert refused().see(running("a"), ALONE, after=RETRY_SECONDS).refusing == DRIVER


def test_a_pod_that_starts_after_somebody_took_the_hold_out_shows_nothing() -> None:
    seen = SeenDrivers().see(unprepared()).see(running("a"), ALONE, after=5)
    seen.see(unprepared("b"), claim(pod_ref("b"), HOLD))
    seen.see(unprepared("b"), claim(pod_ref("b"), HOLD), after=REFUSED_SECONDS)
    assert seen.refusing == DRIVER


def test_what_an_earlier_controller_saw_is_in_its_conditions() -> None:
    told = Condition(type="Reserved", status="True", reason="DriverRefusesHold")
    status = replace(held_status(), conditions=(told,), claim_uid="uid-slice")
    seen = SeenDrivers()
    seen.drivers.recall(ALONE, [reservation(status=status)])
    assert seen.refusing == DRIVER
    for knows in (SeenDrivers().see(unprepared()).see(running("a"), after=1), doubtful()):
        knows.drivers.recall(ALONE, [reservation(status=status)])
        assert knows.refusing == frozenset()
