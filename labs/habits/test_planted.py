"""Each habit has a rule of claimctl that answers it, or needs none."""

from __future__ import annotations

from kube_in_process.habits.registry import HABITS

from labs.habits.planted import NO_RULE, TAKEN_OUT
from labs.habits.stories import STORIES
from labs.hunting import CAUGHT, in_process
from labs.part import again, part


def test_each_habit_has_a_rule_or_needs_none() -> None:
    answered = {rule.habit for rule in TAKEN_OUT}
    assert answered | NO_RULE.keys() == HABITS.keys()
    assert answered.isdisjoint(NO_RULE)
    assert {rule.story for rule in TAKEN_OUT} <= STORIES.keys()


def test_a_cell_fails_without_its_rule() -> None:
    chosen = part()
    rule = TAKEN_OUT[chosen % len(TAKEN_OUT)]
    code, line = in_process("habits", "--bug")(rule.name)
    assert code == CAUGHT, f"{again(chosen)}\n{rule}\n{line}"
    assert " by " in line
