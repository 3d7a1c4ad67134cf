"""Looking for a planted bug: reference runs as they are, then schedules and perturbations.

What goes wrong gives a bug away only when the product without it passes the very same case, so
each finding is played again in a process of its own (``python -m tests.torture.hunt CASE``).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from itertools import count, zip_longest
from random import Random

from tests.torture.budget import Timer
from tests.torture.line import Plan
from tests.torture.reference import Restart, references
from tests.torture.sieve import UNDISTURBED, UNOBSERVED, Point, points
from tests.torture.work import Tally, perturbations, quiet, schedules

ROUND = 60
"""Schedules between two rounds of perturbations."""
FAILS = 3
"""Exit code of a process that plays one case and finds something wrong."""

Case = Point | int
"""A point, or the seed of a schedule."""


def hunt(seconds: float) -> str:
    """What gave the bug away; empty when nothing did in that time."""
    quiet()
    timer = Timer(seconds)
    for case in _cases():
        wrong = played(case)
        if wrong and _passes_elsewhere(case):
            return wrong
        if timer.over:
            break
    return ""


def _cases() -> Iterator[Case]:
    for index in range(len(references())):
        yield Point(0, UNDISTURBED, index)
    seeds = count()
    for _ in range(ROUND):
        yield next(seeds)
    for point in _in_turn():
        yield point
        yield next(seeds)


def _in_turn() -> Iterator[Point]:
    """One of each group in turn: events withheld where views have gaps and writes refused give most
    bugs away, but neither gives all of them away."""
    chosen = list(points())
    Random(0).shuffle(chosen)
    groups: dict[str, list[Point]] = {}
    for point in chosen:
        groups.setdefault(_group(point), []).append(point)
    for turn in zip_longest(*groups.values()):
        yield from filter(None, turn)


def _group(point: Point) -> str:
    gap = point.kind == UNOBSERVED and "gap" in references()[point.reference].name
    return f"{point.kind} in a gap" if gap else point.kind


def played(case: Case) -> str:
    """The first thing that was wrong with it, or nothing."""
    tally = schedules([case]) if isinstance(case, int) else perturbations([case])
    return next(_findings(tally), "")


def _findings(tally: Tally) -> Iterator[str]:
    for verdict in tally.bad:
        for wrong in (*verdict.violations, *verdict.leaks, *verdict.stuck):
            yield f"{verdict.name}: {wrong}"


def _passes_elsewhere(case: Case) -> bool:
    """Whether a process into which nothing was planted finds nothing wrong with the case."""
    command = (sys.executable, "-m", "tests.torture.hunt", written(case))
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def written(case: Case) -> str:
    """The case as :func:`read` takes it."""
    return json.dumps(case if isinstance(case, int) else asdict(case))


def read(text: str) -> Case:
    """The case that was written."""
    found = json.loads(text)
    if isinstance(found, int):
        return found
    plan, restart = found.pop("plan"), found.pop("restart")
    return Point(**found, plan=plan and Plan(**plan), restart=restart and Restart(**restart))


def main(case: str) -> int:
    quiet()
    wrong = played(read(case))
    print(wrong or "passes")
    return FAILS if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
