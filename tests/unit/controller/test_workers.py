"""Workers: one key's trouble is its own; tasks that die are heard of."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from random import Random

import structlog
from kube_in_process.virtual import run
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from claimctl.controller.keys import PlanKey
from claimctl.controller.workers import DONE, After, Controller, WorkerPool
from claimctl.kube.clock import LoopClock
from claimctl.kube.errors import TooManyRequests, Unreachable
from claimctl.kube.queue import QueueRunner
from claimctl.telemetry.face import Span
from tests.support.builders import NOW
from tests.support.recording import Recording

KEY = PlanKey("key")


class Scripted:
    """Answers one reconcile after the other from a script, and notes when each was asked for."""

    name = "scripted"

    def __init__(self, *script: After | Exception) -> None:
        self.script = list(script)
        self.asked: list[tuple[str, float]] = []

    async def reconcile(self, key: PlanKey, span: Span) -> After:
        self.asked.append((key.name, round(asyncio.get_running_loop().time(), 2)))
        step = self.script.pop(0) if self.script else DONE
        if isinstance(step, Exception):
            raise step
        return step


def controller(reconciler: Scripted, telemetry: Recording) -> Controller[PlanKey]:
    clock = LoopClock(NOW)
    queue: QueueRunner[PlanKey] = QueueRunner(clock, rng=Random(1))
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


def test_each_log_line_says_who_works_on_what() -> None:
    """And no line after the reconcile does."""
    refused = Unreachable("GET", "/x", "refused")
    with capture_logs(processors=[merge_contextvars]) as lines:
        worked(Scripted(refused, RuntimeError("a bug")), 10, KEY)
        structlog.get_logger().info("later")
    bound = {
        "controller": "scripted",
        "name": "key",
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
