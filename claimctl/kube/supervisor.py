"""Named tasks under supervision: the end of each task is noticed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from claimctl.telemetry.face import LateLogger

log = LateLogger(__name__)


class TaskEnded(Exception):
    """A task ended by itself that should run as long as the controller."""


class Tasks:
    """The running tasks in the order of their start, and the first failure."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stopping: set[asyncio.Task[None]] = set()

    def spawn(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task. Its end counts as a failure unless it was stopped."""
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(self._note_end)
        self._tasks.append(task)
        return task

    async def failed(self) -> None:
        """Wait until a task fails, and raise its exception."""
        await asyncio.shield(self._failure)

    async def stop(self, *names: str, deadline: float) -> None:
        """Cancel the tasks of these names (all if there are no names), the last started first.

        Wait for each. A task that does not end within the deadline is abandoned and logged.
        """
        chosen = [task for task in self._tasks if not names or task.get_name() in names]
        self._stopping.update(chosen)
        loop = asyncio.get_running_loop()
        until = loop.time() + deadline
        for task in reversed(chosen):
            task.cancel()
            await asyncio.wait({task}, timeout=max(until - loop.time(), 0.0))
            if not task.done():
                log.warning("task did not stop in time", task=task.get_name())
            elif not task.cancelled() and (error := task.exception()) is not None:
                log.debug("task failed while stopping", task=task.get_name(), error=repr(error))
            self._tasks.remove(task)
            self._stopping.discard(task)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if task in self._stopping or self._failure.done():
            return
        if error is None:
            error = TaskEnded(f"{task.get_name()} ended unexpectedly")
        log.debug("task failed", task=task.get_name(), error=repr(error))
        self._failure.set_exception(error)
        self._failure.exception()
