"""Items run side by side, at most so many at a time, and the first error ends the run."""

from __future__ import annotations

import asyncio

import pytest

from claimctl.parallel import in_parallel, mapped, side_by_side, wait_any


async def test_at_most_limit_items_run_at_a_time_and_all_run() -> None:
    running, most, done = 0, 0, []

    async def work(item: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(1.0)
        running -= 1
        done.append(item)

    await in_parallel(work, range(10), 3)
    assert (most, sorted(done)) == (3, list(range(10)))


async def test_the_first_error_is_raised_as_it_is_and_no_further_item_begins() -> None:
    begun, cancelled = [], []

    async def work(item: int) -> None:
        begun.append(item)
        try:
            await asyncio.sleep(1.0 + item)
        except asyncio.CancelledError:
            cancelled.append(item)
            raise
        raise ValueError(f"item {item}")

    with pytest.raises(ValueError, match="item 0"):
        await in_parallel(work, range(10), 3)
    assert (begun, sorted(cancelled)) == ([0, 1, 2], [1, 2])


async def test_a_cancelled_caller_cancels_its_items() -> None:
    async def work(_: int) -> None:
        await asyncio.sleep(60.0)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.0):
            await in_parallel(work, range(3), 2)


async def test_nothing_to_do_ends_at_once() -> None:
    async def work(_: int) -> None:
        raise AssertionError

    await in_parallel(work, (), 4)


@pytest.mark.parametrize(("set_after", "waited"), [(3.0, 3.0), (9.0, 5.0)])
async def test_a_wait_ends_with_the_first_event_or_in_time(set_after: float, waited: float) -> None:
    loop, first, second = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    loop.call_later(set_after, second.set)
    began = loop.time()
    await wait_any(first, second, seconds=5.0)
    assert loop.time() - began == pytest.approx(waited)


async def test_answers_come_in_the_order_of_the_questions() -> None:
    async def ask(seconds: int) -> int:
        await asyncio.sleep(seconds)
        return seconds * 10

    loop = asyncio.get_running_loop()
    begun = loop.time()
    assert await mapped(ask, [3, 1, 2], 2) == [30, 10, 20]
    assert loop.time() - begun == 3


async def test_the_first_error_of_a_group_is_raised_as_it_is() -> None:
    async def fail() -> None:
        raise KeyError("x")

    async def wait_beside() -> None:
        async with side_by_side() as group:
            group.create_task(fail())
            await asyncio.sleep(60)

    with pytest.raises(KeyError, match="x"):
        await wait_beside()
