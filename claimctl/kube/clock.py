"""A clock that follows the running event loop."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta


class LoopClock:
    """A Clock on the running event loop. On a loop with virtual time, all its times are virtual.

    Args:
        epoch: the wall time at time 0 of the loop; None means the machine's wall clock.
    """

    def __init__(self, epoch: datetime | None = None) -> None:
        self._epoch = epoch

    def now(self) -> datetime:
        if self._epoch is None:
            return datetime.now(UTC)
        return self._epoch + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
