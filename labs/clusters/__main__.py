"""``make reschedule-clusters``: many random clusters, and one table of what they showed.

Exit code 1 if a cluster showed something that must not be.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from labs.clusters.batch import one, quiet
from labs.clusters.making import STRATEGIES
from labs.clusters.playing import Played

_HEADER = (
    "strategies", "clusters", "moves", "rounds", "differing", "pending", "bounced",
    "second run", "other", "rescued", "without a place", "restless",
)  # fmt: skip


def table(results: Sequence[Played]) -> str:
    """One row for each set of strategies, and their sum, as a table in Markdown."""
    lines = [_row(_HEADER), _row("---" for _ in _HEADER)]
    for name in STRATEGIES:
        lines.append(_sums(name, [each for each in results if each.strategy == name]))
    return "\n".join([*lines, _sums("sum", results)])


def _sums(name: str, results: Sequence[Played]) -> str:
    numbers = (
        sum(not each.restless for each in results),
        sum(each.moves for each in results),
        sum(each.rounds for each in results),
        *(
            sum(len(getattr(each, kind)) for each in results)
            for kind in ("differing", "pending", "bounced", "again", "other")
        ),
        sum(each.rescued for each in results),
        sum(each.homeless for each in results),
        sum(each.restless for each in results),
    )
    return _row((name, *map(str, numbers)))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m labs clusters", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=100, help="the number of clusters")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.count)
    results: list[Played] = []
    pool = ProcessPoolExecutor(options.workers, get_context("spawn"), initializer=quiet)
    with pool:
        for each in pool.map(one, seeds):
            results.append(each)
            for text in each.findings:
                print(f"SEED={each.seed} ({each.strategy}) {text}", file=sys.stderr, flush=True)
    print(table(results))
    return 1 if any(each.findings for each in results) else 0


if __name__ == "__main__":
    sys.exit(main())
