"""Sorts differences into allowed and new, by the list beside this file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

from judges.conformance.compare import Difference
from judges.conformance.replay import StepResult

ALLOWED = Path(__file__).parent / "allowed.yaml"


@dataclass(frozen=True, slots=True)
class Entry:
    """One difference that is accepted; ``field`` is exact.

    What was found must begin with ``begins``, if that is given, so that only the rest may differ.
    """

    file: str
    step: str
    field: str
    reason: str = ""
    begins: str = ""

    def covers(self, step: str, difference: Difference) -> bool:
        actual = difference.answered if isinstance(difference.answered, str) else ""
        same = (self.step, self.field) == (step, difference.field)
        return same and actual.startswith(self.begins)


def entries(path: Path) -> list[Entry]:
    content = yaml.safe_load(path.read_text()) or []
    return [Entry(**{key: str(value) for key, value in entry.items()}) for entry in content]


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """Of one recording: every difference that the list does not name, and what it covered.

    ``stale`` are allowances that nothing needs. ``allowed`` are steps that differ in nothing else;
    ``matched`` ones do not differ at all.
    """

    name: str
    steps: int
    matched: int
    allowed: int
    new: tuple[tuple[StepResult, Difference], ...]
    stale: tuple[Entry, ...]

    @property
    def different(self) -> int:
        return len({result.index for result, _ in self.new})

    def line(self) -> str:
        return (
            f"{self.name:32} steps {self.steps:3}  matched {self.matched:3}  "
            f"allowed {self.allowed:3}  different {self.different:3}"
        )


def report(name: str, results: list[StepResult]) -> ReplayReport:
    allowed = [e for e in entries(ALLOWED) if e.file == name]
    used: set[Entry] = set()
    new: list[tuple[StepResult, Difference]] = []
    kinds = [_judge(result, allowed, used, new) for result in results]
    return ReplayReport(
        name=name,
        steps=len(results),
        matched=kinds.count("matched"),
        allowed=kinds.count("allowed"),
        new=tuple(new),
        stale=tuple(entry for entry in allowed if entry not in used),
    )


def _judge(
    result: StepResult,
    allowed: list[Entry],
    used: set[Entry],
    new: list[tuple[StepResult, Difference]],
) -> str:
    """The worst of a step's differences: matched, allowed or different."""
    worst = "matched"
    for difference in result.differences:
        covering = [entry for entry in allowed if entry.covers(result.index, difference)]
        used.update(covering)
        if not covering:
            new.append((result, difference))
            worst = "different"
        elif worst == "matched":
            worst = "allowed"
    return worst
