"""Time as the running event loop tells it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta


class LoopClock:
    """A Clock on the running loop, so that a loop with virtual time governs everything.

    Args:
        epoch: the wall time at which the loop's own clock read 0; None takes the wall clock of
            the machine.
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
