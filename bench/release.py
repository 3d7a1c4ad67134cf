"""How long a claim stays allocated after its workload has ended, on a real control plane.

Jobs of one pod end together. Beside kube-controller-manager (KCM) alone, the time counts from the
end of the pod. With claimctl it counts from the moment when the Job says that it has ended.
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from statistics import median

from bench.jobs import JobsBench, common_flags, p99, play, told
from bench.table import BenchPart, Goal, Line, at_most, register

SETTLE = 5.0
"""The default of --settle-seconds."""
_GOALS = {1: 2.0, 40: 4.0}
_SETTLED_GOALS = {1: SETTLE + 1.0, 40: SETTLE + 2.0}


async def _measure(
    bench: JobsBench, space: str, count: int, *, held: bool, grouped: bool = False
) -> list[float]:
    """The seconds from the end of each workload until its claim is free."""
    keys = await bench.begin(space, count, held=held, grouped=grouped)
    await bench.end(keys)
    await bench.freed(keys)
    ended = bench.seen.job_ended if held else bench.seen.pod_ended
    return [bench.seen.free[key] - ended[key] for key in keys]


async def _releases(bench: JobsBench, options: argparse.Namespace) -> AsyncIterator[Line]:
    for count in options.counts:
        tries = options.tries if count == 1 else 1
        alone: list[float] = []
        held: dict[bool, list[float]] = {}
        for number in range(tries):
            name = f"{count}-{number}"
            alone += await _measure(bench, f"alone-{name}", count, held=False)
            told(f"alone, {count} at once", alone[-count:])
            for grouped in (False, True) if options.gates else (False,):
                space = f"{'grouped' if grouped else 'held'}-{name}"
                found = await _measure(bench, space, count, held=True, grouped=grouped)
                held.setdefault(grouped, []).extend(found)
                told(f"{'in a PodGroup' if grouped else 'held'}, {count} at once", found)
        for grouped, seconds in held.items():
            for line in _lines(bench, options, count, seconds, alone, grouped=grouped):
                yield line


def _lines(
    bench: JobsBench,
    options: argparse.Namespace,
    count: int,
    held: list[float],
    alone: list[float],
    *,
    grouped: bool,
) -> list[Line]:
    where = "with a PodGroup" if grouped else "podgroup" if options.gates else "hold"
    name, runs = f"release {bench.version} {where}: {count} at once", len(held)
    if options.gates:
        return [
            Line(f"{name}, {what}", figure, unit="s", goal=goal, runs=runs)
            for what, figure, goal in (
                ("median", median(held), _settled(count)),
                ("p99", p99(held), None),
            )
        ]
    beside = "kube-controller-manager alone"
    goal = at_most(_GOALS[count]) if count in _GOALS else None
    return [
        Line(f"{name}, median", median(held), beside, median(alone), "s", at_most(4), runs),
        Line(f"{name}, p99", p99(held), beside, p99(alone), "s", goal, runs),
    ]


def _settled(count: int) -> Goal | None:
    return at_most(_SETTLED_GOALS[count]) if count in _SETTLED_GOALS else None


def _flags(parser: argparse.ArgumentParser) -> None:
    counts = [1, 40, 200]
    parser.add_argument("--counts", type=int, nargs="+", default=counts, help="claims at once")
    parser.add_argument("--tries", type=int, default=5, help="how often one claim is released")
    common_flags(parser)


def _part(options: argparse.Namespace) -> list[Line]:
    return play(options, _releases, claims=max(options.counts))


register(
    BenchPart("release", "from the end of workloads until claims are free", _part, _flags, True)
)
