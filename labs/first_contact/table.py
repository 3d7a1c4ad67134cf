"""The reproductions of what people met when they first used claimctl, and what is left of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

TABLE = Path(__file__).with_name("reproductions.yaml")


@dataclass(frozen=True, slots=True)
class Reproduction:
    """``tests`` are node ids without parameters: each stands for all its parameters."""

    name: str
    did: str
    tests: tuple[str, ...]


def reproductions() -> tuple[Reproduction, ...]:
    """The whole table, in its order."""
    entries = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return tuple(
        Reproduction(name, entry["did"], tuple(entry["tests"])) for name, entry in entries.items()
    )


@dataclass(slots=True, eq=False)
class Outcomes:
    """A plugin of pytest that notes which tests passed and which did not."""

    passed: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = report.nodeid.partition("[")[0]
        if not report.passed:
            self.failed.add(test)
        elif report.when == "call":
            self.passed.add(test)

    def left(self, played: Iterable[Reproduction]) -> list[tuple[Reproduction, list[str]]]:
        """The reproductions with a test that did not pass, and those tests."""
        good = self.passed - self.failed
        bad = [(each, [test for test in each.tests if test not in good]) for each in played]
        return [(each, tests) for each, tests in bad if tests]
