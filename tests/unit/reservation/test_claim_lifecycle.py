"""After a deallocation: the scheduler's finalizer, whatever has become of the record."""

from __future__ import annotations

from dataclasses import replace

import pytest

from claimctl.reservation.decide import decide
from claimctl.reservation.decision import RemoveClaimFinalizer
from claimctl.reservation.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.reservations import ClaimReservationStatus
from tests.support.builders import claim, reservation
from tests.support.stage import Stage


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
    snapshot = Stage(freed, held).snapshot()
    ours = replace(snapshot, memory=replace(snapshot.memory, deallocated=True))
    assert decide(ours).write == RemoveClaimFinalizer(freed.metadata.resource_version)
    assert not isinstance(decide(snapshot).write, RemoveClaimFinalizer)
