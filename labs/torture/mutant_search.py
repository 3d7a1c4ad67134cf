"""Searches for a planted bug: plays the reference runs, then schedules and perturbations.

A failure counts only if claimctl without the bug passes the same case. So each finding is played
again in a new process without the bug (``python -m labs.torture.mutant_search CASE``).
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from itertools import count, zip_longest
from random import Random

from labs.runs import prepare
from labs.torture.explorer import explore
from labs.torture.faulty_transport import FaultPlan
from labs.torture.perturbations import UNDISTURBED, UNOBSERVED, Point, perturb, points
from labs.torture.reference import Restart, references

ROUND = 60
"""Number of schedules between two rounds of perturbations."""
FAILS = 3
"""Exit code of a process that plays one case and finds a failure."""

Case = Point | int
"""A perturbation point, or the seed of a schedule."""


def hunt(seconds: float) -> str:
    """The failure that revealed the bug; "" if there was none within ``seconds`` of CPU time."""
    prepare()
    end = time.process_time() + seconds
    for case in _cases():
        wrong = played(case)
        if wrong and _passes_elsewhere(case):
            return wrong
        if time.process_time() >= end:
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
    """The points, one of each group in turn. Withheld events and refused writes reveal most
    bugs, but neither reveals all."""
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
    """Play a case; returns its first failure, or ""."""
    verdict = explore(case) if isinstance(case, int) else perturb(case)
    gc.collect()
    return "" if verdict.good else f"{verdict.name}: {verdict.texts()[0]}"


def _passes_elsewhere(case: Case) -> bool:
    """Whether a process without the bug passes the case."""
    command = (sys.executable, "-m", "labs.torture.mutant_search", written(case))
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def written(case: Case) -> str:
    """The case as text for :func:`read`."""
    return json.dumps(case if isinstance(case, int) else asdict(case))


def read(text: str) -> Case:
    """The case of a text from :func:`written`."""
    case = json.loads(text)
    if isinstance(case, int):
        return case
    plan, restart = case.pop("plan"), case.pop("restart")
    return Point(**case, plan=plan and FaultPlan(**plan), restart=restart and Restart(**restart))


def main(case: str) -> int:
    prepare()
    wrong = played(read(case))
    print(wrong or "passes")
    return FAILS if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
