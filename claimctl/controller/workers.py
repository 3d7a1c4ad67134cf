"""Workers pass keys from a queue to a reconciler, with spans, metrics and pauses after errors.

The workers of a controller process form a pool: they are started and drained together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from structlog.contextvars import bound_contextvars

from claimctl.kube.errors import ApiError, KubeError
from claimctl.kube.queue import QueueRunner
from claimctl.telemetry.face import LateLogger, Metric, Span, Telemetry
from claimctl.wire.seams import Clock

log = LateLogger(__name__)
SHORTEST_WAIT = 0.01
"""Least wait in seconds. After a shorter wait, the clock might not have moved."""

K = TypeVar("K", bound="Named")


class Named(Protocol):
    """A key: a named tuple, whose fields appear in log lines."""

    def __hash__(self) -> int: ...

    def _asdict(self) -> dict[str, Any]: ...


C = TypeVar("C", bound=Named, contravariant=True)


@dataclass(frozen=True, slots=True)
class After:
    """Reconcile again after so many seconds, even if nothing changes; None means not before."""

    seconds: float | None


DONE, SOON = After(None), After(0.5)
"""After ``SOON``, a watch shows what another client wrote, or what this process knows already."""


class Reconciler(Protocol[C]):
    """Reconciles one key from the present state and returns one outcome, or raises an error."""

    @property
    def name(self) -> str: ...

    async def reconcile(self, key: C, span: Span) -> After: ...


@dataclass(slots=True)
class Shift:
    """Tells one worker whether to take another key, and knows whether the worker is busy."""

    over: bool = False
    busy: bool = False


@dataclass(frozen=True, slots=True)
class Controller(Generic[K]):
    """A queue with its reconciler."""

    queue: QueueRunner[K]
    reconciler: Reconciler[K]
    clock: Clock
    telemetry: Telemetry

    async def work(self, shift: Shift) -> None:
        """Serve the queue until the shift is over. An error of one key does not stop the others."""
        while not shift.over:
            key = await self.queue.get()
            shift.busy = True
            try:
                await self._reconcile_next(key)
            finally:
                shift.busy = False
                self.queue.done(key)

    async def _reconcile_next(self, key: K) -> None:
        began = self.clock.monotonic()
        outcome = "error"
        with (
            self.telemetry.span(f"reconcile {self.reconciler.name}") as span,
            bound_contextvars(controller=self.reconciler.name, **key._asdict()),
        ):
            try:
                after = await self.reconciler.reconcile(key, span)
                self.queue.forget(key)
                if after.seconds is not None:
                    self.queue.add(key, max(after.seconds, SHORTEST_WAIT))
                outcome = "success"
            except KubeError as error:
                span.fail(error)
                # the pause that the server asks for, and a growing one on top
                asked = error.retry_after if isinstance(error, ApiError) else None
                pause = self.queue.retry(key, at_least=asked or 0.0, error=error)
                log.warning("requeued after an error", error=str(error), seconds=round(pause, 3))
            except Exception as error:
                # a bug at one claim must not stop the work on other claims
                span.fail(error)
                log.exception("reconcile failed")
                self.queue.retry(key)
            # within the span, so that the duration can lead to its trace
            labels = {"controller": self.reconciler.name, "outcome": outcome}
            took = self.clock.monotonic() - began
            self.telemetry.observe(Metric.RECONCILE_SECONDS, took, labels)


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
