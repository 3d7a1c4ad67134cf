"""What is remembered of earlier runs, so that runs do not move the same pods for ever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from msgspec.structs import replace

from claimctl.reschedule.shapes.records import (
    RecordedAttempts,
    RecordedAvoidance,
    RecordedResize,
    RecordedTaint,
    RecordedWorkload,
    RescheduleRecordStatus,
)


class MoveOutcome(StrEnum):
    """What became of a move."""

    UNDER_WAY = "UnderWay"
    LANDED = "Landed"
    """The replacement runs on another node than the evicted pod."""
    BOUNCED = "Bounced"
    """The replacement runs on the node that the pod should leave."""
    PENDING = "Pending"
    """The replacement has no node."""
    GONE = "Gone"
    """The owner made no replacement."""


@dataclass(frozen=True, slots=True)
class Record:
    """The status of a RescheduleRecord by UIDs: of controller owners, of critical pods, and of pods
    that are resized. Each entry has its times."""

    workloads: Mapping[str, RecordedWorkload] = field(default_factory=dict)
    taints: tuple[RecordedTaint, ...] = ()
    attempts: Mapping[str, RecordedAttempts] = field(default_factory=dict)
    rounds: Mapping[str, RecordedResize] = field(default_factory=dict)
    avoidances: tuple[RecordedAvoidance, ...] = ()


def record_of(status: RescheduleRecordStatus) -> Record:
    """The record as planning reads it, without what another version wrote."""
    return Record(
        workloads={workload.uid: _readable(workload) for workload in status.workloads},
        taints=tuple(taint for taint in status.taints if taint.since and taint.deadline),
        attempts={attempt.pod_uid: attempt for attempt in status.attempts},
        rounds={resize.pod_uid: resize for resize in status.resizes if resize.since},
        avoidances=status.avoidances,
    )


def _readable(workload: RecordedWorkload) -> RecordedWorkload:
    known = list(MoveOutcome)
    moves = tuple(move for move in workload.moves if move.at and move.outcome in known)
    return replace(workload, moves=moves)
