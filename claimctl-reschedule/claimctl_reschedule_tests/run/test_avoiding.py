"""The entries of owners in the record."""

from __future__ import annotations

from datetime import timedelta

from claimctl_reschedule.run.avoiding import with_avoidances
from claimctl_reschedule.shapes.records import (
    MAX_AVOIDANCES,
    RecordedAvoidance,
    RecordedRefusal,
    RecordedTaint,
    RescheduleRecordStatus,
)
from tests.support.builders import NOW


def entry(owner: str, age: float = 0.0, *nodes: str) -> RecordedAvoidance:
    seen = RecordedRefusal(pod_uid=f"p-{owner}", node="node-0", at=NOW - timedelta(seconds=age))
    return RecordedAvoidance(owner_uid=owner, refusals=(seen,), nodes=nodes)


def owners(status: RescheduleRecordStatus) -> list[str]:
    return [each.owner_uid for each in status.avoidances]


def test_an_entry_takes_the_place_of_the_one_of_its_owner_and_no_other() -> None:
    taint = RecordedTaint(node="node-0", key="k")
    before = RescheduleRecordStatus(avoidances=(entry("a"), entry("b")), taints=(taint,))
    after = with_avoidances(before, [entry("b", 0.0, "node-0"), entry("c")])
    assert owners(after) == ["a", "b", "c"]
    assert after.avoidances[1].nodes == ("node-0",)
    assert after.taints == (taint,)


def test_a_write_that_is_repeated_changes_nothing() -> None:
    """A write without an answer may have been applied."""
    after = with_avoidances(RescheduleRecordStatus(), [entry("a")])
    assert with_avoidances(after, [entry("a")]) == after


def test_an_owner_of_which_nothing_is_known_goes() -> None:
    before = RescheduleRecordStatus(avoidances=(entry("a"), entry("b")))
    assert owners(with_avoidances(before, [RecordedAvoidance(owner_uid="a")])) == ["b"]


def test_the_oldest_owners_go_first_and_those_that_avoid_nodes_last() -> None:
    many = [entry(f"o-{number:03}", number) for number in range(MAX_AVOIDANCES)]
    old = entry("old", 9999.0, "node-0")
    after = with_avoidances(RescheduleRecordStatus(), [*many, old])
    assert len(after.avoidances) == MAX_AVOIDANCES
    assert "old" in owners(after)
    assert f"o-{MAX_AVOIDANCES - 1:03}" not in owners(after)
