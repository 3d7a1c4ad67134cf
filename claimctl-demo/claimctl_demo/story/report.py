"""The results: one line per step for people, one object for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TextIO

import typer

from claimctl.cli.color import in_color
from claimctl.commands.timeline.model import Timeline
from claimctl_demo.story.documents import DemoReport, DemoStep
from claimctl_demo.story.parts import Part
from claimctl_witness.witness import Violation


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a step. None means that the step does not measure it."""

    pods: int | None = None
    """Pods that used the claim at the end of the step."""
    references: int | None = None
    """Entries of the claim's list at the end of the step."""
    writes: int | None = None
    """Revisions of the claim that claimctl wrote during the step."""
    more: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one step."""

    name: str
    ok: bool
    seconds: float
    figures: Figures
    message: str
    part: Part
    began: datetime | None = None

    def document(self) -> DemoStep:
        more = self.figures.more
        return DemoStep(
            name=self.name,
            ok=self.ok,
            dialect=self.part.dialect,
            version=self.part.version,
            pods=self.figures.pods,
            references=self.figures.references,
            writes=self.figures.writes,
            seconds=round(self.seconds, 2),
            message=self.message,
            claim_revisions_per_second=more.get("claimRevisionsPerSecond"),
            pending=more.get("pending"),
        )


@dataclass(slots=True)
class Report:
    parts: tuple[Part, ...]
    steps: list[Step] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Errors inside the cluster itself."""
    played_on: str = "an embedded cluster"
    seconds: float = 0.0
    timelines: dict[Part, list[Timeline]] = field(default_factory=dict)
    """The timelines of all claims of a part. Only the page needs them."""

    @property
    def ok(self) -> bool:
        return all(step.ok for step in self.steps) and not self.violations and not self.errors

    def conclusion(self) -> str:
        """The result in one line."""
        good = sum(step.ok for step in self.steps)
        return (
            f"{good} of {len(self.steps)} steps as they should be, {len(self.violations)} "
            f"violations in the server's history, {self.seconds:.1f}s"
        )

    def document(self) -> DemoReport:
        return DemoReport(
            dialect=_distinct(part.dialect for part in self.parts),
            version=_distinct(part.version for part in self.parts),
            played_on=self.played_on,
            ok=self.ok,
            seconds=round(self.seconds, 2),
            steps=tuple(step.document() for step in self.steps),
            violations=len(self.violations),
            errors=tuple(self.errors),
            violation_details=tuple(self.violations),
        )


class Printer:
    """Prints lines for people as things happen; with colours on a terminal."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._colours = in_color(self._out)

    def head(self, text: str) -> None:
        self._line(text, bold=True)

    def step(self, step: Step) -> None:
        mark, color = ("ok  ", "green") if step.ok else ("FAIL", "red")
        figures = f" {text}" if (text := figures_of(step)) else ""
        self._line(f"{mark} {step.seconds:5.1f}s  {step.name}: {step.message}{figures}", color)

    def text(self, text: str) -> None:
        self._line(text)

    def end(self, report: Report) -> None:
        for violation in report.violations:
            self._line(f"VIOLATION {violation.rule}: {violation.message}", "red")
        for error in report.errors:
            self._line(f"ERROR in the cluster: {error}", "red")
        self._line(report.conclusion(), None if report.ok else "red", bold=report.ok)

    def _line(self, text: str, color: str | None = None, *, bold: bool = False) -> None:
        """Print a line on the stream itself, which keeps it apart from a live line."""
        styled = typer.style(text, fg=color, bold=bold or None) if self._colours else text
        print(styled, file=self._out, flush=True)


class Quiet(Printer):
    """Prints nothing: the command prints the report at the end."""

    def _line(self, text: str, color: str | None = None, *, bold: bool = False) -> None:
        return None


def _distinct(values: Iterable[str]) -> str:
    """The values in their order, each once, with commas between."""
    return ",".join(dict.fromkeys(values))


def figures_of(step: Step) -> str:
    """The figures of a step in brackets; empty if it has none."""
    known = (
        ("pods", step.figures.pods),
        ("references", step.figures.references),
        ("writes by claimctl", step.figures.writes),
    )
    shown: Sequence[str] = [f"{title} {value}" for title, value in known if value is not None]
    return f"[{', '.join(shown)}]" if shown else ""
