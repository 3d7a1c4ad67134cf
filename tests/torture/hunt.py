"""Looking for a planted bug: reference runs as they are, then schedules and perturbations."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from random import Random

from tests.torture.budget import Timer
from tests.torture.reference import play, references
from tests.torture.sieve import UNOBSERVED, points
from tests.torture.work import Tally, perturbations, quiet, schedules

ROUND = 60
"""Schedules between two rounds of perturbations."""


def hunt(seconds: float) -> str:
    """What gave the bug away; empty when nothing did in that time."""
    quiet()
    timer = Timer(seconds)
    for tally in _tries():
        for verdict in tally.bad:
            wrong = [*verdict.violations, *verdict.leaks, *verdict.stuck]
            return f"{verdict.name}: {wrong[0]}"
        if timer.over:
            break
    return ""


def _tries() -> Iterator[Tally]:
    for reference in references():
        tally = Tally()
        tally.judge(play(reference))
        yield tally
    seeds = count()
    for _ in range(ROUND):
        yield schedules([next(seeds)])
    chosen = list(points())
    Random(0).shuffle(chosen)
    chosen.sort(key=lambda point: point.kind != UNOBSERVED)
    for point in chosen:
        yield perturbations([point])
        yield schedules([next(seeds)])
