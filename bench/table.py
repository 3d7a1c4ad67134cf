"""The one table of ``make bench``: lines, goals, and the parts that measure them.

A part is a module of this package that calls ``register`` when it is imported. ``python -m bench``
runs the parts and prints their lines.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import bench

ASSETS = "KUBEBUILDER_ASSETS"


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound of a line's ratio."""

    bound: float
    at_least: bool

    def met(self, value: float) -> bool:
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.bound:g}"


def at_least(bound: float) -> Goal:
    """The baseline must be at least this many times claimctl's figure."""
    return Goal(bound, at_least=True)


def at_most(bound: float) -> Goal:
    """claimctl's figure must be at most this many times the baseline."""
    return Goal(bound, at_least=False)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: a figure of claimctl beside that of what a user would pick instead.

    Attributes:
        name: what was measured, beginning with the part.
        figure: claimctl's figure, the median of the runs unless ``name`` says otherwise.
        beside: who or what the baseline is; '' if there is none.
        baseline: the figure of ``beside``, from the same run.
        unit: of both figures, such as 's' or 'MB'; '' for a count.
        goal: the bound of the ratio, or of the figure itself if there is no baseline.
        runs: how many measurements each figure is made of.
    """

    name: str
    figure: float
    beside: str = ""
    baseline: float | None = None
    unit: str = ""
    goal: Goal | None = None
    runs: int = 1

    @property
    def ratio(self) -> float | None:
        """Baseline / figure, or figure / baseline if the goal is ``at_most``; else None."""
        if self.baseline is None:
            return None
        upside_down = self.goal is not None and not self.goal.at_least
        above, below = (self.figure, self.baseline) if upside_down else (self.baseline, self.figure)
        return above / below if below else (float("inf") if above else 1.0)

    @property
    def verdict(self) -> str:
        if self.goal is None:
            return ""
        value = self.figure if self.ratio is None else self.ratio
        return "met" if self.goal.met(value) else "MISSED"


def medians(
    name: str,
    ours: Sequence[float],
    beside: str,
    theirs: Sequence[float],
    *,
    unit: str = "s",
    goal: Goal | None = None,
) -> Line:
    """The line of two samples from one run."""
    runs = min(len(ours), len(theirs))
    return Line(name, median(ours), beside, median(theirs), unit, goal, runs)


@dataclass(frozen=True, slots=True)
class BenchPart:
    """Something that ``make bench`` measures.

    Attributes:
        measure: measures and yields lines. It prints progress on stderr only.
        flags: adds the flags of the part, all of them with defaults.
        real: whether it needs the real servers of ``KUBEBUILDER_ASSETS``.
    """

    name: str
    what: str
    measure: Callable[[argparse.Namespace], Iterable[Line]]
    flags: Callable[[argparse.ArgumentParser], None] = lambda _: None
    real: bool = False

    @property
    def missing(self) -> str:
        """Why the part cannot run here, or ''."""
        return f"{ASSETS} is not set" if self.real and not os.environ.get(ASSETS) else ""

    def parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(prog=f"python -m bench {self.name}", description=self.what)
        self.flags(parser)
        return parser


_parts: dict[str, BenchPart] = {}


def register(part: BenchPart) -> None:
    _parts[part.name] = part


def parts() -> dict[str, BenchPart]:
    """All parts by name; imports the modules of this package."""
    for module in pkgutil.iter_modules(bench.__path__):
        if not module.name.startswith("__"):
            importlib.import_module(f"bench.{module.name}")
    return dict(sorted(_parts.items()))


def tell(text: str) -> None:
    """Show progress."""
    print(f"  {text}", file=sys.stderr, flush=True)


HEAD = ("what", "claimctl", "beside", "its figure", "ratio", "goal", "", "runs")


def table(lines: Iterable[Line]) -> str:
    """The lines in columns."""
    rows = [HEAD, *(_row(line) for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    return "\n".join(_aligned(row, widths) for row in rows)


_LEFT = {0, 2, 6}


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = (
        cell.ljust(width) if column in _LEFT else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join(cells).rstrip()


def _row(line: Line) -> tuple[str, ...]:
    return (
        line.name,
        _figure(line.figure, line.unit),
        line.beside,
        "" if line.baseline is None else _figure(line.baseline, line.unit),
        "" if line.ratio is None else f"{line.ratio:.2f}",
        "" if line.goal is None else str(line.goal),
        line.verdict,
        str(line.runs),
    )


def _figure(value: float, unit: str) -> str:
    digits = 0 if value == int(value) or value >= 1000 else 1 if value >= 100 else 2
    if 0 < value < 0.1:
        digits = 4
    return f"{value:,.{digits}f} {unit}".rstrip()
