"""What runs have found, on kube-in-process and on real servers alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

KINDS = ("violations", "leaks", "stuck")


@dataclass
class RunFindings:
    """The findings of one run: broken promises, claims that stay, and what never comes about."""

    name: str
    violations: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    """The history for a person."""
    counts: Counter[str] = field(default_factory=Counter)
    """What happened in it, and how often."""
    others: list[str] = field(default_factory=list)
    """What went wrong, and was not done by claimctl."""

    def say(self, kind: str, texts: Iterable[str]) -> None:
        """Record findings.

        Args:
            kind: violations, leaks or stuck.
        """
        getattr(self, kind).extend(texts)

    @property
    def good(self) -> bool:
        return not (self.violations or self.leaks or self.stuck)

    def texts(self) -> list[str]:
        """Each finding with its kind."""
        return [f"{kind}: {text}" for kind in KINDS for text in getattr(self, kind)]

    def shown(self) -> str:
        """The findings, and the history that led to them."""
        return "\n".join(["", self.name, *self.texts(), *self.log])


@dataclass
class Tally:
    """The results of several runs."""

    runs: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    """What happened in all of them, and how often."""
    bad: list[RunFindings] = field(default_factory=list)
    """The runs with a finding."""

    def note(self, run: RunFindings) -> None:
        self.runs += 1
        self.counts += run.counts
        if not run.good:
            self.bad.append(run)

    def add(self, other: Tally) -> None:
        self.runs += other.runs
        self.counts += other.counts
        self.bad += other.bad

    def figures(self) -> Iterator[tuple[str, object]]:
        """The lines of a report: what was counted, then the number of findings of each kind."""
        yield from ((f"  {number:6}", what) for what, number in sorted(self.counts.items()))
        yield from ((kind, sum(len(getattr(run, kind)) for run in self.bad)) for kind in KINDS)
