"""An event loop with a virtual clock, which jumps to the next timer when nothing is ready.

The loop asks no selector and waits for no thread. So the code alone decides the order of events,
and a run repeats exactly. Real sockets and threads do not work here: a task that waits for one is
reported as a deadlock.
"""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_SPINS = 1_000_000


class Deadlock(RuntimeError):
    """Nothing is ready and no timer is set, so all tasks wait for ever."""


class OutOfTime(RuntimeError):
    """The virtual clock passed the limit of the run, or the loop spins while the clock stops."""


class LostError(RuntimeError):
    """A task or callback failed, and its exception was never retrieved."""


class _Selector(selectors.SelectSelector):
    """Watches no file descriptor: a wait of N seconds moves the loop's clock by N."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.limit = float("inf")
        self.spins = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Deadlock(f"nothing is ready and no timer is set at t={self.now:g}s:{_pending()}")
        if timeout <= 0:
            self._spin()
            return []
        self.spins = 0
        self.now += timeout
        if self.now > self.limit:
            raise OutOfTime(f"still running after {self.limit:g} virtual seconds:{_pending()}")
        return []

    def _spin(self) -> None:
        self.spins += 1
        if self.spins > _SPINS:
            raise OutOfTime(f"{_SPINS} rounds without a wait at t={self.now:g}s:{_pending()}")


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop behind :func:`run`; its clock starts at 0."""

    def __init__(self, limit: float) -> None:
        self._virtual = _Selector()
        self._virtual.limit = limit
        self.lost: list[dict[str, Any]] = []
        super().__init__(self._virtual)
        self.set_exception_handler(lambda _, context: self.lost.append(context))

    def time(self) -> float:
        return self._virtual.now

    @property
    def _clock_resolution(self) -> float:
        """Zero, since the base class fires timers early by up to this much.

        On a real clock that does no harm. Here a task that wakes too early would find that it is
        not yet time, and would wait again for ever: the clock cannot move by less than it can hold.
        """
        return math.ulp(self._virtual.now)

    @_clock_resolution.setter
    def _clock_resolution(self, seconds: float) -> None:
        """Ignored: the base class sets the resolution of the machine's clock."""

    def allow(self, seconds: float) -> None:
        """Allow the clock to run for ``seconds`` more from now."""
        self._virtual.limit = self._virtual.now + seconds
        self._virtual.spins = 0


def _pending() -> str:
    try:
        tasks = asyncio.all_tasks(asyncio.get_running_loop())
    except RuntimeError:
        return ""
    named = sorted((task.get_name(), _where(task)) for task in tasks)
    return "".join(f"\n  {name} at {where}" for name, where in named)


def _where(task: asyncio.Task[Any]) -> str:
    frames = task.get_stack()
    if not frames:
        return "?"
    code = frames[-1].f_code
    return f"{code.co_qualname} ({code.co_filename}:{frames[-1].f_lineno})"


def run(coro: Coroutine[Any, Any, T], *, limit: float = 3600.0) -> T:
    """Run ``coro`` to its end on a virtual clock and return what it returns.

    Args:
        limit: virtual seconds after which the run ends. Tasks that are then cancelled have as long
            again.

    Raises:
        Deadlock: nothing is ready, no timer is set and ``coro`` has not ended.
        OutOfTime: ``coro`` has not ended within ``limit``.
        LostError: ``coro`` ended well, but the exception of another task was never retrieved.
    """
    loop = VirtualLoop(limit)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        try:
            result = runner.run(coro)
        finally:
            loop.allow(limit)
    if loop.lost:
        first = loop.lost[0]
        raise LostError(str(first.get("message"))) from first.get("exception")
    return result
