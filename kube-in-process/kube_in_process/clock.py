"""A clock that follows the running event loop."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""The wall time at which tests may begin, so that they repeat."""


class LoopClock:
    """The clock of a cluster. On a loop with virtual time, all its times are virtual.

    Args:
        epoch: the wall time at time 0 of the loop; None means the machine's wall clock.
    """

    def __init__(self, epoch: datetime | None = None) -> None:
        self._epoch = epoch

    def now(self) -> datetime:
        """The wall clock in UTC."""
        if self._epoch is None:
            return datetime.now(UTC)
        return self._epoch + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """Seconds of the loop; 0 where no loop runs yet."""
        try:
            return asyncio.get_running_loop().time()
        except RuntimeError:
            return 0.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
