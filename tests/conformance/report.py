"""Sorts differences into allowed, known and new, by the two lists beside this file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.conformance.compare import Difference
from tests.conformance.replay import StepResult

ALLOWED = Path(__file__).parent / "allowed.yaml"
KNOWN = Path(__file__).parent / "known.yaml"


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
        found = difference.found if isinstance(difference.found, str) else ""
        same = (self.step, self.field) == (step, difference.field)
        return same and found.startswith(self.begins)


def entries(path: Path) -> list[Entry]:
    content = yaml.safe_load(path.read_text()) or []
    return [Entry(**{key: str(value) for key, value in each.items()}) for each in content]


def write_known(found: list[Entry]) -> None:
    """Replace the list of differences that are known and not yet dealt with."""
    rows = [{"file": e.file, "step": e.step, "field": e.field} for e in found]
    text = yaml.safe_dump(rows, sort_keys=False, width=200)
    KNOWN.write_text(
        f"# Known differences that should go. This list may only become shorter.\n{text}"
    )


@dataclass(frozen=True, slots=True)
class Report:
    """Of one recording: every difference that no list names, and what the lists covered.

    ``stale`` are allowances that nothing needs. ``allowed`` and ``known`` are steps that differ in
    nothing else; ``matched`` ones do not differ at all.
    """

    name: str
    steps: int
    matched: int
    allowed: int
    known: int
    new: tuple[tuple[StepResult, Difference], ...]
    stale: tuple[Entry, ...]

    @property
    def different(self) -> int:
        return len({result.index for result, _ in self.new})

    def line(self) -> str:
        return (
            f"{self.name:32} steps {self.steps:3}  matched {self.matched:3}  "
            f"allowed {self.allowed:3}  "
            f"known {self.known:3}  different {self.different:3}"
        )


def report(name: str, results: list[StepResult]) -> Report:
    allowed = [e for e in entries(ALLOWED) if e.file == name]
    known = [e for e in entries(KNOWN) if e.file == name]
    used: set[Entry] = set()
    new: list[tuple[StepResult, Difference]] = []
    kinds = [_judge(result, allowed, known, used, new) for result in results]
    return Report(
        name=name,
        steps=len(results),
        matched=kinds.count("matched"),
        allowed=kinds.count("allowed"),
        known=kinds.count("known"),
        new=tuple(new),
        stale=tuple(entry for entry in allowed if entry not in used),
    )


def _judge(
    result: StepResult,
    allowed: list[Entry],
    known: list[Entry],
    used: set[Entry],
    new: list[tuple[StepResult, Difference]],
) -> str:
    """The worst of a step's differences: matched, allowed, known or different."""
    worst = "matched"
    for difference in result.differences:
        covering = [e for e in (*allowed, *known) if e.covers(result.index, difference)]
        used.update(covering)
        if not covering:
            new.append((result, difference))
            worst = "different"
        elif worst != "different":
            is_known = not any(entry in allowed for entry in covering)
            worst = "known" if is_known or worst == "known" else "allowed"
    return worst
