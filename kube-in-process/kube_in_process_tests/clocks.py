"""A clock that stands until a test moves it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(slots=True)
class StoppedClock:
    """``time`` is what it shows."""

    time: datetime = datetime(2026, 1, 2, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        return None
