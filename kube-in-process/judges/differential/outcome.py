"""The input and the result of a part of a differential run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from kube_in_process.real.servers.programs import Programs


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one part. ``seconds`` includes the start and stop of servers."""

    programs: Programs
    seconds: float
    seed: int
    keep: Path | None = None
    """The file to which transcripts of real answers are added, one JSON document per line."""

    @property
    def pod_groups(self) -> bool:
        """Whether PodGroups are on, on both sides."""
        return self.programs.version >= (1, 36)


@dataclass(frozen=True, slots=True)
class DifferentialFinding:
    """One difference. ``kind`` is the same for the same difference in every run: it has no
    names, uids, times or numbers that a run chose. ``shown`` is for a person: the fewest
    requests (or actions) that lead to it, and both answers."""

    kind: str
    shown: str
    sequence: str = ""
    """The name of the sequence in which it was found."""


@dataclass(slots=True)
class PartOutcome:
    """The result. ``compared`` counts requests or stories; ``unit`` says which."""

    part: str
    unit: str
    compared: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    """How many times each kind of difference occurred."""
    refused: Counter[str] = field(default_factory=Counter)
    """How many times the embedded server refused each thing as not emulated."""
    findings: dict[str, DifferentialFinding] = field(default_factory=dict)
    """One finding of each kind."""
    remarks: list[str] = field(default_factory=list)
    """What a reader of the result has to know beside the differences."""

    def note(self, finding: DifferentialFinding) -> None:
        self.kinds[finding.kind] += 1
        self.findings.setdefault(finding.kind, finding)
