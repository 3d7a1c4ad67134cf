"""Each habit has a rule of claimctl that answers it, or needs none."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from kube_in_process.habits.registry import HABITS

from labs.habits.planted import NO_RULE, TAKEN_OUT, TakenOut
from labs.habits.stories import STORIES
from labs.part import again, part

ROOT = Path(__file__).parents[2]


def test_each_habit_has_a_rule_or_needs_none() -> None:
    answered = {rule.habit for rule in TAKEN_OUT}
    assert answered | NO_RULE.keys() == HABITS.keys()
    assert answered.isdisjoint(NO_RULE)
    assert {rule.story for rule in TAKEN_OUT} <= STORIES.keys()


@pytest.mark.parametrize("rule", TAKEN_OUT, ids=lambda rule: f"{rule.habit}, {rule.mutant.name}")
def test_a_rule_is_in_one_place(rule: TakenOut) -> None:
    spec = find_spec(rule.mutant.module)
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text(encoding="utf-8")
    assert ast.dump(rule.mutant.planted(ast.parse(source))) != ast.dump(ast.parse(source))


def test_a_cell_fails_without_its_rule() -> None:
    chosen = part()
    at = chosen % len(TAKEN_OUT)
    command = (sys.executable, "-m", "labs", "habits", "--bug", str(at))
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{again(chosen)}\n{TAKEN_OUT[at]}\n{done.stdout}{done.stderr}"
    assert " by " in done.stdout
