"""The results of a run: figures and findings."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from labs import frame
from labs.findings import counts
from labs.torture_real.judge import RealVerdict
from labs.torture_real.schedule import RealSchedule


@dataclass
class RealTally:
    """The results so far."""

    tell: bool = False
    """Whether to print every history."""
    waves: int = 0
    schedules: int = 0
    actions: int = 0
    revisions: int = 0
    writes: int = 0
    holds: int = 0
    releases: int = 0
    pairs: int = 0
    """Number of waves with two controllers."""
    elections: int = 0
    """Number of waves with leader election."""
    faults: Counter[str] = field(default_factory=Counter)
    ended: int = 0
    interrupted: bool = False
    bad: list[RealVerdict] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    def add(self, schedule: RealSchedule) -> None:
        verdict = schedule.verdict
        self.schedules += 1
        self.actions += schedule.actions
        self.revisions += verdict.revisions
        self.writes += verdict.writes
        self.holds += verdict.holds
        self.releases += verdict.releases
        self.others += [f"{verdict.name}: {text}" for text in verdict.others]
        if not verdict.good:
            self.bad.append(verdict)
        if self.tell:
            print("\n".join([verdict.name, *verdict.log]), flush=True)

    def count(self, faults: Counter[str], *, pair: bool, elect: bool) -> None:
        """Add one wave."""
        self.waves += 1
        self.pairs += pair
        self.elections += elect
        self.faults += faults


def report(label: str, seed: int, tally: RealTally) -> list[tuple[str, object]]:
    """The figures of a run."""
    played = f"{tally.schedules} in {tally.waves} waves, {tally.actions} user actions"
    return [
        ("torture-real", f"{label}, SEED={seed}"),
        ("schedules", played),
        ("two controllers", f"{tally.pairs} waves; with a Lease: {tally.elections}"),
        ("versions judged", f"{tally.revisions}, {tally.writes} of them by claimctl"),
        ("by claimctl", f"{tally.holds} holds, {tally.releases} releases"),
        ("faults", tally.faults.total()),
        *((f"  {number:6}", name) for name, number in sorted(tally.faults.items())),
        (f"  {tally.ended:6}", "claimctl ended by itself after an outage"),
        *counts(tally.bad),
        ("not by claimctl", frame.some(tally.others)),
    ]
