"""The workers of one controller process. They are started and drained together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

log = structlog.get_logger(__name__)


class Shift:
    """Tells one worker whether to take another key, and knows whether the worker is busy."""

    def __init__(self) -> None:
        self.over = False
        self.busy = False


Job = Callable[[Shift], Coroutine[Any, Any, None]]


class WorkerPool:
    """Workers as tasks. ``work`` raises the exception of the first that fails."""

    def __init__(self) -> None:
        self._workers: list[tuple[Shift, asyncio.Task[None]]] = []

    def add(self, name: str, job: Job) -> None:
        shift = Shift()
        self._workers.append((shift, asyncio.create_task(job(shift), name=name)))

    async def work(self) -> None:
        """Wait until a worker fails, and raise its exception, or until all are drained."""
        tasks = [task for _, task in self._workers]
        while tasks:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done() and not task.cancelled():
                    task.result()
            tasks = [task for task in tasks if not task.done()]

    async def drain(self, seconds: float) -> None:
        """Take no more keys, let begun reconciles end within ``seconds``, and cancel the rest."""
        for shift, task in self._workers:
            shift.over = True
            if not shift.busy:
                task.cancel()
        if tasks := [task for _, task in self._workers]:
            await asyncio.wait(tasks, timeout=seconds)
        await self.cancel()

    async def cancel(self) -> None:
        """Cancel all running workers and wait for their end."""
        running = [task for _, task in self._workers if not task.done()]
        for task in running:
            log.warning("worker cancelled", worker=task.get_name())
            task.cancel()
        if running:
            await asyncio.wait(running)
