"""What becomes of moves, as the next run sees it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from claimctl.wire.meta import ObjectMeta, OwnerReference
from claimctl.wire.pods import Pod, PodSpec
from claimctl_reschedule.run.memory import LANDING, settle
from claimctl_reschedule.shapes.records import (
    MoveOutcome,
    RecordedMove,
    RecordedWorkload,
    RescheduleRecordStatus,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def move(at: int = 0, source: str = "n1", predicted: str = "n2") -> RecordedMove:
    return RecordedMove(
        strategy="RemoveDuplicates",
        at=NOON + timedelta(seconds=at),
        source=source,
        predicted=predicted,
        outcome=MoveOutcome.UNDER_WAY,
    )


def pod(name: str, born: int, node: str = "", *, owner: str = "r-1", deleting: bool = False) -> Pod:
    return Pod(
        metadata=ObjectMeta(
            name=name,
            uid=name,
            creation_timestamp=NOON + timedelta(seconds=born),
            deletion_timestamp=NOON if deleting else None,
            owner_references=(OwnerReference(kind="ReplicaSet", uid=owner, controller=True),),
        ),
        spec=PodSpec(node_name=node),
    )


def judged(moves: list[RecordedMove], pods: list[Pod], after: float) -> list[tuple[str, str]]:
    status = RescheduleRecordStatus(workloads=(RecordedWorkload(uid="r-1", moves=tuple(moves)),))
    found = settle(status, pods, NOON + timedelta(seconds=after))
    return [(each.outcome, each.landed) for each in found.workloads[0].moves]


LATE = LANDING.total_seconds() + 1


@pytest.mark.parametrize(
    ("pods", "after", "expected"),
    [
        ([pod("new", 1, "n2")], 5, ("Landed", "n2")),
        ([pod("new", 1, "n3")], 5, ("Landed", "n3")),
        ([pod("new", 1, "n1")], 5, ("Bounced", "n1")),
        ([pod("new", 1)], 5, ("UnderWay", "")),
        ([pod("new", 1)], LATE, ("Pending", "")),
        ([], 5, ("UnderWay", "")),
        ([], LATE, ("Gone", "")),
        ([pod("old", -60, "n3")], LATE, ("Gone", "")),
        ([pod("new", 1, "n2", owner="r-2")], LATE, ("Gone", "")),
        ([pod("new", 1, "n2", deleting=True)], LATE, ("Gone", "")),
    ],
)
def test_the_outcome_of_a_move(pods: list[Pod], after: float, expected: tuple[str, str]) -> None:
    assert judged([move()], pods, after) == [expected]


def test_a_pod_that_only_made_room_may_come_back() -> None:
    assert judged([move(predicted="")], [pod("new", 1, "n1")], 5) == [("Landed", "n1")]


def test_a_pod_that_was_to_get_other_devices_of_its_node_has_landed_there() -> None:
    assert judged([move(predicted="n1")], [pod("new", 1, "n1")], 5) == [("Landed", "n1")]


def test_a_pending_replacement_is_looked_at_again() -> None:
    waiting = RecordedMove(at=NOON, source="n1", predicted="n2", outcome=MoveOutcome.PENDING)
    assert judged([waiting], [pod("new", 1, "n2")], 600) == [("Landed", "n2")]


def test_each_move_has_a_replacement_of_its_own() -> None:
    moves = [move(0), move(10)]
    pods = [pod("b", 11, "n3"), pod("a", 1, "n2")]
    assert judged(moves, pods, 20) == [("Landed", "n2"), ("Landed", "n3")]
    assert judged(moves, pods[1:], 11) == [("Landed", "n2"), ("UnderWay", "")]


def test_an_outcome_that_is_known_stays() -> None:
    known = RecordedMove(
        at=NOON, source="n1", predicted="n2", landed="n2", outcome=MoveOutcome.LANDED
    )
    assert judged([known], [pod("new", 1, "n1")], 600) == [("Landed", "n2")]
