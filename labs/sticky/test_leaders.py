"""The played controller of LeaderWorkerSets rolls out as the published one does."""

from __future__ import annotations

import pytest

from labs.sticky.leaders import next_partition

DONE, OLD, DOWN = (True, True), (True, False), (False, False)


@pytest.mark.parametrize(
    ("states", "present", "wanted"),
    [
        ([OLD, OLD, OLD], 3, 2),
        ([OLD, OLD, DOWN], 2, 2),
        ([OLD, OLD, DONE], 2, 1),
        ([OLD, DONE, DONE], 1, 0),
        ([DONE, DONE, DONE], 0, 0),
        ([DOWN, OLD, OLD], 3, 3),
        ([OLD, DOWN, DOWN], 3, 2),
        ([DOWN, DOWN, DOWN], 3, 2),
        ([OLD, OLD, DONE], 1, 1),
    ],
    ids=[
        "the last group is first",
        "one group at a time",
        "the next one",
        "the first group is last",
        "at its end",
        "another group is down already",
        "a group that is down goes along",
        "all are down",
        "it never goes back",
    ],
)
def test_a_rollout_goes_from_the_last_group_to_the_first(
    states: list[tuple[bool, bool]], present: int, wanted: int
) -> None:
    assert next_partition(states, present) == wanted
