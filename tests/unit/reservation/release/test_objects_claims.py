"""After a deallocation: the scheduler's finalizer, whatever has become of the record."""

from __future__ import annotations

from dataclasses import replace

import pytest

from claimctl.reservation.decide import decide
from claimctl.reservation.facts.decision import RemoveClaimFinalizer
from claimctl.reservation.facts.reasons import Reason, ReleaseStep
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.reservations import ClaimReservationStatus, ReleaseProgress
from tests.support.builders import NOW, claim, pod_ref, reservation, running
from tests.support.stage import DecisionStage


@pytest.mark.parametrize("others", [True, False], ids=["nothing on record", "no reservation left"])
def test_who_deallocated_takes_the_finalizer_also_when_the_record_of_it_is_gone(
    others: bool,
) -> None:
    """Another controller, which has not seen that the workload has ended, cleared the record."""
    freed = claim(allocated=False)
    made = reservation(status=ClaimReservationStatus(claim_uid=freed.metadata.uid))
    held = (
        {made.metadata.name: (made, WorkloadState(WorkloadPhase.ENDED, "uid-train"))}
        if others
        else {}
    )
    snapshot = DecisionStage(freed, held).snapshot()
    ours = replace(snapshot, memory=replace(snapshot.memory, deallocated=True))
    assert decide(ours).write == RemoveClaimFinalizer(freed.metadata.resource_version)
    assert not isinstance(decide(snapshot).write, RemoveClaimFinalizer)


def on_record(phase: WorkloadPhase, *, deleting: bool = False) -> DecisionStage:
    """An unallocated claim with a finalizer. Its deallocation by claimctl is on record."""
    freed = claim(allocated=False)
    progress = ReleaseProgress(
        step=ReleaseStep.INTENT,
        reason=Reason.WORKLOAD_ENDED,
        since=NOW,
        claim_uid=freed.metadata.uid,
    )
    status = ClaimReservationStatus(claim_uid=freed.metadata.uid, release=progress)
    made = reservation(status=status, deleting=deleting)
    return DecisionStage(
        freed, {made.metadata.name: (made, WorkloadState(phase, "uid-train", wants=1))}
    )


@pytest.mark.parametrize("deleting", [False, True], ids=["reserved", "withdrawn"])
@pytest.mark.parametrize("phase", [WorkloadPhase.ENDED, WorkloadPhase.ACTIVE])
def test_a_finalizer_that_may_be_a_schedulers_new_one_stays_for_the_settle_time(
    phase: WorkloadPhase, deleting: bool
) -> None:
    """A scheduler adds it just before it allocates the claim anew."""
    on = on_record(phase, deleting=deleting)
    assert on.settle(seconds=4.9) == []
    assert len(on.reservations) == 1
    (made, _), *_ = on.reservations.values()
    assert made.status.release is not None
    assert on.settle(seconds=0.2)[:1] == [RemoveClaimFinalizer("10")]


def test_a_finalizer_that_came_back_after_this_process_removed_it_stays() -> None:
    on = on_record(WorkloadPhase.ACTIVE)
    on.deallocated = "10"
    assert on.settle(seconds=1)[0] == RemoveClaimFinalizer("10")
    on = on_record(WorkloadPhase.ACTIVE)
    on.deallocated = "8"
    assert on.settle(seconds=1) == []
    on.claim = claim(pod_ref("a"), version="11")
    on.put(running("a"))
    on.settle(seconds=1)
    (made, _), *_ = on.reservations.values()
    assert on.claim.metadata.finalizers
    assert made.status.release is None
