"""Allocations that nobody would clear, and entries that a deleted claim does not take."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from claimctl.reservation.decide import decide
from claimctl.reservation.facts.decision import SetFinalizer, WriteList
from claimctl.reservation.facts.snapshot import Held, Rules
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.reservations import ClaimReservationStatus
from tests.support.builders import (
    claim,
    deployment_ref,
    finished,
    group_ref,
    pending,
    pod_group,
    pod_ref,
    reservation,
    running,
    tomb,
)
from tests.support.stage import DecisionStage

WORKLOAD = deployment_ref()
ENDED = WorkloadState(WorkloadPhase.ENDED, "uid-train")
GONE = WorkloadState(WorkloadPhase.ABSENT)


def _stage(*entries: str, workload: WorkloadState, deleting: bool = False) -> DecisionStage:
    made = reservation(status=ClaimReservationStatus())
    on = claim(*map(pod_ref, entries), deleting=deleting)
    return DecisionStage(on, {made.metadata.name: (made, workload)})


@pytest.mark.parametrize("workload", [ENDED, GONE])
def test_an_ended_workload_that_never_held_leaves_no_allocation_behind(
    workload: WorkloadState,
) -> None:
    on = _stage(workload=workload)
    writes = on.settle(seconds=6)
    assert [w.deallocate for w in writes if isinstance(w, WriteList)] == [True]
    assert on.claim is not None
    assert on.claim.metadata.finalizers == ()


@pytest.mark.parametrize("workload", [ENDED, GONE])
def test_what_others_list_is_not_taken_for_left_behind(workload: WorkloadState) -> None:
    on = _stage("a", workload=workload)
    on.put(running("a"))
    assert on.settle(seconds=3600) == []


@pytest.mark.parametrize("keeps", [True, False])
def test_no_tombstone_is_put_into_a_claim_that_is_being_deleted(keeps: bool) -> None:
    status = ClaimReservationStatus(claim_uid="uid-slice", reserved_for=WORKLOAD)
    made = reservation(status=status)
    on = claim(pod_ref("a"), pod_ref("b"), WORKLOAD, deleting=True)
    held = WorkloadState(WorkloadPhase.ACTIVE, "uid-train", wants=2)
    rules = Rules("hold", kcm_cleans_mixed_lists=keeps)
    stage = DecisionStage(on, {made.metadata.name: (made, held)}, rules=rules)
    stage.put(finished("a"), running("b"))
    assert stage.settle(seconds=60) == []


@pytest.mark.parametrize("on", [claim(pod_ref("a")), claim(allocated=False), None])
@pytest.mark.parametrize(("age", "parts"), [(4.9, False), (5.0, True)])
def test_a_reservation_parts_only_when_no_other_controller_can_still_be_listing_it(
    on: ResourceClaim | None, age: float, parts: bool
) -> None:
    """One that has not seen the deletion may be adding the hold, also once a claim comes to be."""
    made = reservation(deleting=True)
    gone = Held(made, WorkloadState(WorkloadPhase.ACTIVE, "uid-train", wants=1), deleting_age=age)
    stage = DecisionStage(on, {})
    stage.put(running("a") if on and on.status.allocation else pending("a"))
    snapshot = replace(stage.snapshot(), reservations=(gone,))
    told = next(iter(decide(snapshot).statuses.values()), made.status)
    told_made = structs.replace(made, status=told)
    decision = decide(replace(snapshot, reservations=(replace(gone, reservation=told_made),)))
    assert isinstance(decision.write, SetFinalizer) == parts
    assert parts or (decision.after is not None and decision.after <= 5.0 - age + 0.001)


def _group_alone(workload: WorkloadState) -> DecisionStage:
    made = reservation(status=ClaimReservationStatus(pod_group_name="train"))
    on = DecisionStage(claim(group_ref()), {made.metadata.name: (made, workload)})
    on.rules = Rules(dialect="podgroup")
    on.groups = {"train": pod_group()}
    return on


@pytest.mark.parametrize("workload", [ENDED, GONE])
def test_an_ended_workload_whose_group_alone_is_listed_leaves_nothing_behind(
    workload: WorkloadState,
) -> None:
    """It came and went while no controller looked, so its own reference was never added."""
    on = _group_alone(workload)
    writes = on.settle(seconds=10)
    lists = [(w.reserved_for, w.deallocate) for w in writes if isinstance(w, WriteList)]
    assert lists == [((), False), ((), True)]


@pytest.mark.parametrize("workload", [ENDED, GONE])
def test_a_finished_pod_of_the_group_does_not_stop_that_release_at_its_fence(
    workload: WorkloadState,
) -> None:
    on = _group_alone(workload)
    on.put(finished("a", group="train"))
    writes = on.settle(seconds=10)
    lists = [(w.reserved_for, w.deallocate) for w in writes if isinstance(w, WriteList)]
    assert lists == [((tomb("a"),), False), ((), True)]
