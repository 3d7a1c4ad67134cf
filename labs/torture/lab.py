"""Plays perturbations, schedules and the model in a fixed time.

Exit code 1 with the seed and the history of the first run that broke a promise.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from random import Random

from labs import frame
from labs.findings import counts
from labs.torture.batches import Tally, perturbations, prepare, schedules, spread
from labs.torture.budget import Budget, Timer
from labs.torture.perturbations import KINDS, Point, points

MODEL = (sys.executable, "-m", "labs", "model")
STATES = re.compile(r"states \d+, ")
SHARE_OF_POINTS = 0.6
"""The share of the budget for perturbations; the rest is for schedules."""


def main(arguments: Sequence[str]) -> int:
    budget = Budget.given(arguments, __doc__)
    prepare()
    timer = Timer(budget.seconds)
    model = subprocess.Popen(MODEL, stdout=subprocess.PIPE, text=True)
    every = points()
    mine = [point for point in every if point.number % budget.shards == budget.shard - 1]
    Random(budget.seed).shuffle(mine)
    tally, seconds = _run(budget, timer, mine)
    searched = model.communicate()[0]
    _report(budget, every, tally, seconds)
    print("model               ", next(filter(STATES.match, searched.splitlines()), "no answer"))
    if model.returncode:
        print(searched)
    for verdict in tally.bad[:1]:
        print(verdict.shown())
    return 1 if tally.bad or model.returncode else 0


def _run(budget: Budget, timer: Timer, mine: list[Point]) -> tuple[Tally, float]:
    """Try perturbations first, then schedules in the remaining time."""
    tally, patience = Tally(), Timer(budget.seconds * SHARE_OF_POINTS - timer.spent)
    explore = partial(schedules, reschedule=budget.reschedule)
    with frame.processes(budget.workers, prepare) as pool:
        for batch in spread(pool, perturbations, mine, patience, budget.workers):
            tally.add(_print_findings(batch))
        began = timer.spent
        for batch in spread(pool, explore, budget.seeds(), timer, budget.workers):
            tally.add(_print_findings(batch))
    return tally, timer.spent - began


def _print_findings(tally: Tally) -> Tally:
    """Print the findings and return the tally. A long run may be interrupted, so print at once."""
    for verdict in tally.bad:
        print(f"{verdict.name}: {'; '.join(verdict.texts())[:300]}", file=sys.stderr, flush=True)
    return tally


def _report(budget: Budget, every: tuple[Point, ...], tally: Tally, seconds: float) -> None:
    rate = tally.schedules / seconds if seconds else 0.0
    possible = Counter(point.kind for point in every)
    lines: list[tuple[str, object]] = [
        ("schedules run", f"{tally.schedules} from SEED={budget.seed} ({rate:.1f} a second)"),
        *((kind, f"{tally.points[kind]} of {possible[kind]} tried") for kind in KINDS),
        ("faults injected", tally.faults.total()),
        *((f"  {number:6}", name) for name, number in sorted(tally.faults.items())),
        ("slow schedulers", f"{tally.slow} schedules, {tally.windows} starts in the known window"),
        *counts(tally.bad),
    ]
    print(frame.figures(lines))
