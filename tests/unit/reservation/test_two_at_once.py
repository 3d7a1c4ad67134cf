"""Two controllers that know different things about the past, at the same release."""

from __future__ import annotations

from claimctl.reservation.decision import WriteStatus
from claimctl.reservation.reasons import Reason, ReleaseStep
from claimctl.reservation.workloads import Life, WorkloadState
from claimctl.wire.reservations import ClaimReservationStatus, ReleaseProgress
from tests.support.builders import claim, deployment_ref, reservation
from tests.support.stage import Stage


def test_the_record_of_an_intent_outlives_a_controller_that_started_later() -> None:
    """The other one deallocates just now; the finalizer goes only where that record is."""
    listed = claim(deployment_ref())
    begun = ReleaseProgress(
        step=ReleaseStep.INTENT, reason=Reason.WORKLOAD_ENDED, claim_uid=listed.metadata.uid
    )
    made = reservation(
        status=ClaimReservationStatus(
            claim_uid=listed.metadata.uid, reserved_for=deployment_ref(), release=begun
        )
    )
    gone = WorkloadState(Life.ABSENT)
    on = Stage(listed, {made.metadata.name: (made, gone)}, watched_since_before_allocation=False)
    on.settle(seconds=5)
    told = [write.status for write in on.writes if isinstance(write, WriteStatus)]
    assert told
    for status in told:
        assert status.release is not None
        assert (status.release.step, status.release.claim_uid) == (begun.step, begun.claim_uid)
