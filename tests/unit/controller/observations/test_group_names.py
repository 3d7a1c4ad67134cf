"""Since when the name of a PodGroup is not in use."""

from __future__ import annotations

from claimctl.controller.keys import GroupKey
from claimctl.controller.observations.group_names import GroupNames
from tests.support.builders import NAMESPACE
from tests.support.hand_clock import HandClock

GROUP = GroupKey(NAMESPACE, "train")


def test_a_name_is_quiet_since_its_last_use_or_since_all_groups_are_known() -> None:
    clock = HandClock()
    names = GroupNames(clock)
    names.used(GROUP)
    clock.time += 5
    assert names.quiet(GROUP) == 0.0
    names.known()
    clock.time += 2
    names.known()
    assert names.quiet(GROUP) == 2.0
    names.used(GROUP)
    clock.time += 1
    assert names.quiet(GROUP) == 1.0
    assert names.quiet(GroupKey(NAMESPACE, "other")) == 3.0
    names.unknown()
    assert names.quiet(GROUP) == 0.0
