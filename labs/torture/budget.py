"""The options of ``make torture``: its time budget and its shard."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass


class BadOption(Exception):
    """A variable has an invalid value. The text is one line."""


@dataclass(frozen=True, slots=True)
class Budget:
    """``seconds`` of real time; shard ``shard`` of ``shards`` (from 1); seeds from ``seed`` on."""

    seconds: float = 180.0
    seed: int = 0
    shard: int = 1
    shards: int = 1
    workers: int = 1

    @classmethod
    def given(cls) -> Budget:
        """Read BUDGET, SEED, SHARD (i/n) and WORKERS.

        Raises:
            BadOption: one of them is invalid.
        """
        shard, _, shards = os.environ.get("SHARD", "1/1").partition("/")
        try:
            found = cls(
                seconds=float(os.environ.get("BUDGET") or 180),
                seed=int(os.environ.get("SEED") or 0),
                shard=int(shard),
                shards=int(shards),
                workers=int(os.environ.get("WORKERS") or os.cpu_count() or 1),
            )
        except ValueError as error:
            text = f"BUDGET and SEED are numbers, SHARD is i/n: {error}"
            raise BadOption(text) from error
        if not 1 <= found.shard <= found.shards or found.workers < 1:
            raise BadOption("SHARD is i/n with 1 <= i <= n, WORKERS at least 1")
        return found

    def seeds(self) -> Iterator[int]:
        """The seeds of this shard, without end."""
        seed = self.seed + self.shard - 1
        while True:
            yield seed
            seed += self.shards


class Timer:
    """A limited amount of real time, or of what another clock shows."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._seconds = seconds

    @property
    def spent(self) -> float:
        return self._clock() - self._began

    @property
    def over(self) -> bool:
        return self.spent >= self._seconds
