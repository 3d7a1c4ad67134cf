"""The workers of a controller: they are started together, and drained."""

from __future__ import annotations

import asyncio

import pytest

from claimctl.controller.workers import Shift, WorkerPool


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
