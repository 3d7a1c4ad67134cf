"""Timelines from a whole history."""

from __future__ import annotations

import pytest

from claimctl.commands.timeline.history import (
    Chronicle,
    ObjectChange,
    condition_line,
    release_line,
)
from claimctl.commands.timeline.model import RUNNING, WAITING, Lane, TimelineSpan
from tests.support.builders import after, claim, pending, reservation
from tests.unit.commands.timeline.stories import HELD, HOLDS, UNALLOCATED, done, life, timeline


def test_each_lane_has_what_lasted_from_when_to_when() -> None:
    found = timeline(life())
    assert (found.begin, found.end) == (after(0), after(100))
    assert set(found.spans) == {
        TimelineSpan(Lane.DEVICE, "node-0/gpu-0", after(2), after(60)),
        TimelineSpan(Lane.HOLDER, "deployments/train", after(5), after(60)),
        TimelineSpan(Lane.POD, "a", after(1), after(3), WAITING),
        TimelineSpan(Lane.POD, "a", after(3), after(40), RUNNING),
    }


def test_the_marks_say_who_did_what_once_each() -> None:
    told = [(each.at, each.reason, each.message) for each in timeline(life()).marks]
    assert told == [
        (after(0), "Created", "created by user"),
        (after(2), "Allocated", "node-0/gpu-0 allocated by kube-scheduler"),
        (after(5), "Reserved", "held for deployments.apps/train"),
        (
            after(59),
            "ReleaseFenced",
            "the release has closed the claim to new pods (WorkloadEnded)",
        ),
        (after(60), "Deallocated", "node-0/gpu-0 freed by claimctl"),
    ]


def test_what_still_lasts_has_no_end() -> None:
    found = timeline([ObjectChange(after(0), HELD), ObjectChange(after(1), pending("a"))])
    assert {each.end for each in found.spans} == {None}


def test_a_finished_pod_uses_the_claim_no_more() -> None:
    found = timeline([*life()[:4], done("a")])
    assert found.of(Lane.POD, RUNNING)[0].end == after(30)


def test_a_deleted_claim_loses_everything_and_another_of_its_name_goes_on() -> None:
    found = timeline(
        [
            ObjectChange(after(0), HELD),
            ObjectChange(after(9), HELD, deleted=True),
            ObjectChange(after(20), UNALLOCATED),
        ]
    )
    assert {each.end for each in found.spans} == {after(9)}
    assert [each.reason for each in found.marks] == [
        "Created",
        "Allocated",
        "Deallocated",
        "Deleted",
    ]


def test_a_new_reservation_of_the_same_name_tells_its_conditions_again() -> None:
    found = timeline(
        [
            ObjectChange(after(0), UNALLOCATED),
            ObjectChange(after(1), HOLDS),
            ObjectChange(after(2), HOLDS, deleted=True),
            ObjectChange(after(3), HOLDS),
        ]
    )
    assert [each.reason for each in found.marks] == ["Created", "Reserved", "Deleted", "Reserved"]


def test_a_claim_that_never_existed_has_no_timeline() -> None:
    chronicle = Chronicle()
    chronicle.read([ObjectChange(after(0), pending("a")), ObjectChange(after(0), reservation())])
    assert chronicle.timelines(after(1)) == []


def test_another_device_is_another_span() -> None:
    moved = claim()
    chronicle = Chronicle()
    chronicle.read([ObjectChange(after(0), moved), ObjectChange(after(5), UNALLOCATED)])
    chronicle.read([ObjectChange(after(6), moved)])
    (found,) = chronicle.timelines(after(10))
    spans = found.rows(Lane.DEVICE)["node-0/gpu-0"]
    assert [(each.start, each.end) for each in spans] == [
        (after(0), after(5)),
        (after(6), None),
    ]


@pytest.mark.parametrize(
    ("condition", "line"),
    [
        (
            ("Released", "False", "to be released (Idle): pod a uses it"),
            "to be released (Idle): pod a uses it",
        ),
        (
            ("Released", "True", "released: the workload has ended"),
            "released: the workload has ended",
        ),
        (("Reserved", "False", "all places are taken"), "not held: all places are taken"),
        (("Reserved", "False", "not held: frozen"), "not held: frozen"),
        (("Consistent", "False", ""), "Consistent is False"),
    ],
)
def test_a_condition_is_a_plain_sentence(condition: tuple[str, str, str], line: str) -> None:
    assert condition_line(*condition) == line


def test_the_steps_of_a_release_are_plain_sentences() -> None:
    assert release_line("Intent", "Idle") == "the release begins (Idle)"
    assert release_line("New", "Idle") == "the release is at New (Idle)"
