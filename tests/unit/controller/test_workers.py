"""Workers: one key's trouble is its own; tasks that die are heard of."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from random import Random

import pytest
import structlog
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from claimctl.controller.keys import PlanKey
from claimctl.controller.supervisor import TaskEnded, Tasks
from claimctl.controller.workers import DONE, After, Controller, Outcome, Shift, WorkerPool
from claimctl.kube.clock import LoopClock
from claimctl.kube.errors import TooManyRequests, Unreachable
from claimctl.kube.queue import QueueRunner, RetryLimiter, WorkQueue
from claimctl.telemetry.face import Span
from tests.support.builders import NOW
from tests.support.recording import Recording
from tests.support.virtual import run

KEY = PlanKey("key")


class Scripted:
    """Answers one reconcile after the other from a script, and notes when each was asked for."""

    name = "scripted"

    def __init__(self, *script: Outcome | Exception) -> None:
        self.script = list(script)
        self.asked: list[tuple[str, float]] = []

    async def reconcile(self, key: PlanKey, span: Span) -> Outcome:
        self.asked.append((key.name, round(asyncio.get_running_loop().time(), 2)))
        step = self.script.pop(0) if self.script else DONE
        if isinstance(step, Exception):
            raise step
        return step


def controller(reconciler: Scripted, telemetry: Recording) -> Controller[PlanKey]:
    clock = LoopClock(NOW)
    queue = QueueRunner(WorkQueue[PlanKey](), clock, limiter=RetryLimiter(Random(1)))
    return Controller(queue, reconciler, clock, telemetry)


def worked(reconciler: Scripted, seconds: float, *keys: PlanKey) -> Recording:
    telemetry = Recording()

    async def main() -> None:
        made, pool = controller(reconciler, telemetry), WorkerPool()
        for key in keys:
            made.queue.add(key)
        pool.add("worker", made.work)
        await asyncio.sleep(seconds)
        await pool.drain(1.0)

    run(main())
    return telemetry


def test_an_outcome_with_a_time_is_looked_at_again_then() -> None:
    reconciler = Scripted(After(3.0), After(0.0), DONE)
    worked(reconciler, 10, KEY)
    assert reconciler.asked == [("key", 0.0), ("key", 3.0), ("key", 3.01)]


def test_each_log_line_says_who_works_on_what_in_which_trace() -> None:
    """And no line after the reconcile does."""
    refused = Unreachable("GET", "/x", "refused")
    with capture_logs(processors=[merge_contextvars]) as lines:
        worked(Scripted(refused, RuntimeError("a bug")), 10, KEY)
        structlog.get_logger().info("later")
    bound = {
        "controller": "scripted",
        "name": "key",
        "trace_id": "0af7651916cd43dd8448eb211c80319c",
    }
    assert [line["event"] for line in lines] == [
        "requeued after an error",
        "reconcile failed",
        "later",
    ]
    assert [bound.items() <= line.items() for line in lines] == [True, True, False]


def test_errors_are_tried_again_with_growing_pauses_and_do_not_stop_others() -> None:
    refused = Unreachable("GET", "/x", "refused")
    reconciler = Scripted(refused, RuntimeError("a bug"), refused, DONE)
    telemetry = worked(reconciler, 10, KEY, PlanKey("other"))
    assert [name for name, _ in reconciler.asked[:2]] == ["key", "other"]
    assert sorted(name for name, _ in reconciler.asked) == ["key", "key", "key", "other", "other"]
    assert len(telemetry.failures) == 3
    outcomes = {
        dict(labels)["outcome"]: len(each) for (_, labels), each in telemetry.observed.items()
    }
    assert outcomes == {"error": 3, "success": 2}


def throttled(seconds: float) -> TooManyRequests:
    error = TooManyRequests("GET", "/x", status=429)
    error.retry_after = seconds
    return error


def test_a_server_that_asks_for_a_pause_gets_it() -> None:
    reconciler = Scripted(throttled(7.0))
    worked(reconciler, 20, KEY)
    assert 7.0 < reconciler.asked[-1][1] < 7.3


def test_keys_that_were_told_the_same_pause_do_not_come_back_as_one() -> None:
    keys = [PlanKey(f"key-{number}") for number in range(20)]
    reconciler = Scripted(*[throttled(5.0)] * 100)
    worked(reconciler, 60, *keys)
    last = [at for _, at in reconciler.asked[-20:]]
    assert len(set(last)) > 15
    assert max(last) - min(last) > 1.0


def test_a_server_that_goes_on_asking_for_pauses_is_asked_less_and_less_often() -> None:
    reconciler = Scripted(*[throttled(5.0)] * 1000)
    worked(reconciler, 3600, KEY)
    assert len(reconciler.asked) < 90


def test_what_failed_in_an_outage_is_tried_again_soon_after_it() -> None:
    reconciler = Scripted(*[Unreachable("GET", "/x", "refused")] * 100)
    worked(reconciler, 600, KEY)
    times = [at for _, at in reconciler.asked]
    assert max(b - a for a, b in pairwise(times)) <= 10.0


async def test_work_that_has_begun_ends_before_the_drain_does() -> None:
    done: list[str] = []
    pool = WorkerPool()

    async def slow(shift: Shift) -> None:
        shift.busy = True
        await asyncio.sleep(3)
        done.append("slow")

    async def stuck(shift: Shift) -> None:
        shift.busy = True
        await asyncio.Event().wait()

    async def idle(shift: Shift) -> None:
        await asyncio.Event().wait()

    for name, job in (("slow", slow), ("stuck", stuck), ("idle", idle)):
        pool.add(name, job)
    await asyncio.sleep(1)
    await pool.drain(5)
    assert asyncio.get_running_loop().time() == 6
    assert done == ["slow"]


async def test_a_worker_that_fails_is_heard_of() -> None:
    pool = WorkerPool()

    async def broken(shift: Shift) -> None:
        raise RuntimeError("broken")

    pool.add("broken", broken)
    with pytest.raises(RuntimeError, match="broken"):
        await pool.work()
    await pool.cancel()


async def fails(error: Exception) -> None:
    await asyncio.sleep(1)
    raise error


async def test_the_first_failure_of_a_task_is_raised_to_the_watcher() -> None:
    tasks = Tasks()
    tasks.spawn("one", fails(RuntimeError("first")))
    tasks.spawn("two", fails(RuntimeError("second")))
    with pytest.raises(RuntimeError, match="first"):
        await tasks.failed()
    await tasks.stop(deadline=1)


async def test_a_task_that_just_ends_is_a_failure_too() -> None:
    tasks = Tasks()
    tasks.spawn("brief", asyncio.sleep(1))
    with pytest.raises(TaskEnded, match="brief ended unexpectedly"):
        await tasks.failed()


async def test_tasks_stop_in_the_reverse_order_and_within_the_deadline() -> None:
    tasks = Tasks()
    stopped: list[str] = []

    async def lives(name: str, slow: float = 0.0) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(slow)
            stopped.append(name)

    for name, slow in (("one", 0.0), ("two", 2.0), ("stuck", 100.0), ("three", 0.0)):
        tasks.spawn(name, lives(name, slow))
    await asyncio.sleep(1)
    await tasks.stop("three", deadline=1)
    assert stopped == ["three"]
    await tasks.stop(deadline=5)
    assert asyncio.get_running_loop().time() == 6
    assert stopped[0] == "three"
