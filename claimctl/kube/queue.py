"""The work queue: the keys to reconcile, each with the earliest time for it."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Hashable
from random import Random
from typing import Generic, TypeVar

from claimctl.kube.errors import ErrorKind, kind_of
from claimctl.kube.retry import Backoff, Failures
from claimctl.kube.turns import Tenant, Turns
from claimctl.parallel import wait_for
from claimctl.telemetry.face import Metric, Telemetry
from claimctl.wire.seams import Clock

K = TypeVar("K", bound=Hashable)

_BACKOFF = Backoff(first=0.2, cap=60.0)
_AWAY = Backoff(first=0.2, cap=10.0)
"""Pauses while the server does not answer; short, so that work goes on soon after it is back."""
_REFUSED = Backoff(first=0.5, cap=10.0)
"""Pauses while the server refuses a request. Nothing tells when it does so no more."""
FINAL_SECONDS = 600.0
"""The pause after an error that only an event can mend. It ends all the same: no event tells that
the schema of a CustomResourceDefinition has changed."""


class WorkQueue(Generic[K]):
    """A queue of keys; a pure data structure without a clock: the caller passes ``now`` (seconds).

    Invariants, if ``now`` never decreases:

    1. A key waits at most once, however often it is added.
    2. If a key is added with several times, the earliest counts: adding never delays a key.
    3. ``get`` returns no key before its time or within its pause, and no key that a worker holds.
    4. If a key is added while a worker holds it, ``get`` returns it again after ``done``, and not
       before the given time. So no change during the work is missed.
    5. ``get`` returns the keys of one tenant in the order of their times, and keys with the same
       time in the order in which they were added. A key that was added while held joins the queue
       at ``done``. Tenants take turns (see ``Turns``).
    6. ``get`` returns None only if no key's time has come.

    Args:
        tenant_of: whose a key is. By default, all keys have one tenant.
    """

    def __init__(self, tenant_of: Callable[[K], Tenant] = lambda key: None) -> None:
        self._ready = Turns(tenant_of)
        """The waiting keys whose time has come."""
        self._later: dict[K, tuple[float, int]] = {}
        """The other waiting keys: the time of each, and the number of the ``add`` that set it."""
        self._heap: list[tuple[float, int, K]] = []
        """The same, the earliest first; also what an earlier time of the key has made stale."""
        self._count = 0
        self._held: dict[K, float] = {}
        """By key that a worker holds: for how many seconds it was ready before."""
        self._again: dict[K, float] = {}
        """By key that was added while held: the time for which it was added."""
        self._pauses: dict[K, float] = {}
        """By key that ``pause`` added: the time before which ``get`` does not return it."""

    def __len__(self) -> int:
        """The number of waiting keys, ready or not. Held keys do not count."""
        return len(self._ready) + len(self._later)

    def add(self, key: K, now: float, delay: float = 0.0) -> None:
        """Add ``key``, to be returned by ``get`` no earlier than ``delay`` seconds from now."""
        self._promote(now)
        at = now + max(delay, 0.0)
        if key in self._held:
            self._again[key] = min(at, self._again.get(key, at))
        else:
            self._put(key, at, now)

    def pause(self, key: K, now: float, at_least: float, again_in: float = 0.0) -> None:
        """Add a held key again, for a pause that no other ``add`` ends.

        Args:
            at_least: the pause: for so many seconds ``get`` does not return the key.
            again_in: the seconds after which it comes back even if nothing adds it again.
        """
        self._pauses[key] = now + at_least
        self.add(key, now, max(again_in, at_least))

    def get(self, now: float) -> K | None:
        """Return the next key whose time has come, and hold it; or None."""
        self._promote(now)
        if not self._ready:
            return None
        key, at = self._ready.take()
        self._held[key] = now - at
        self._pauses.pop(key, None)
        return key

    def done(self, key: K, now: float) -> None:
        """Release a key that ``get`` returned; KeyError if it is not held."""
        del self._held[key]
        self._promote(now)
        self._ready.end(key)
        at = self._again.pop(key, None)
        if at is not None:
            self._put(key, max(at, now), now)

    def next_at(self, now: float) -> float | None:
        """The time of the next key: ``now`` if a key is ready, None if no key waits."""
        self._promote(now)
        if self._ready:
            return now
        return self._heap[0][0] if self._heap else None

    @property
    def ready(self) -> int:
        """The number of keys whose time had come by the latest time that was passed."""
        return len(self._ready)

    def waiting_time(self, key: K) -> float:
        """Seconds between the time of a held key and the ``get`` that returned it."""
        return self._held[key]

    def _put(self, key: K, at: float, now: float) -> None:
        if key in self._ready:
            return
        at = max(at, self._pauses.get(key, at))
        if at <= now:
            self._later.pop(key, None)
            self._ready.add(key, at)
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
            self._ready.add(key, at)
            self._drop_stale()

    def _drop_stale(self) -> None:
        """Drop heap entries of keys that have an earlier time now, so that the head is valid."""
        while self._heap and self._later.get(self._heap[0][2]) != self._heap[0][:2]:
            heapq.heappop(self._heap)


class QueueRunner(Generic[K]):
    """A work queue with a clock, for any number of workers in one event loop.

    Args:
        name: the value of the label ``controller`` on its metrics.
        tenant_of: whose a key is: tenants take turns.
        backoff: the pauses of a failed key. Failures are counted per key.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        name: str = "",
        telemetry: Telemetry | None = None,
        rng: Random | None = None,
        tenant_of: Callable[[K], Tenant] = lambda key: None,
        backoff: Backoff = _BACKOFF,
    ) -> None:
        self._queue = WorkQueue(tenant_of)
        self._clock = clock
        self._labels = {"controller": name}
        self._telemetry = telemetry or Telemetry()
        self._rng = rng or Random()
        self._backoff = backoff
        self._failures: dict[K, Failures] = {}
        self._changed = asyncio.Event()
        self._turn = asyncio.Lock()
        self._depth = -1

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, key: K, delay: float = 0.0) -> None:
        """Add ``key``, to be worked on no earlier than ``delay`` seconds from now."""
        self._queue.add(key, self._clock.monotonic(), delay)
        self._after_change()

    def retry(self, key: K, at_least: float = 0.0, error: BaseException | None = None) -> float:
        """Add a failed key, which is held, again; return the seconds until it is tried, or
        ``FINAL_SECONDS`` after a final error.

        An event may bring the key back before. But none shortens the pause after a refused request,
        and the backoff after a final error.

        Args:
            error: the error of the failure, if known.
            at_least: the minimum pause that the server asked for, in seconds. The backoff with its
                jitter is added to it, because the server asked all keys for the same pause and
                they would all come back at once.
        """
        failures = self._failures.setdefault(key, Failures(self._backoff, _AWAY, _REFUSED))
        delay, kind = at_least + failures.delay(error, self._rng), kind_of(error)
        if kind not in (ErrorKind.REFUSED, ErrorKind.FINAL):
            self.add(key, delay)
            return delay
        again = FINAL_SECONDS if kind is ErrorKind.FINAL else delay
        self._queue.pause(key, self._clock.monotonic(), delay, again)
        self._after_change()
        return again

    def forget(self, key: K) -> None:
        """Reset the count of failures of ``key``."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """Wait for the next key and hold it until ``done``. Safe to cancel."""
        # Only one worker waits for a change, the others for their turn: a change wakes one worker.
        async with self._turn:
            while True:
                now = self._clock.monotonic()
                key = self._queue.get(now)
                if key is not None:
                    waited = self._queue.waiting_time(key)
                    self._telemetry.observe(Metric.WORKQUEUE_SECONDS, waited, self._labels)
                    self._report_depth()
                    return key
                await self._wait(self._queue.next_at(now))

    def done(self, key: K) -> None:
        """Release ``key``. If it was added meanwhile, ``get`` returns it again."""
        self._queue.done(key, self._clock.monotonic())
        self._after_change()

    async def _wait(self, until: float | None) -> None:
        self._changed.clear()
        await wait_for(self._changed, None if until is None else until - self._clock.monotonic())

    def _after_change(self) -> None:
        self._changed.set()
        self._report_depth()

    def _report_depth(self) -> None:
        depth = self._queue.ready
        if depth != self._depth:
            self._depth = depth
            self._telemetry.gauge(Metric.WORKQUEUE_DEPTH, depth, self._labels)
