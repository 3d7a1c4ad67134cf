"""``make torture``: perturbations, schedules and the model, in a fixed time.

Exit code 1 with the seed and the history of the first run that broke a promise.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from random import Random

from labs.torture.batches import Tally, perturbations, quiet, schedules, spread
from labs.torture.budget import BadOption, Budget, Timer
from labs.torture.perturbations import KINDS, Point, points

MODEL = (sys.executable, "-m", "labs", "model")
STATES = re.compile(r"states \d+, ")
SHARE_OF_POINTS = 0.6
"""The share of the budget for perturbations; the rest is for schedules."""


def main() -> int:
    try:
        budget = Budget.given()
    except BadOption as error:
        print(error, file=sys.stderr)
        return 2
    quiet()
    timer = Timer(budget.seconds)
    model = subprocess.Popen(MODEL, stdout=subprocess.PIPE, text=True)
    found = points()
    mine = [point for point in found if point.number % budget.shards == budget.shard - 1]
    Random(budget.seed).shuffle(mine)
    tally, seconds = _run(budget, timer, mine)
    searched = model.communicate()[0]
    _report(budget, found, tally, seconds)
    print("model             ", next(filter(STATES.match, searched.splitlines()), "no answer"))
    if model.returncode:
        print(searched)
    for verdict in tally.bad[:1]:
        print("\n".join(["", verdict.name, *_wrong(verdict), *verdict.log]))
    return 1 if tally.bad or model.returncode else 0


def _run(budget: Budget, timer: Timer, mine: list[Point]) -> tuple[Tally, float]:
    """Try perturbations first, then schedules in the remaining time."""
    tally, patience = Tally(), Timer(budget.seconds * SHARE_OF_POINTS - timer.spent)
    context = get_context("spawn")
    with ProcessPoolExecutor(budget.workers, context, initializer=quiet) as pool:
        for each in spread(pool, perturbations, mine, patience, budget.workers):
            tally.add(_with_findings_printed(each))
        began = timer.spent
        for each in spread(pool, schedules, budget.seeds(), timer, budget.workers):
            tally.add(_with_findings_printed(each))
    return tally, timer.spent - began


def _with_findings_printed(tally: Tally) -> Tally:
    """Print the findings and return the tally. A long run may be interrupted, so print at once."""
    for verdict in tally.bad:
        print(f"{verdict.name}: {'; '.join(_wrong(verdict))[:300]}", file=sys.stderr, flush=True)
    return tally


def _report(budget: Budget, found: tuple[Point, ...], tally: Tally, seconds: float) -> None:
    rate = tally.schedules / seconds if seconds else 0.0
    print(f"schedules run      {tally.schedules} from SEED={budget.seed} ({rate:.1f} a second)")
    possible = Counter(point.kind for point in found)
    for kind in KINDS:
        print(f"{kind:18} {tally.points[kind]} of {possible[kind]} tried")
    print(f"faults injected    {tally.faults.total()}")
    for name, number in sorted(tally.faults.items()):
        print(f"  {number:6} {name}")
    print(f"slow schedulers    {tally.slow} schedules, {tally.windows} starts in the known window")
    for what, number in (
        ("violations", sum(len(verdict.violations) for verdict in tally.bad)),
        ("leaks", sum(len(verdict.leaks) for verdict in tally.bad)),
        ("stuck", sum(len(verdict.stuck) for verdict in tally.bad)),
    ):
        print(f"{what:18} {number}")


def _wrong(verdict: object) -> list[str]:
    return [
        f"{name}: {text}"
        for name in ("violations", "leaks", "stuck")
        for text in getattr(verdict, name)
    ]


if __name__ == "__main__":
    sys.exit(main())
