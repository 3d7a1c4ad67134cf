"""The work queue against a plain model, and on a clock."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from claimctl.kube.clock import LoopClock
from claimctl.kube.errors import BadRequest, Forbidden, KubeError, ServerError, Unreachable
from claimctl.kube.queue import FINAL_SECONDS, QueueRunner, WorkQueue
from claimctl.kube.retry import Backoff
from claimctl.telemetry.face import Metric
from tests.support.telemetry import Recorder

KEYS = st.sampled_from(["a1", "a2", "a3", "b1", "b2", "c1"])
DELAYS = st.sampled_from([0.0, 0.0, 1.0, 2.0, 5.0])
Moment = tuple[float, int]
"""A time, and a number by which those of equal times are in order."""


class QueueModel(RuleBasedStateMachine):
    """The invariants of the queue's docstring, kept in the plainest way: unordered lists. The first
    letter of a key is its tenant."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: WorkQueue[str] = WorkQueue(lambda key: key[0])
        self.now = 0.0
        self.count = 0
        self.waiting: dict[str, Moment] = {}
        self.held: dict[str, float | None] = {}
        self.pauses: dict[str, float] = {}
        self.turns: dict[str, Moment] = {}
        """By tenant: when its last turn began or ended."""

    def wait(self, key: str, at: float) -> None:
        # what is already due keeps its place
        known = self.waiting.get(key)
        if known is not None and known[0] <= self.now:
            return
        at = max(at, self.pauses.get(key, at))
        if known is None or at < known[0]:
            self.count += 1
            self.waiting[key] = (at, self.count)

    def turn(self, key: str) -> None:
        self.count += 1
        self.turns[key[0]] = (self.now, self.count)

    def place(self, tenant: str, first: Moment) -> tuple[int, Moment]:
        """The place in the line of a tenant, whose first ready key has waited since ``first``."""
        in_work = sum(key[0] == tenant for key in self.held)
        return in_work, max(first, self.turns.get(tenant, first))

    @rule(key=KEYS, delay=DELAYS)
    def add(self, key: str, delay: float) -> None:
        self.queue.add(key, self.now, delay)
        self.again(key, self.now + delay)

    def again(self, key: str, at: float) -> None:
        if key in self.held:
            again = self.held[key]
            self.held[key] = at if again is None else min(at, again)
        else:
            self.wait(key, at)

    @rule()
    def get(self) -> None:
        due = sorted((at, n, key) for key, (at, n) in self.waiting.items() if at <= self.now)
        firsts: dict[str, Moment] = {}
        for at, n, key in due:
            firsts.setdefault(key[0], (at, n))
        lines = sorted((self.place(tenant, first), tenant) for tenant, first in firsts.items())
        expected = next((key for *_, key in due if key[0] == lines[0][1]), None)
        assert self.queue.get(self.now) == expected
        if expected is not None:
            assert self.queue.waiting_time(expected) == self.now - self.waiting[expected][0]
            del self.waiting[expected]
            self.pauses.pop(expected, None)
            self.held[expected] = None
            self.turn(expected)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), seconds=st.sampled_from([1.0, 4.0]), delay=DELAYS)
    def pause(self, data: st.DataObject, seconds: float, delay: float) -> None:
        key = data.draw(st.sampled_from(sorted(self.held)))
        self.queue.pause(key, self.now, seconds, delay)
        self.pauses[key] = self.now + seconds
        self.again(key, self.now + max(seconds, delay))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.held)))
        self.queue.done(key, self.now)
        again = self.held.pop(key)
        self.turn(key)
        if again is not None:
            self.wait(key, max(again, self.now))

    @rule(seconds=st.sampled_from([0.5, 1.0, 3.0]))
    def later(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def counts_agree(self) -> None:
        assert len(self.queue) == len(self.waiting)
        times = [at for at, _ in self.waiting.values()]
        expected = max(min(times), self.now) if times else None
        assert self.queue.next_at(self.now) == expected
        self.queue.next_at(self.now)
        assert self.queue.ready == sum(at <= self.now for at in times)


TestModel = QueueModel.TestCase
TestModel.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None, derandomize=True, database=None
)


def test_a_key_that_nobody_holds_cannot_be_done() -> None:
    with pytest.raises(KeyError):
        WorkQueue[str]().done("a", 0.0)


def runner(
    recorder: Recorder | None = None, first: float = 10.0, cap: float = 100.0
) -> QueueRunner[str]:
    backoff = Backoff(first=first, cap=cap)
    return QueueRunner(
        LoopClock(), name="claims", telemetry=recorder, rng=Random(1), backoff=backoff
    )


