"""Rounds of evictions for resizes in the record."""

from __future__ import annotations

from claimctl_reschedule.plan.plan import PodRef, ResizeStep
from claimctl_reschedule.run.rounds import finished, with_round, without
from claimctl_reschedule.shapes.records import MAX_RESIZES, RescheduleRecordStatus, record_of
from claimctl_reschedule_tests.support.resizes import grows, sized
from claimctl_reschedule_tests.support.scheduling import NOW


def step(name: str = "big", generation: int = 2) -> ResizeStep:
    return ResizeStep(
        pod=PodRef(namespace="team", name=name, uid=f"uid-team-{name}", node="n"),
        generation=generation,
        unit="u",
        victims=("a", "b"),
        free_cpu=1,
        free_memory=2,
    )


ONE = with_round(RescheduleRecordStatus(), step(), NOW)


def test_planning_reads_what_was_noted() -> None:
    (noted,) = record_of(ONE).rounds.values()
    assert (noted.pod_uid, noted.generation, noted.since) == ("uid-team-big", 2, NOW)
    assert (noted.victims, noted.free_cpu, noted.free_memory) == (("a", "b"), 1, 2)


def test_a_pod_has_one_round_and_the_oldest_are_forgotten() -> None:
    assert with_round(ONE, step(), NOW) == ONE
    status = ONE
    for number in range(MAX_RESIZES):
        status = with_round(status, step(f"p{number}"), NOW)
    assert len(status.resizes) == MAX_RESIZES
    assert status.resizes[0].name == "p0"


def test_a_round_is_over_when_its_pod_waits_no_more() -> None:
    assert finished(ONE, [grows("big", 1000, 2000)]) == frozenset()
    for pods in ([], [sized("big", 1000)], [grows("big", 1000, 2000, generation=3)]):
        over = finished(ONE, pods)
        assert over == {"uid-team-big"}
        assert without(ONE, over).resizes == ()
