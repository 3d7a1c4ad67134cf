"""When a real cluster is at rest, which stories there is time for, and which differ."""

from __future__ import annotations

import asyncio
import functools
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from kube_in_process.seams import HttpResponse, Response

from judges.differential.actions import clusters, rehearsal
from judges.differential.actions.clusters import Canary, Log
from judges.differential.actions.judge import StoryDifference
from judges.differential.actions.play import Player
from judges.differential.actions.rehearsal import AHEAD, Rehearsal, Rehearsals
from judges.differential.actions.runs import Comparer
from judges.differential.actions.story import Story

Object = dict[str, Any]


def _log(*objects: Object) -> Log:
    log = Log(lambda: 0.0)
    log.current = {(body["kind"], body["metadata"]["name"]): body for body in objects}
    return log


def _pod(uid: str, node: str) -> Object:
    return {"kind": "Pod", "metadata": {"name": uid, "uid": uid}, "spec": {"nodeName": node}}


def _claim(owner: str) -> Object:
    metadata = {"name": f"claim-{owner}", "ownerReferences": [{"uid": owner}]}
    return {"kind": "ResourceClaim", "metadata": metadata}


def test_the_canary_is_replaced_once_another_pod_is_bound_and_the_old_claim_is_gone() -> None:
    old, new = _pod("old", "node"), _pod("new", "node")
    gone = {"old"}
    assert not clusters._replaced(_log(old), gone)
    assert not clusters._replaced(_log(_pod("new", ""), _claim("new")), gone)
    assert not clusters._replaced(_log(new, _claim("new"), _claim("old")), gone)
    assert clusters._replaced(_log(new, _claim("new")), gone)


async def test_only_what_began_after_an_event_is_a_witness_of_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    canary = Canary()
    now[0] = 1.0
    canary.begin()
    now[0] = 3.0
    assert (canary.latest, canary.longest()) == (0.0, 2.0)
    await canary.end()
    assert (canary.latest, canary.longest()) == (1.0, 2.0)
    canary.begin()
    now[0] = 40.0
    await canary.end(replaced=False)
    assert (canary.latest, canary.longest()) == (1.0, 37.0)


class _Pool:
    """Plays stories at once: number N takes N virtual seconds."""

    def submit(self, _: Callable[..., Any], *arguments: Any) -> Future[Rehearsal]:
        _, number, story = arguments
        done: Future[Rehearsal] = Future()
        done.set_result(Rehearsal(number, story, float(number), b""))
        return done


def _rehearsals(numbers: Iterator[int]) -> Rehearsals:
    pool: Any = _Pool()
    return Rehearsals(pool, ((1, 36), True), numbers, lambda number: Story(str(number), ()))


async def test_stories_come_in_their_order_but_for_those_that_take_too_long() -> None:
    rehearsals = _rehearsals(iter([30, 10, 20, 5]))
    rehearsals.note(Rehearsal(0, Story("", ()), 10.0, b""), 20.0)
    assert rehearsals.slowness == 2.0
    await rehearsals.run()
    rehearsed = [await rehearsals.take(functools.partial(float, left)) for left in (15, 50, 50, 50)]
    assert ([taken.number if taken else None for taken in rehearsed]) == [5, 10, 20, None]


async def test_no_more_stories_are_played_ahead_than_are_kept() -> None:
    played: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(1000, 2000):
            played.append(number)
            yield number

    rehearsals = _rehearsals(numbers())
    ahead = asyncio.create_task(rehearsals.run())
    taken = await rehearsals.take(lambda: 1.0)
    ahead.cancel()
    await asyncio.wait([ahead])
    assert taken is None
    assert AHEAD <= len(played) <= AHEAD + rehearsal._AT_ONCE


class _Tries(Comparer):
    """Compares by a table: the kinds of difference that each try shows."""

    def __init__(self, *tries: str) -> None:
        self._shown = iter(tries)

    async def look(self, rehearsal: Rehearsal, quiet: float = 0.0) -> list[StoryDifference]:
        return [StoryDifference(1, kind, "theirs", "ours") for kind in next(self._shown)]


@pytest.mark.parametrize(
    ("tries", "differs"),
    [
        (["a", ""], ""),
        (["ab", "b", "b", "bc"], "b"),
        (["a", "a", "", "a"], ""),
        (["a", "a", "a", ""], ""),
        (["a", "b", "a", "c"], "c"),
    ],
)
async def test_a_story_differs_if_no_try_goes_as_on_the_embedded_cluster(
    tries: list[str], differs: str
) -> None:
    first, *more = tries
    comparer = _Tries(*more)
    rehearsal = Rehearsal(1, Story("", ()), 10.0, b"")
    shown = [StoryDifference(1, kind, "theirs", "ours") for kind in first]
    result = await comparer.again(rehearsal, shown)
    assert "".join(difference.kind for difference in result.differences) == differs
    assert bool(result.unsteady) is not bool(differs)


async def _nothing() -> AsyncIterator[bytes]:
    yield b"{}"


class _Nodes:
    """A stage with three nodes: what the player sends to it."""

    def __init__(self, *bound: Object) -> None:
        self.log = _log(*bound)
        self.sent: list[tuple[str, Object]] = []
        self.fleet = SimpleNamespace(names=("node-0", "node-1", "node-2"))
        self.transport: Any = self

    async def send(self, _: str, path: str, *given: Any) -> Response:
        self.sent.append((path.rpartition("/")[2], json.loads(given[-1])["spec"]))
        return HttpResponse(200, {}, _nothing())


async def test_the_node_that_was_changed_first_is_changed_back_by_the_same_kind_of_change() -> None:
    stage: Any = _Nodes()
    player = Player(stage, "ns")
    cordoned: Object = {"unschedulable": True}
    for what, which in (
        ("taint", {"index": 0, "taints": ["t"]}),
        ("cordon", {"index": 2}),
        ("cordon", {"index": 1}),
        ("cordon", {"index": 2}),
        ("uncordon", {}),
        ("untaint", {}),
        ("uncordon", {}),
    ):
        assert [change async for change in player._node(what, {"what": what, **which})] == ["200"]
    assert stage.sent == [
        ("node-0", {"taints": ["t"]}),
        ("node-2", cordoned),
        ("node-1", cordoned),
        ("node-2", cordoned),
        ("node-2", {"unschedulable": None}),
        ("node-0", {"taints": None}),
        ("node-1", {"unschedulable": None}),
    ]
    for what in ("uncordon", "untaint", "restore"):
        assert [change async for change in player._node(what, {"what": what})] == ["no such node"]
