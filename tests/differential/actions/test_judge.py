"""What is levelled out, and what is not; and that a story is always the same one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.actions.chance import THEMES, by_chance
from tests.differential.actions.judge import differences, turns
from tests.differential.actions.level import level_message
from tests.differential.actions.recording import merge_patch, merged
from tests.differential.actions.rehearsal import on_embedded
from tests.differential.actions.story import read

VERSION = (1, 36)


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ([1, 2, 3], [1, 3]),
        ([1, 3, 2, 3], [1, 3, 2, 3]),
        ([None, 2, None], [None, 2, None]),
        (["a", "b", "c"], ["a", "b", "c"]),
        ([2, 2, 2], [2]),
    ],
)
def test_counters_keep_their_turning_points_and_words_every_change(
    values: list[Any], kept: list[Any]
) -> None:
    assert turns(values) == kept


def test_what_the_scheduler_says_of_other_stories_nodes_is_left_out() -> None:
    told = "0/72 nodes are available: 3 cannot allocate all claims, 69 {}. still not schedulable"
    theirs = level_message(told.format("node(s) didn't satisfy plugin(s) [NodeAffinity]"))
    assert theirs == "0/* nodes are available: 3 cannot allocate all claims. still not schedulable"


def test_a_merge_patch_leads_from_one_state_to_the_next() -> None:
    old = {"a": 1, "b": {"c": 1, "d": [1]}}
    new = {"b": {"d": [2], "e": {"f": 1}}}
    assert merged(old, merge_patch(old, new)) == new


@pytest.mark.parametrize("theme", THEMES)
def test_a_story_is_the_same_one_each_time_and_can_be_stored(theme: str) -> None:
    told = by_chance(7, 3, VERSION, True, theme)
    assert told == by_chance(7, 3, VERSION, True, theme)
    assert read(told.text()) == told


def test_two_plays_of_a_story_do_not_differ_and_two_stories_do() -> None:
    told = by_chance(7, 3, VERSION, True, "deployment")
    once, again = (on_embedded((VERSION, True), told, name) for name in ("s1", "s2"))
    assert differences(once, again) == []
    once.segments[-1].answers.append("500 something else")
    assert [each.kind for each in differences(once, again)] == ["answer 500/-"]
