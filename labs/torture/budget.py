"""The flags of the lab ``torture``: its time budget and its shard."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kube_in_process.real.flags import Parser, number


@dataclass(frozen=True, slots=True)
class Budget:
    """``seconds`` of real time; shard ``shard`` of ``shards`` (from 1); seeds from ``seed`` on."""

    seconds: float = 180.0
    seed: int = 0
    shard: int = 1
    shards: int = 1
    workers: int = 1
    reschedule: bool = False
    """Whether ``claimctl reschedule`` runs beside the schedules."""

    @classmethod
    def given(cls, arguments: Sequence[str], about: str | None) -> Budget:
        """Read the flags."""
        parser = Parser("labs torture", about)
        seconds = number(1, kind=float)
        parser.add_argument("--budget", type=seconds, default=180.0, help="seconds (%(default)g)")
        parser.add_argument("--seed", type=number(), default=0, help="the first seed (%(default)s)")
        parser.add_argument("--shard", default="1/1", metavar="I/N", help="play one part of N")
        parser.add_argument("--workers", type=number(1), default=os.cpu_count() or 1)
        parser.add_switch("--reschedule", "1 to run `claimctl reschedule` beside schedules")
        given = parser.parse_args(arguments)
        shard, _, shards = given.shard.partition("/")
        if not (shard.isdigit() and shards.isdigit() and 1 <= int(shard) <= int(shards)):
            parser.error(f"--shard: {given.shard!r} is not I/N with 1 <= I <= N")
        return cls(
            seconds=given.budget,
            seed=given.seed,
            shard=int(shard),
            shards=int(shards),
            workers=given.workers,
            reschedule=given.reschedule,
        )

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
