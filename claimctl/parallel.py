"""Run requests side by side, with a limit, and wait for the first of several events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")


async def in_parallel(work: Callable[[T], Awaitable[None]], items: Iterable[T], limit: int) -> None:
    """Call ``work`` with each item, for at most ``limit`` items at a time.

    Items begin in their order. After the first error no further item begins, running ones are
    cancelled, and this error is raised.
    """
    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:
            await work(item)

    async with side_by_side() as group:
        for _ in range(limit):
            group.create_task(worker())


async def mapped(ask: Callable[[T], Awaitable[U]], items: Iterable[T], limit: int) -> list[U]:
    """What ``ask`` answers for each item, in their order, for at most ``limit`` at a time."""
    every = tuple(items)
    answers: dict[int, U] = {}

    async def note(index: int) -> None:
        answers[index] = await ask(every[index])

    await in_parallel(note, range(len(every)), limit)
    return [answers[index] for index in range(len(every))]


@asynccontextmanager
async def side_by_side() -> AsyncIterator[asyncio.TaskGroup]:
    """A group of tasks whose first error is raised as it is, and not in a group of errors."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except* Exception as errors:
        first: BaseException = errors
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None


async def wait_for(event: asyncio.Event, seconds: float | None) -> None:
    """Wait until the event is set, for ``seconds`` at most; None means for ever."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


async def wait_any(*events: asyncio.Event, seconds: float) -> None:
    """Wait until one of the events is set, for ``seconds`` at most."""
    tasks = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
