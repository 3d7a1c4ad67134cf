"""Moves pods on many random clusters, and prints one table of what they showed.

Exit code 1 if a cluster showed something that must not be.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from kube_in_process.real.flags import Parser, number

from claimctl_reschedule_labs.clusters import two_runs
from claimctl_reschedule_labs.clusters.batch import play_seed
from claimctl_reschedule_labs.clusters.making import EMPTYING, GPUS, STRATEGIES
from claimctl_reschedule_labs.clusters.playing import Played
from labs import frame

_HEADER = (
    "strategies", "clusters", "moves", "rounds", "differing", "pending", "bounced",
    "second run", "other", "rescued", "without a place", "emptied", "restless",
)  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    parser = Parser("labs reschedule-clusters", __doc__)
    parser.add_argument("--seed", type=number(), default=0, help="the first seed (%(default)s)")
    parser.add_argument("--count", type=number(1), default=100, help="clusters (%(default)s)")
    parser.add_argument("--strategy", choices=[*STRATEGIES, EMPTYING, GPUS], help="this one alone")
    parser.add_argument("--workers", type=number(1), help="processes (one for each core)")
    help_ = "two runs on clusters of 10 nodes, by one policy: moves, seconds and requests"
    parser.add_argument("--two-runs", action="store_true", help=help_)
    options = parser.parse_args(arguments)
    seeds = range(options.seed, options.seed + options.count)
    if options.two_runs:
        with frame.processes(options.workers) as pool:
            print(two_runs.table(pool.map(two_runs.play_two_runs, seeds)))
        return 0
    results: list[Played] = []
    with frame.processes(options.workers) as pool:
        play = partial(play_seed, strategy=options.strategy or "")
        for result in pool.map(play, seeds):
            results.append(result)
            for text in result.findings:
                print(f"SEED={result.seed} ({result.strategy}) {text}", file=sys.stderr, flush=True)
    print(table(results))
    return 1 if any(result.findings for result in results) else 0


def table(results: Sequence[Played]) -> str:
    """One row for each set of strategies, and their sum."""
    rows = [
        _sums(name, [result for result in results if result.strategy == name])
        for name in (*STRATEGIES, EMPTYING, GPUS)
    ]
    return frame.table(_HEADER, [*rows, _sums("sum", results)])


def _sums(name: str, results: Sequence[Played]) -> tuple[object, ...]:
    return (
        name,
        sum(not result.restless for result in results),
        sum(result.moves for result in results),
        sum(result.rounds for result in results),
        *(
            sum(len(getattr(result, kind)) for result in results)
            for kind in ("differing", "pending", "bounced", "again", "other")
        ),
        sum(result.rescued for result in results),
        sum(result.homeless for result in results),
        sum(result.emptied for result in results),
        sum(result.restless for result in results),
    )
