"""What workloads that only a rule describes cost the controller, beside built-in ones.

The same pods: those of JobSets, each with four Jobs and one claim, and those of plain Jobs, each
with a claim of its own.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass

from bench.many_claims import Size, serving
from bench.scale import ROOT, Use, controller, until_held
from bench.table import BenchPart, Line, at_most, medians, register, tell

JOBS = 4
"""Jobs of a JobSet, with one pod each."""


@dataclass(frozen=True, slots=True)
class _Round:
    use: Use
    requests: int
    """Requests while nothing happened, but for those to Leases."""


def _measure(size: Size, options: argparse.Namespace) -> _Round:
    with serving(size) as server, controller(server, ROOT) as process:
        until_held(server, process, size)
        use = process.used()
        time.sleep(options.rest)
        before = server.counts().requests
        time.sleep(options.seconds)
        more = server.counts().requests - before
    text = f"{use.cpu:6.1f} CPU s, {use.memory:6.0f} MB, {more} requests at rest"
    tell(f"{size.claims} claims of {size.made_by}s: {text}")
    return _Round(use, more)


def _kinds(options: argparse.Namespace) -> Iterator[Line]:
    sets = Size(options.jobsets, JOBS, made_by="JobSet")
    jobs = Size(options.jobsets * JOBS, 1, made_by="Job")
    ours, theirs = [], []
    for _ in range(options.rounds):
        ours.append(_measure(sets, options))
        theirs.append(_measure(jobs, options))
    what, beside = f"kinds: {sets.claims:,} JobSets of {JOBS} Jobs", f"{jobs.claims:,} Jobs"
    for name, unit in (("cpu", "s"), ("memory", "MB")):
        mine = [getattr(each.use, name) for each in ours]
        other = [getattr(each.use, name) for each in theirs]
        yield medians(f"{what}: {name}", mine, beside, other, unit=unit, goal=at_most(1.3))
    most = max(each.requests for each in ours)
    yield Line(f"{what}: requests at rest", most, goal=at_most(0), runs=len(ours))


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobsets", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3, help="of each, by turns")
    parser.add_argument("--rest", type=float, default=15.0, help="seconds before the rest")
    parser.add_argument("--seconds", type=float, default=30.0, help="of rest")


register(BenchPart("kinds", "workloads of a kind with a rule", _kinds, _flags))
