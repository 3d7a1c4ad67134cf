"""What a run has found, on kube-in-process and on real servers alike."""

from __future__ import annotations

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

    @property
    def good(self) -> bool:
        return not (self.violations or self.leaks or self.stuck)

    def texts(self) -> list[str]:
        """Each finding with its kind."""
        return [f"{kind}: {text}" for kind in KINDS for text in getattr(self, kind)]

    def shown(self) -> str:
        """The findings, and the history that led to them."""
        return "\n".join(["", self.name, *self.texts(), *self.log])


def counts(runs: Iterable[RunFindings]) -> Iterator[tuple[str, int]]:
    """The number of findings of each kind."""
    bad = list(runs)
    return ((kind, sum(len(getattr(run, kind)) for run in bad)) for kind in KINDS)
