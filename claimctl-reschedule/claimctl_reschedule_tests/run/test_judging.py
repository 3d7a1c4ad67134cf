"""Which moves are judged again, and which of them a new plan still calls for."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl_reschedule.plan.plan import Move, Owner, Plan, PodRef, Skipped
from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule.run.groups import MoveGroup
from claimctl_reschedule.run.judging import Judgement
from claimctl_reschedule.run.landings import Flight, Landings
from claimctl_reschedule.run.pod_watch import PodWatch
from claimctl_reschedule.run.steps import MoveStep, RunReport
from claimctl_reschedule.shapes.records import MoveOutcome
from tests.support.builders import NOW


def move(name: str, owner: str = "web", node: str = "x", destination: str = "y") -> Move:
    pod = PodRef(namespace="team", name=name, uid=name, node=node)
    above = Owner(kind="ReplicaSet", name=owner, uid=owner)
    return Move(strategy="Test", pod=pod, owner=above, destination=destination)


def group(*moves: Move) -> MoveGroup:
    return MoveGroup([MoveStep(each) for each in moves])


def judgement(
    again: Sequence[Move], landed: str = "z", skipped: Sequence[Skipped] = ()
) -> tuple[Judgement, list[int]]:
    """After one move that was to go to y; and how often the plan was made anew."""
    asked: list[int] = []

    async def plan_again() -> Plan:
        asked.append(1)
        return Plan(made_at=NOW, moves=tuple(again), skipped=tuple(skipped))

    first = move("first")
    client, clock = Client(None, LoopClock()), LoopClock()  # type: ignore[arg-type] # never asked
    landings = Landings(client, clock, PodWatch(client, clock, None))  # type: ignore[arg-type] # same
    assert first.owner is not None
    landings.flights.append(Flight(first, first.owner, 0.0, 0.0, landed, MoveOutcome.LANDED))
    return Judgement(landings, RunReport(Plan(made_at=NOW), []), plan_again), asked


async def test_without_a_surprise_every_move_is_made() -> None:
    judge, asked = judgement([], landed="y")
    assert await judge.against(group(move("a"))) == ""
    assert asked == []


async def test_after_a_surprise_a_move_is_made_only_if_a_new_plan_has_it() -> None:
    judge, asked = judgement([move("a")])
    assert await judge.against(group(move("a"))) == ""
    why = await judge.against(group(move("b", node="other")))
    assert why == "the cluster no longer looks as planned: it needs no move any more"
    assert asked == [1]


async def test_pods_of_one_owner_on_one_node_stand_in_for_each_other() -> None:
    judge, _ = judgement([move("new")])
    assert await judge.against(group(move("a"))) == ""
    assert await judge.against(group(move("b"))) != ""


@pytest.mark.parametrize(
    ("reason", "stays"),
    [(Ground.BUDGET_SPENT, False), (Ground.COOLDOWN, False), (Ground.NO_BETTER_NODE, True)],
)
async def test_what_the_run_itself_has_used_up_says_nothing(reason: Ground, stays: bool) -> None:
    pod = move("a").pod
    judge, _ = judgement([], skipped=[Skipped(pod=pod, strategy="Test", reason=reason)])
    assert bool(await judge.against(group(move("a")))) is stays


async def test_a_judgement_waits_for_replacements_that_come_at_once_only() -> None:
    for kind, waits in (("ReplicaSet", True), ("Job", False)):
        judge, _ = judgement([])
        owner = Owner(kind=kind, name="other", uid="other")
        judge.landings.open.append(Flight(move("under way"), owner, 0.0, 60.0))
        assert judge.must_wait(group(move("a"))) is waits


async def test_moves_that_make_room_are_not_judged_again() -> None:
    judge, asked = judgement([])
    assert await judge.against(group(move("a", destination=""))) == ""
    assert asked == []
