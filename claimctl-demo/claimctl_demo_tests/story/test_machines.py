"""When a claim was prepared, in its timeline."""

from __future__ import annotations

from datetime import UTC, datetime

from kube_in_process.habits.call import Call

from claimctl.commands.timeline.model import Lane, Source, Timeline
from claimctl_demo.story.machines import with_preparations

DEVICES = ("node-0/dev-0",)


def call(kind: str, at: float, name: str = "team/slice", node: str = "node-0") -> Call:
    return Call(kind, name, "uid", node, at, at, "", DEVICES)


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def spans(*calls: Call) -> list[tuple[str, datetime, datetime | None]]:
    empty = Timeline("team", "slice", at(0), at(100), (), (), Source.HISTORY)
    drawn = with_preparations(empty, calls)
    return [(each.name, each.start, each.end) for each in drawn.of(Lane.HOLDER)]


def test_each_time_for_which_it_was_prepared_is_a_bar() -> None:
    found = spans(call("prepare", 10), call("unprepare", 20), call("prepare", 30))
    assert found == [
        ("prepared on node-0", at(10), at(20)),
        ("prepared on node-0", at(30), None),
    ]


def test_the_calls_of_other_claims_are_not_in_it() -> None:
    assert spans(call("prepare", 10, name="team/other")) == []
