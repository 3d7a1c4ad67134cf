"""The table of reproductions: each names tests that there are, and what does not pass is left."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from labs.first_contact.lab import main
from labs.first_contact.table import Outcomes, Reproduction, reproductions

ROOT = Path(__file__).parents[2]
ONE = Reproduction("one", "did this", ("a.py::test_x", "b.py::test_y"))


def functions(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in tree.body if isinstance(node, kinds)}


def test_each_test_of_the_table_is_there() -> None:
    named = [test.split("::") for each in reproductions() for test in each.tests]
    assert [(file, name) for file, name in named if name not in functions(file)] == []


def report(test: str, outcome: str, when: str = "call") -> pytest.TestReport:
    made: pytest.TestReport = pytest.TestReport._from_json(
        {
            "nodeid": test,
            "location": (test, None, ""),
            "keywords": {},
            "outcome": outcome,
            "longrepr": None,
            "when": when,
        }
    )
    return made


def test_what_fails_is_skipped_or_was_not_played_is_left() -> None:
    outcomes = Outcomes()
    outcomes.pytest_runtest_logreport(report("a.py::test_x[1]", "passed"))
    assert outcomes.left([ONE]) == [(ONE, ["b.py::test_y"])]
    outcomes.pytest_runtest_logreport(report("b.py::test_y", "passed"))
    assert outcomes.left([ONE]) == []
    outcomes.pytest_runtest_logreport(report("a.py::test_x[2]", "skipped", "setup"))
    assert outcomes.left([ONE]) == [(ONE, ["a.py::test_x"])]


def test_pytest_can_keep_it_in_a_set_of_plugins() -> None:
    assert len({Outcomes(), Outcomes()}) == 2


def test_another_name_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nosuch"]) == 2
    assert "there are: manual-by-annotation, " in capsys.readouterr().out
