"""Plays the schedule of a seed, and collects what was found."""

from __future__ import annotations

import gc
from random import Random

from kube_in_process.virtual import Deadlock, LostError, OutOfTime, run

from labs.findings import RunFindings
from labs.kinds.judge import findings
from labs.kinds.schedule import KindsSchedule
from labs.kinds.site import KindsSite
from labs.torture.testbed import line_of

LIMIT = 100_000.0
"""Virtual seconds after which a schedule is given up."""


def play_all(seeds: list[int]) -> list[RunFindings]:
    """Play schedules; those with a finding. Then collect the garbage, which nothing else does."""
    bad = [played for played in map(play, seeds) if not played.good]
    gc.collect()
    return bad


def play(seed: int) -> RunFindings:
    """Play the schedule of a seed."""
    found = RunFindings(f"seed {seed}")
    try:
        run(_play(seed, found), limit=LIMIT)
    except (Deadlock, LostError, OutOfTime) as error:
        found.stuck.append(f"{type(error).__name__}: {error}")
    return found


async def _play(seed: int, found: RunFindings) -> None:
    site, rng = KindsSite.opened(), Random(seed)
    schedule = KindsSchedule(site, rng)
    first = site.handler.api.store.revision
    try:
        await schedule.play(rng.choice([8, 16, 24]))
        await schedule.conclude()
        found.violations += findings(site, schedule.samples)
    finally:
        await site.stop()
    if not found.good:
        revisions = site.handler.api.store.history(first)
        shown = [line_of(each) for each in revisions if each.plural not in ("events", "leases")]
        found.log += sorted([*schedule.log, *shown], key=_time)


def _time(line: str) -> float:
    return float(line.split("t=", 1)[1].split()[0])
