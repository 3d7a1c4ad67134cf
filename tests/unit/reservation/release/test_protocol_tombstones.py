"""Tombstones before a release: beside a finished pod without one, KCM writes all the time."""

from __future__ import annotations

import pytest

from claimctl.reservation.decide import decide
from claimctl.reservation.facts.decision import WriteList
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.snapshot import Rules
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.claims import Reference
from tests.support.builders import claim, finished, pod_ref, reservation, running, tomb
from tests.support.claim_cases import GONE, HOLD, WORKLOAD, held_status, lists, stage

GROUPS = Rules("podgroup")
COMPLETE = WorkloadState(WorkloadPhase.ENDED, "uid-train")


@pytest.mark.parametrize("rules", [HOLD, GROUPS], ids=["hold", "podgroup"])
@pytest.mark.parametrize(
    "listed", [(WORKLOAD,), (pod_ref("a"), WORKLOAD)], ids=["taken out", "put back"]
)
def test_finished_pods_are_buried_before_the_release_lists_pods(
    listed: tuple[Reference, ...], rules: Rules
) -> None:
    on = stage(claim(*listed), COMPLETE, rules)
    on.put(finished("a"))
    first = decide(on.snapshot())
    assert first.needs == ()
    assert isinstance(first.write, WriteList)
    assert {each.uid for each in first.write.reserved_for} == {"uid-a", WORKLOAD.uid}
    assert tomb("a") in first.write.reserved_for
    assert lists(on.settle(seconds=10))[-1] == ((), True)


def test_a_release_goes_on_where_there_is_no_place_for_a_tombstone() -> None:
    names = [f"p{i}" for i in range(255)]
    on = stage(claim(*map(tomb, names), WORKLOAD), COMPLETE)
    on.put(*map(finished, [*names, "more"]))
    assert lists(on.settle(seconds=5)) == [((), True)]


def test_a_release_goes_on_where_somebody_takes_the_tombstones_out_again() -> None:
    on = stage(claim(WORKLOAD), COMPLETE)
    on.put(finished("a"))
    on.repeated_writes = HOLD.fight_limit
    assert lists(on.settle(seconds=5)) == [((), True)]


def test_a_release_that_is_asked_for_buries_first_too() -> None:
    asked = reservation(status=held_status(), annotations={"claimctl.io/release": "uid-slice"})
    on = stage(claim(WORKLOAD), GONE, reserved=asked)
    on.put(finished("a"))
    assert lists(on.settle(seconds=5)) == [((WORKLOAD, tomb("a")), False), ((), True)]
    assert Reason.RELEASE_REQUESTED in {
        held.reservation.status.conditions[-1].reason for held in on.snapshot().reservations
    }


def test_a_tombstone_alone_keeps_the_claim_allocated_as_a_hold_does() -> None:
    """Somebody took the hold out; KCM deallocates nothing while the tombstone is listed."""
    on = stage(claim(tomb("b")), COMPLETE)
    on.put(finished("a"), finished("b"))
    assert lists(on.settle(seconds=10)) == [((tomb("b"), tomb("a")), False), ((), True)]


def test_a_cache_that_is_behind_digs_nobody_up() -> None:
    on = stage(claim(WORKLOAD, tomb("a")), WorkloadState(WorkloadPhase.ACTIVE, "uid-train"))
    on.put(running("a"))
    assert lists(on.settle(seconds=4)) == []
    assert lists(on.settle(seconds=4)) == [((WORKLOAD, pod_ref("a")), False)]
