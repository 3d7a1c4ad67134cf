"""The results of a run: figures and findings."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from labs import frame
from labs.findings import Tally
from labs.torture_real.schedule import RealSchedule


@dataclass
class RealTally(Tally):
    """The results so far. The runs are schedules."""

    tell: bool = False
    """Whether to print every history."""
    interrupted: bool = False
    others: list[str] = field(default_factory=list)
    """What was not done by claimctl."""

    def end(self, schedule: RealSchedule) -> None:
        """Add one schedule."""
        verdict = schedule.verdict
        verdict.counts["user actions"] += schedule.actions
        self.note(verdict)
        self.others += [f"{verdict.name}: {text}" for text in verdict.others]
        if self.tell:
            print("\n".join([verdict.name, *verdict.log]), flush=True)

    def count(self, faults: Counter[str], *, pair: bool, elect: bool) -> None:
        """Add one wave."""
        self.counts["waves"] += 1
        self.counts["waves with two controllers"] += pair
        self.counts["waves with a Lease"] += elect
        self.counts += faults


def report(label: str, seed: int, tally: RealTally) -> list[tuple[str, object]]:
    """The figures of a run."""
    return [
        ("torture-real", f"{label}, SEED={seed}"),
        ("schedules", tally.runs),
        *tally.figures(),
        ("not by claimctl", frame.some(tally.others)),
    ]
