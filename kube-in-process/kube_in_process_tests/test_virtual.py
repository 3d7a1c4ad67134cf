"""The virtual clock that other tests stand on."""

from __future__ import annotations

import asyncio

import pytest
from kube_in_process.virtual import Deadlock, LostError, OutOfTime, run


def test_an_hour_of_sleep_takes_no_time_and_ends_on_the_second() -> None:
    async def main() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        before = loop.time()
        await asyncio.sleep(3599.25)
        return before, loop.time()

    assert run(main()) == (0.0, 3599.25)


def test_timers_fire_in_the_order_of_their_times() -> None:
    seen: list[str] = []

    async def after(seconds: float, name: str) -> None:
        await asyncio.sleep(seconds)
        seen.append(name)

    async def main() -> None:
        await asyncio.gather(after(3, "c"), after(1, "a"), after(2, "b"))

    run(main())
    assert seen == ["a", "b", "c"]


def test_a_timeout_fires_at_its_virtual_deadline() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert run(main()) == 30.0


def test_waiting_for_nothing_is_a_deadlock_that_names_the_task() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Deadlock, match=r"at t=0s:\n.*main"):
        run(main())


def test_a_run_past_its_limit_is_given_up() -> None:
    async def main() -> None:
        for _ in range(100):
            await asyncio.sleep(7)

    with pytest.raises(OutOfTime, match="after 60 virtual seconds"):
        run(main(), limit=60)


def test_tasks_left_behind_are_cancelled_and_may_take_virtual_time_to_end() -> None:
    ended: list[float] = []

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(5)
            ended.append(asyncio.get_running_loop().time())

    async def main() -> None:
        task = asyncio.create_task(slow())
        await asyncio.sleep(1)
        assert not task.done()

    run(main(), limit=10)
    assert ended == [6.0]


def test_a_failure_that_nobody_looked_at_fails_the_run() -> None:
    async def fail() -> None:
        raise ValueError("lost")

    async def main() -> None:
        task = asyncio.create_task(fail())
        await asyncio.sleep(1)
        del task

    with pytest.raises(LostError, match="never retrieved"):
        run(main())


def test_nobody_is_woken_before_the_time_asked_for() -> None:
    """Who waits for a moment in a loop would otherwise spin just before it for ever."""
    due = 1000.1 + 5e-10

    async def other() -> None:
        await asyncio.sleep(1000.1)

    async def main() -> float:
        task = asyncio.create_task(other())
        loop = asyncio.get_running_loop()
        waits = 0
        while loop.time() < due:
            waits += 1
            assert waits < 5
            await asyncio.sleep(due - loop.time())
        await task
        return loop.time()

    assert run(main()) == due
