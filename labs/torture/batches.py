"""Runs in worker processes: small batches, with results as plain numbers."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from kube_in_process.virtual import Deadlock, LostError, OutOfTime

from labs import frame
from labs.torture.budget import Timer
from labs.torture.explorer import explore
from labs.torture.perturbations import Point, perturb
from labs.torture.testbed import RunVerdict

BATCH = 8


@dataclass
class Tally:
    """The results of several runs."""

    schedules: int = 0
    points: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    windows: int = 0
    slow: int = 0
    bad: list[RunVerdict] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.schedules += other.schedules
        self.points += other.points
        self.faults += other.faults
        self.windows += other.windows
        self.slow += other.slow
        self.bad += other.bad

    def judge(self, verdict: RunVerdict) -> None:
        if not verdict.good:
            self.bad.append(verdict)


def prepare() -> None:
    """Switch logs off, and collect garbage only between batches."""
    frame.quiet()
    gc.disable()


def schedules(seeds: list[int], *, reschedule: bool = False) -> Tally:
    """Explore some seeds."""
    tally = Tally()
    for seed in seeds:
        tally.schedules += 1
        try:
            explored = explore(seed, reschedule=reschedule)
        except (Deadlock, OutOfTime, LostError) as error:
            tally.judge(_ended_badly(f"SEED={seed}", error))
            continue
        tally.faults += explored.faults
        tally.windows += explored.verdict.windows
        tally.slow += explored.slow
        tally.judge(explored.verdict)
    gc.collect()
    return tally


def perturbations(points: list[Point]) -> Tally:
    """Try some points."""
    tally = Tally()
    for point in points:
        tally.points[point.kind] += 1
        try:
            tally.judge(perturb(point))
        except (Deadlock, OutOfTime, LostError) as error:
            tally.judge(_ended_badly(point.name, error))
    gc.collect()
    return tally


def _ended_badly(name: str, error: Exception) -> RunVerdict:
    return RunVerdict(name, violations=[f"{type(error).__name__}: {error}"])


def _batched(items: Iterable[Any]) -> Iterator[list[Any]]:
    left = iter(items)
    while batch := list(islice(left, BATCH)):
        yield batch


def spread(
    pool: ProcessPoolExecutor,
    work: Callable[[list[Any]], Tally],
    items: Iterable[Any],
    timer: Timer,
    workers: int,
) -> Iterator[Tally]:
    """Distribute batches until none is left or the time is over. Started batches are finished."""
    batches = _batched(items)
    under_way: set[Future[Tally]] = set()
    while True:
        while len(under_way) < workers and not timer.over and (batch := next(batches, None)):
            under_way.add(pool.submit(work, batch))
        if not under_way:
            return
        done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
        for future in done:
            yield future.result()
