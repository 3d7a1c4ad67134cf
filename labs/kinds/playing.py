"""Plays the schedule of a seed, and collects what was found."""

from __future__ import annotations

from random import Random

from labs.findings import RunFindings
from labs.kinds.judge import findings
from labs.kinds.schedule import KindsSchedule
from labs.kinds.site import KindsSite
from labs.runs import to_its_end
from labs.torture.stored import log_lines

LIMIT = 100_000.0
"""Virtual seconds after which a schedule is given up."""


def play(seed: int) -> RunFindings:
    """Play the schedule of a seed."""
    found = RunFindings(f"seed {seed}")
    to_its_end(_play(seed, found), found, LIMIT)
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
        found.log += log_lines(revisions, schedule.log)
