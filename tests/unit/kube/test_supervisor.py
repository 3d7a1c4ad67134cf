"""Named tasks under supervision: each end is noticed."""

from __future__ import annotations

import asyncio

import pytest

from claimctl.kube.supervisor import TaskEnded, Tasks


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
