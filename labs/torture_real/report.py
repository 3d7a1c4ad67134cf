"""The results of a run: figures and findings."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from labs.torture_real.judge import Verdict
from labs.torture_real.options import Options
from labs.torture_real.schedule import Schedule


@dataclass
class Tally:
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
    bad: list[Verdict] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    def add(self, schedule: Schedule) -> None:
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


def report(options: Options, tally: Tally) -> None:
    print(f"torture-real        {options.label}, SEED={options.seed}")
    actions = f"{tally.actions} user actions"
    print(f"schedules           {tally.schedules} in {tally.waves} waves, {actions}")
    print(f"two controllers     {tally.pairs} waves; with a Lease: {tally.elections}")
    print(f"versions judged     {tally.revisions}, {tally.writes} of them by claimctl")
    print(f"by claimctl         {tally.holds} holds, {tally.releases} releases")
    print(f"faults              {tally.faults.total()}")
    for name, number in sorted(tally.faults.items()):
        print(f"  {number:6} {name}")
    print(f"  {tally.ended:6} claimctl ended by itself after an outage")
    for what, number in (
        ("violations", sum(len(verdict.violations) for verdict in tally.bad)),
        ("leaks", sum(len(verdict.leaks) for verdict in tally.bad)),
        ("stuck", sum(len(verdict.stuck) for verdict in tally.bad)),
        ("not by claimctl", len(tally.others)),
    ):
        print(f"{what:19} {number}")
    for text in tally.others:
        print(f"  {text}")
    for verdict in tally.bad:
        print("\n".join(["", verdict.name, *_wrong(verdict), *verdict.log]))


def _wrong(verdict: Verdict) -> list[str]:
    return [
        f"{name}: {text}"
        for name in ("violations", "leaks", "stuck")
        for text in getattr(verdict, name)
    ]
