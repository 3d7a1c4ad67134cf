"""A queue of keys for a component."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class WorkQueue(Generic[K]):
    """A queue in which each key waits once. ``backoff`` has the pauses before retries."""

    def __init__(self, backoff: tuple[float, ...]) -> None:
        self._backoff = backoff
        self._ready: OrderedDict[K, None] = OrderedDict()
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._attempts: dict[K, int] = {}
        self._waiter: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return len(self._ready) + len(self._timers)

    def add(self, key: K) -> None:
        self._ready.setdefault(key)
        self._wake()

    def add_first(self, key: K) -> None:
        """Add a key before all other ready keys."""
        self._ready[key] = None
        self._ready.move_to_end(key, last=False)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def add_after(self, key: K, seconds: float) -> None:
        """Add a key later. Of two times the earlier counts."""
        if seconds <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= due:
                return
            timer.cancel()
        self._timers[key] = loop.call_at(due, self._ripen, key)

    def retry(self, key: K) -> None:
        """Add a failed key, after the pause for its number of failures."""
        failures = self._attempts.get(key, 0)
        self._attempts[key] = failures + 1
        self.add_after(key, self._backoff[min(failures, len(self._backoff) - 1)])

    def forget(self, key: K) -> None:
        """Reset the failures of a key."""
        self._attempts.pop(key, None)

    async def get(self) -> K:
        while not self._ready:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._take()

    def close(self) -> None:
        """Cancel all timers."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _take(self) -> K:
        return self._ready.popitem(last=False)[0]

    def _ripen(self, key: K) -> None:
        self._timers.pop(key, None)
        self.add(key)
