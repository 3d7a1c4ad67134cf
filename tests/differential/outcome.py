"""What the parts of a differential run are given, and what they hand back."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from claimctl.controlplane.programs import Programs


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one part: ``seconds`` is all the time it has, from start to stop of servers."""

    programs: Programs
    seconds: float
    seed: int
    keep: Path | None = None
    """Where every transcript of real answers is added, one JSON document a line."""

    @property
    def pod_groups(self) -> bool:
        """Whether PodGroups are switched on, on both sides."""
        return self.programs.version >= (1, 36)


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference. ``kind`` is the same for the same difference in every run: it has no
    names, uids, times or numbers that a run chose. ``shown`` is for a person: the fewest
    requests (or actions) that lead to it, and both answers."""

    kind: str
    shown: str
    sequence: str = ""
    """The name of the sequence in which it was found."""


@dataclass(slots=True)
class Outcome:
    """``compared`` are requests or action sequences; ``unit`` says which."""

    part: str
    unit: str
    compared: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    """How often each kind of difference came."""
    refused: Counter[str] = field(default_factory=Counter)
    """What the embedded server said it does not emulate, and how often."""
    findings: dict[str, Finding] = field(default_factory=dict)
    """One of each kind."""

    def note(self, finding: Finding) -> None:
        self.kinds[finding.kind] += 1
        self.findings.setdefault(finding.kind, finding)
