"""Each habit has a rule of claimctl that answers it, or needs none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kube_in_process.habits.registry import HABITS

from labs.habits.planted import NO_RULE, TAKEN_OUT
from labs.habits.stories import STORIES
from labs.part import again, part

ROOT = Path(__file__).parents[2]


def test_each_habit_has_a_rule_or_needs_none() -> None:
    answered = {rule.habit for rule in TAKEN_OUT}
    assert answered | NO_RULE.keys() == HABITS.keys()
    assert answered.isdisjoint(NO_RULE)
    assert {rule.story for rule in TAKEN_OUT} <= STORIES.keys()


def test_a_cell_fails_without_its_rule() -> None:
    chosen = part()
    rule = TAKEN_OUT[chosen % len(TAKEN_OUT)]
    command = (sys.executable, "-m", "labs", "habits", "--bug", rule.name)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{again(chosen)}\n{rule}\n{done.stdout}{done.stderr}"
    assert " by " in done.stdout
