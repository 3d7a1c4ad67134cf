"""The work queue: what has to be looked at, and not before when."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Hashable
from random import Random
from typing import Generic, TypeVar

from claimctl.kube.retry import Backoff, Failures
from claimctl.telemetry.face import Metric, Silent, Telemetry
from claimctl.wire.seams import Clock

K = TypeVar("K", bound=Hashable)

_AWAY = Backoff(first=0.2, cap=10.0)
"""While nobody answers: what has to be done is not done much later than the server is back."""


class WorkQueue(Generic[K]):
    """Keys that wait, each once; a pure data structure, ``now`` (seconds) is handed in.

    Invariants, for a ``now`` that never goes back:

    1. A key waits at most once, however often it is added.
    2. Of several times asked for, the earliest counts: adding never makes a key wait longer.
    3. No key is handed out before its time, nor while somebody holds it.
    4. A key added while it is held is handed out again after ``done``, at the earliest at the
       time asked for: nothing that happened during the work goes unseen.
    5. Keys are handed out in the order in which their times came; keys of the same moment in the
       order in which they were added; a key that was added while held queues up at ``done``.
    6. ``get`` returns None only if no key's time has come.
    """

    def __init__(self) -> None:
        self._ready: dict[K, float] = {}
        self._later: dict[K, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._held: dict[K, float] = {}
        self._again: dict[K, float] = {}
        self._count = 0

    def __len__(self) -> int:
        """How many keys wait, ready or not; held ones do not count."""
        return len(self._ready) + len(self._later)

    def add(self, key: K, now: float, delay: float = 0.0) -> None:
        """Have ``key`` handed out, not before ``delay`` seconds from now."""
        self._promote(now)
        at = now + max(delay, 0.0)
        if key in self._held:
            self._again[key] = min(at, self._again.get(key, at))
        else:
            self._put(key, at, now)

    def get(self, now: float) -> K | None:
        """The next key whose time has come, held from now on, or None."""
        self._promote(now)
        if not self._ready:
            return None
        key = next(iter(self._ready))
        self._held[key] = now - self._ready.pop(key)
        return key

    def done(self, key: K, now: float) -> None:
        """Let go of a key that ``get`` gave out; KeyError when it is not held."""
        del self._held[key]
        self._promote(now)
        at = self._again.pop(key, None)
        if at is not None:
            self._put(key, max(at, now), now)

    def next_at(self, now: float) -> float | None:
        """When the next key can be handed out: ``now`` if one can already, None if none waits."""
        self._promote(now)
        if self._ready:
            return now
        return self._heap[0][0] if self._heap else None

    def ready(self, now: float) -> int:
        """How many keys could be handed out at once."""
        self._promote(now)
        return len(self._ready)

    def waited(self, key: K) -> float:
        """Seconds that a held key stood ready before it was handed out."""
        return self._held[key]

    def _put(self, key: K, at: float, now: float) -> None:
        if key in self._ready:
            return
        if at <= now:
            self._later.pop(key, None)
            self._ready[key] = at
        elif key not in self._later or at < self._later[key][0]:
            self._count += 1
            self._later[key] = (at, self._count)
            heapq.heappush(self._heap, (at, self._count, key))
        self._drop_stale()

    def _promote(self, now: float) -> None:
        self._drop_stale()
        while self._heap and self._heap[0][0] <= now:
            at, _, key = heapq.heappop(self._heap)
            del self._later[key]
            self._ready[key] = at
            self._drop_stale()

    def _drop_stale(self) -> None:
        """Take off the heap what was moved forward since; its head always is a waiting key."""
        while self._heap and self._later.get(self._heap[0][2]) != self._heap[0][:2]:
            heapq.heappop(self._heap)


class RetryLimiter(Generic[K]):
    """How long to wait before a key that failed is tried again; failures are counted per key."""

    def __init__(self, rng: Random, backoff: Backoff | None = None) -> None:
        self._rng = rng
        self._backoff = backoff or Backoff(first=0.2, cap=60.0)
        self._failures: dict[K, Failures] = {}

    def failed(self, key: K, error: BaseException | None = None) -> float:
        """Count a failure; returns the seconds to wait."""
        if key not in self._failures:
            self._failures[key] = Failures(self._backoff, _AWAY)
        return self._failures[key].delay(error, self._rng)

    def forget(self, key: K) -> None:
        """The key did well."""
        self._failures.pop(key, None)


class QueueRunner(Generic[K]):
    """A work queue on a clock, for any number of workers in one event loop.

    Args:
        name: the value of the label ``controller`` on its metrics.
        limiter: decides the pauses of ``retry``.
    """

    def __init__(
        self,
        queue: WorkQueue[K],
        clock: Clock,
        *,
        name: str = "",
        telemetry: Telemetry | None = None,
        limiter: RetryLimiter[K] | None = None,
    ) -> None:
        self._queue = queue
        self._clock = clock
        self._labels = {"controller": name}
        self._telemetry: Telemetry = telemetry if telemetry is not None else Silent()
        self._limiter = limiter if limiter is not None else RetryLimiter(Random())
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, key: K, delay: float = 0.0) -> None:
        """Have ``key`` worked on, not before ``delay`` seconds from now."""
        self._queue.add(key, self._clock.monotonic(), delay)
        self._after_change()

    def retry(self, key: K, at_least: float = 0.0, error: BaseException | None = None) -> float:
        """Have a key that failed worked on again; returns the seconds until then.

        Args:
            error: what it failed of, if that is known.
            at_least: the pause the server asked for. All keys were told the same: what comes on
                top keeps them from coming back as one, and a server that goes on asking from
                being asked as often.
        """
        delay = at_least + self._limiter.failed(key, error)
        self.add(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """Start counting failures of ``key`` anew."""
        self._limiter.forget(key)

    async def get(self) -> K:
        """The next key, held until ``done``; waits for one. Safe to cancel."""
        while True:
            now = self._clock.monotonic()
            key = self._queue.get(now)
            if key is not None:
                self._telemetry.observe(
                    Metric.WORKQUEUE_SECONDS, self._queue.waited(key), self._labels
                )
                self._tell_depth(now)
                return key
            await self._wait(self._queue.next_at(now))

    def done(self, key: K) -> None:
        """Let go of ``key``; if it was added meanwhile it will be handed out again."""
        self._queue.done(key, self._clock.monotonic())
        self._after_change()

    async def _wait(self, until: float | None) -> None:
        self._changed.clear()
        delay = None if until is None else until - self._clock.monotonic()
        try:
            async with asyncio.timeout(delay):
                await self._changed.wait()
        except TimeoutError:
            return

    def _after_change(self) -> None:
        # every waiting worker wakes and looks for itself: a wake-up meant for one would be lost
        # with that one when it is cancelled
        self._changed.set()
        self._tell_depth(self._clock.monotonic())

    def _tell_depth(self, now: float) -> None:
        self._telemetry.gauge(Metric.WORKQUEUE_DEPTH, self._queue.ready(now), self._labels)
