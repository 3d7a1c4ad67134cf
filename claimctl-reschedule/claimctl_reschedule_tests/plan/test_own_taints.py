"""claimctl's taints are told apart from others', and stale ones from those in use."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from claimctl.wire.meta import ObjectMeta
from claimctl.wire.nodes import Node, NodeSpec, Taint
from claimctl.wire.traces import is_own
from claimctl_reschedule.plan.own_taints import stale_taints
from claimctl_reschedule.shapes.records import RecordedTaint

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
OWN = Taint(key="CriticalAddonsOnly", value="claimctl-p-1", effect="NoSchedule")


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("CriticalAddonsOnly", "claimctl-p-1", True),
        ("claimctl.io/moving", "claimctl-p-1", True),
        ("CriticalAddonsOnly", "true", False),
        ("CriticalAddonsOnly", "", False),
        ("example.com/other", "claimctl-p-1", False),
    ],
)
def test_which_taints_are_own(key: str, value: str, expected: bool) -> None:
    assert is_own(key, value) == expected


def entry(seconds: int, value: str = OWN.value) -> RecordedTaint:
    deadline = NOON + timedelta(seconds=seconds)
    return RecordedTaint(node="n1", key=OWN.key, value=value, deadline=deadline)


@pytest.mark.parametrize(
    ("entries", "stale"),
    [
        ([], True),
        ([entry(60)], False),
        ([entry(-1)], True),
        ([entry(60, "claimctl-p-2")], True),
    ],
)
def test_which_taints_are_stale(entries: list[RecordedTaint], stale: bool) -> None:
    theirs = Taint(key="CriticalAddonsOnly", value="true", effect="NoExecute")
    node = Node(metadata=ObjectMeta(name="n1"), spec=NodeSpec(taints=(theirs, OWN)))
    assert list(stale_taints([node], entries, NOON)) == ([("n1", OWN)] if stale else [])