async def test_pauses_grow_per_key_up_to_the_cap_and_start_anew_when_forgotten() -> None:
    queue = runner(first=1.0, cap=8.0)
    pauses = [queue.retry("a") for _ in range(6)]
    assert [p <= bound for p, bound in zip(pauses, [1, 2, 4, 8, 8, 8], strict=True)] == [True] * 6
    assert [p >= bound / 2 for p, bound in zip(pauses, [1, 2, 4, 8, 8, 8], strict=True)] == (
        [True] * 6
    )
    assert queue.retry("b") <= 1.0
    queue.forget("a")
    assert queue.retry("a") <= 1.0


async def test_after_an_outage_a_key_waits_neither_long_nor_longer_for_the_first_answer() -> None:
    queue = runner(first=1.0, cap=60.0)
    pauses = [queue.retry("a", error=Unreachable("GET", "/", "refused")) for _ in range(40)]
    assert max(pauses) <= 10.0
    assert queue.retry("a", error=ServerError("GET", "/", status=503)) <= 1.0


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (Forbidden("PATCH", "/", status=403), 10.0),
        (BadRequest("GET", "/", message="'a/b' is not a name"), FINAL_SECONDS),
    ],
)
async def test_no_event_hurries_what_the_server_refuses(error: KubeError, again: float) -> None:
    """After a short pause, an event brings back what only an event can mend."""
    queue, loop = runner(), asyncio.get_running_loop()
    queue.add("a")
    times = []
    for _ in range(9):
        assert await queue.get() == "a"
        times.append(loop.time())
        assert queue.retry("a", error=error) <= again
        queue.add("a")
        queue.done("a")
        queue.add("a")
    pauses = [after - before for before, after in pairwise(times)]
    assert 0.25 <= pauses[0] <= 0.5
    assert all(5.0 <= pause <= 10.0 for pause in pauses[-3:])


async def test_workers_get_keys_when_their_time_has_come() -> None:
    got: list[tuple[str, float]] = []

    async def worker(queue: QueueRunner[str]) -> None:
        while True:
            key = await queue.get()
            got.append((key, asyncio.get_running_loop().time()))
            await asyncio.sleep(2)
            queue.done(key)

    queue = runner()
    workers = [asyncio.create_task(worker(queue)) for _ in range(2)]
    await asyncio.sleep(1)
    for key, delay in (("late", 10), ("a", 0), ("b", 0), ("c", 0), ("a", 0)):
        queue.add(key, delay)
    await asyncio.sleep(1)
    queue.add("a")
    await asyncio.sleep(30)
    for task in workers:
        task.cancel()
    assert got == [("a", 1.0), ("b", 1.0), ("c", 3.0), ("a", 3.0), ("late", 11.0)]


async def test_a_worker_that_is_cancelled_while_it_waits_takes_no_key_along() -> None:
    queue = runner()
    first = asyncio.create_task(queue.get())
    second = asyncio.create_task(queue.get())
    await asyncio.sleep(1)
    queue.add("a")
    first.cancel()
    assert (await second) == "a"


async def test_keys_that_come_together_go_to_as_many_workers() -> None:
    queue = runner()
    workers = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(1)
    for key in "abc":
        queue.add(key)
    assert [await worker for worker in workers] == ["a", "b", "c"]
    assert asyncio.get_running_loop().time() == 1.0


async def test_a_key_that_failed_comes_back_after_its_pause() -> None:
    queue = runner()
    queue.add("a")
    key = await queue.get()
    pause = queue.retry(key)
    queue.done(key)
    await queue.get()
    assert pause == asyncio.get_running_loop().time()
    assert 5.0 <= pause <= 10.0


async def test_depth_counts_what_could_be_worked_on_and_waits_are_measured() -> None:
    recorder = Recorder()
    queue = runner(recorder)
    queue.add("a")
    queue.add("b")
    queue.add("later", 100)
    await asyncio.sleep(3)
    queue.done(await queue.get())
    labels = {"controller": "claims"}
    assert recorder.metrics == [
        (Metric.WORKQUEUE_DEPTH, labels, 1),
        (Metric.WORKQUEUE_DEPTH, labels, 2),
        (Metric.WORKQUEUE_SECONDS, labels, 3.0),
        (Metric.WORKQUEUE_DEPTH, labels, 1),
    ]
