"""What planning reads of the RescheduleRecord."""

from __future__ import annotations

from msgspec.structs import replace

from claimctl_reschedule.shapes.records import (
    MoveOutcome,
    RecordedAttempts,
    RecordedMove,
    RecordedTaint,
    RecordedWorkload,
    RescheduleRecordStatus,
    record_of,
)
from claimctl_reschedule_tests.support.scheduling import NOW

MOVE = RecordedMove(strategy="s", at=NOW, source="n1", predicted="n2", outcome="Landed")


def test_planning_reads_everything() -> None:
    taint = RecordedTaint(node="n1", key="k", pod_uid="p-1", since=NOW, deadline=NOW)
    status = replace(
        RescheduleRecordStatus(workloads=(RecordedWorkload(uid="r", moves=(MOVE,)),)),
        taints=(taint,),
        attempts=(RecordedAttempts(pod_uid="p-1", count=2, last=NOW),),
    )
    record = record_of(status)
    assert record.workloads["r"].moves[0].outcome == MoveOutcome.LANDED
    assert [(taint.node, taint.deadline) for taint in record.taints] == [("n1", NOW)]
    assert record.attempts["p-1"].count == 2


def test_what_another_version_wrote_is_left_out() -> None:
    status = RescheduleRecordStatus(
        workloads=(RecordedWorkload(uid="r", moves=(replace(MOVE, outcome="Exploded"),)),),
        taints=(RecordedTaint(node="n1", key="k"),),
    )
    record = record_of(status)
    assert record.workloads["r"].moves == ()
    assert record.taints == ()
