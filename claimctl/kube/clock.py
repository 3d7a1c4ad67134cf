"""A clock that follows the running event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta


class LoopClock:
    """A Clock on one event loop. On a loop with virtual time, all its times are virtual.

    It follows the loop that runs when it is first asked for the time.

    Args:
        epoch: the wall time at time 0 of the loop; None means the machine's wall clock.
    """

    def __init__(self, epoch: datetime | None = None) -> None:
        self._epoch = epoch
        self._time: Callable[[], float] | None = None

    def now(self) -> datetime:
        if self._epoch is None:
            return datetime.now(UTC)
        return self._epoch + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        # to find the running loop costs twice as much as to ask it
        if self._time is None:
            self._time = asyncio.get_running_loop().time
        return self._time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
