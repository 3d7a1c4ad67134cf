"""Limits of a run, and what earlier runs forbid."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from claimctl_reschedule.plan.ledger import Ledger, cooldown
from claimctl_reschedule.plan.policy import RunLimits
from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule.plan.world import World, WorldPod
from claimctl_reschedule.shapes.records import MoveOutcome, Record, RecordedMove, RecordedWorkload
from claimctl_reschedule_tests.support.scheduling import NOW, node, pod

MINUTE = timedelta(minutes=1)
LANDED, BOUNCED, PENDING = MoveOutcome.LANDED, MoveOutcome.BOUNCED, MoveOutcome.PENDING


def pods(*where: str, **parts: Any) -> list[WorldPod]:
    named = [pod(f"p{number}", name, **parts) for number, name in enumerate(where)]
    world = World([node("a"), node("b")], named, {})
    return list(world.pods.values())


def remembering(*moves: RecordedMove, revision: str = "") -> Record:
    memory = RecordedWorkload(uid="uid-ReplicaSet-web", moves=moves, revision=revision)
    return Record(workloads={memory.uid: memory})


def past(outcome: MoveOutcome, minutes: int, strategy: str = "S", **nodes: str) -> RecordedMove:
    at = NOW - minutes * MINUTE
    where = {"source": "a", "predicted": "b"} | nodes
    return RecordedMove(strategy=strategy, at=at, outcome=outcome, **where)


def ledger(limits: RunLimits | None = None, record: Record | None = None) -> Ledger:
    return Ledger(limits or RunLimits(), record or Record(), NOW)


def reason(book: Ledger, *moved: WorldPod, limit: int | None = None) -> Ground | None:
    obstacle = book.resting("S", moved) or book.beyond_limits("S", moved, limit)
    return obstacle.reason if obstacle else None


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (RunLimits(), None),
        (RunLimits(per_node=2, per_namespace=3, total=3), None),
        (RunLimits(per_node=1), Ground.LIMIT_PER_NODE),
        (RunLimits(per_namespace=2), Ground.LIMIT_PER_NAMESPACE),
        (RunLimits(total=2), Ground.LIMIT_TOTAL),
        (RunLimits(total=0), Ground.LIMIT_TOTAL),
    ],
)
def test_a_unit_counts_as_a_whole(limits: RunLimits, expected: Ground | None) -> None:
    assert reason(ledger(limits), *pods("a", "a", "b")) is expected


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (RunLimits(per_node=1), Ground.LIMIT_PER_NODE),
        (RunLimits(per_namespace=1), Ground.LIMIT_PER_NAMESPACE),
        (RunLimits(total=1), Ground.LIMIT_TOTAL),
    ],
)
def test_what_was_chosen_before_counts(limits: RunLimits, expected: Ground) -> None:
    book, (first, second) = ledger(limits), pods("a", "a")
    assert reason(book, first) is None
    book.count("S", first, "a", "b")
    assert reason(book, second) is expected


def test_another_node_has_its_own_limit() -> None:
    book, (first, second) = ledger(RunLimits(per_node=1)), pods("a", "b")
    book.count("S", first, "a", "b")
    assert reason(book, second) is None


def test_a_strategy_has_a_limit_of_its_own() -> None:
    book, (first, second) = ledger(), pods("a", "a")
    book.count("other", first, "a", "b")
    assert reason(book, second, limit=1) is None
    book.count("S", first, "a", "b")
    assert reason(book, second, limit=1) is Ground.LIMIT_OF_STRATEGY
    assert reason(book, second, limit=2) is None


MEMORIES: dict[str, tuple[tuple[RecordedMove, ...], Ground | None]] = {
    "nothing": ((), None),
    "a move just now": ((past(LANDED, 9),), Ground.COOLDOWN),
    "a move long enough ago": ((past(LANDED, 10),), None),
    "a move under way": ((past(MoveOutcome.UNDER_WAY, 9),), Ground.COOLDOWN),
    "a move of another strategy": ((past(BOUNCED, 1, "T"),), None),
    "one bounce": ((past(BOUNCED, 19),), Ground.COOLDOWN),
    "one bounce, twenty minutes ago": ((past(BOUNCED, 20),), None),
    "a pending one counts as a bounce does": (
        (past(BOUNCED, 90), past(PENDING, 39)),
        Ground.COOLDOWN,
    ),
    "two in a row, forty minutes ago": ((past(BOUNCED, 90), past(PENDING, 40)), None),
    "a move under way does not end the row": (
        (past(BOUNCED, 90), past(MoveOutcome.UNDER_WAY, 19)),
        Ground.COOLDOWN,
    ),
    "a success ends the row": ((past(BOUNCED, 90), past(BOUNCED, 60), past(LANDED, 10)), None),
    "three bounces": (tuple(past(BOUNCED, 9000 - each) for each in range(3)), Ground.BOUNCES),
    "three in a row with one pending": (
        (past(BOUNCED, 9000), past(PENDING, 8000), past(BOUNCED, 7000)),
        None,
    ),
}


@pytest.mark.parametrize("name", MEMORIES)
def test_an_owner_rests(name: str) -> None:
    moves, expected = MEMORIES[name]
    assert reason(ledger(record=remembering(*moves)), *pods("a")) is expected


def test_a_new_template_is_a_new_start() -> None:
    book = ledger(record=remembering(*[past(BOUNCED, 1)] * 3, revision="one"))
    assert reason(book, *pods("a", labels={"controller-revision-hash": "one"})) is Ground.BOUNCES
    assert reason(book, *pods("a", labels={"controller-revision-hash": "two"})) is None


def test_the_rest_doubles_up_to_a_day() -> None:
    assert [cooldown(each) / MINUTE for each in (0, 1, 2, 7)] == [10, 20, 40, 1280]
    assert cooldown(8) == cooldown(1000) == timedelta(days=1)


def returns(book: Ledger, source: str, destination: str) -> Ground | None:
    found = book.returns(pods("a")[0], source, destination)
    return found.reason if found else None


@pytest.mark.parametrize(
    ("moves", "expected"),
    [
        ((past(LANDED, 60),), Ground.PING_PONG),
        ((past(LANDED, 60, "T"),), Ground.PING_PONG),
        ((past(LANDED, 60, landed="c"),), None),
        ((past(LANDED, 60, predicted="c", landed="b"),), Ground.PING_PONG),
        ((past(BOUNCED, 60),), None),
        ((past(LANDED, 24 * 60),), Ground.PING_PONG),
        ((past(LANDED, 24 * 60 + 1),), None),
    ],
)
def test_a_move_back(moves: tuple[RecordedMove, ...], expected: Ground | None) -> None:
    book = ledger(record=remembering(*moves))
    assert returns(book, "b", "a") is expected
    assert returns(book, "a", "b") is None


def test_a_move_back_within_the_plan() -> None:
    book = ledger()
    book.count("S", pods("a")[0], "a", "b")
    assert returns(book, "b", "a") is Ground.PING_PONG
    assert returns(book, "b", "c") is None
