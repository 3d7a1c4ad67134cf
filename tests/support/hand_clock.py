"""A clock that a test moves by hand."""

from __future__ import annotations

from datetime import datetime, timedelta

from tests.support.builders import NOW


class HandClock:
    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.time)

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds
