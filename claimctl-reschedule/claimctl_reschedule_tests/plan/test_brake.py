"""The brake: pods wait, and one at a time is let through."""

from __future__ import annotations

from datetime import timedelta

import pytest

from claimctl.wire.traces import BRAKE_GATE
from claimctl_reschedule.plan import brake
from claimctl_reschedule.plan.refusals import AVOIDS
from claimctl_reschedule.shapes.records import RecordedAvoidance
from claimctl_reschedule.shapes.scheduling import SchedulingPod
from claimctl_reschedule_tests.support.scheduling import NOW, pod

ON = brake.braked(RecordedAvoidance(owner_uid="o", nodes=("node-0",)), NOW)


def waiting(name: str, age: float = 0.0) -> SchedulingPod:
    gate = [{"name": BRAKE_GATE}]
    return pod(name, phase="Pending", ready=False, age=age, spec={"schedulingGates": gate})


def at(seconds: float, *pods: SchedulingPod, on: RecordedAvoidance = ON) -> brake.Braked:
    return brake.next_step(on, pods, NOW + timedelta(seconds=seconds))


def names(step: brake.Braked) -> list[str]:
    return [each.metadata.name for each in step.released]


def test_the_brake_takes_the_place_of_avoidances() -> None:
    assert (ON.braked, ON.nodes) == (True, ())


def test_the_oldest_pod_is_let_through_when_a_probe_is_due() -> None:
    pods = (waiting("young"), waiting("old", age=5))
    assert names(at(9.9, *pods)) == []
    step = at(10, *pods)
    assert names(step) == ["old"]
    assert step.entry.brake is not None
    assert (step.entry.braked, step.entry.brake.probes) == (True, 1)


def test_the_pauses_between_probes_double_up_to_five_minutes() -> None:
    on, now, pauses = ON, 0.0, []
    for _ in range(8):
        assert on.brake is not None
        assert on.brake.next_probe is not None
        due = (on.brake.next_probe - NOW).total_seconds()
        pauses.append(due - now)
        now = due
        on = at(now, waiting("a"), on=on).entry
    assert pauses == [10, 20, 40, 80, 160, 300, 300, 300]


@pytest.mark.parametrize("on", ["", "node-0"])
def test_no_second_probe_starts_while_one_is_on_its_way(on: str) -> None:
    probe = pod("probe", on, phase="Pending", ready=False)
    assert names(at(60, waiting("a"), probe)) == []


def test_a_pod_that_waits_with_the_affinity_of_an_avoidance_is_no_probe() -> None:
    kept_off = pod("kept-off", "", phase="Pending", ready=False, annotations={AVOIDS: "node-0"})
    assert names(at(60, waiting("a"), kept_off)) == ["a"]


def test_all_pods_go_on_as_soon_as_a_probe_runs() -> None:
    step = at(60, waiting("a"), waiting("b"), pod("probe", "node-1", age=-20))
    assert names(step) == ["a", "b"]
    assert (step.entry.braked, step.entry.brake, step.entry.refusals) == (False, None, ())


def test_a_pod_that_ran_before_takes_no_brake_off() -> None:
    assert names(at(5, waiting("a"), pod("before", "node-1", age=20))) == []


def test_a_clock_that_was_set_back_takes_the_brake_off() -> None:
    assert names(at(-86400, waiting("a"))) == ["a"]


def test_a_probe_after_a_clock_was_set_forward_is_made_once() -> None:
    step = at(86400, waiting("a"), waiting("b"))
    assert names(step) == ["a"]
    assert brake.next_step(step.entry, [waiting("b")], NOW + timedelta(seconds=86401)) == (
        brake.Braked(step.entry)
    )
