"""What became of earlier moves, from the pods that are there now. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from claimctl.reschedule.plan.record import MoveOutcome
from claimctl.reschedule.shapes.records import (
    RecordedMove,
    RecordedWorkload,
    RescheduleRecordStatus,
)
from claimctl.wire.pods import Pod

LANDING = timedelta(seconds=60)
"""A replacement without a node counts as pending after this time."""
SKEW = timedelta(seconds=2)
"""How far the clocks of claimctl and of the API server, which counts in seconds, may differ."""


def settled(
    status: RescheduleRecordStatus, pods: Iterable[Pod], now: datetime
) -> RescheduleRecordStatus:
    """The status with the outcomes of the moves that were under way or pending."""
    by_owner: dict[str, list[Pod]] = {}
    for pod in pods:
        owner = pod.metadata.controller()
        if owner is not None and not pod.metadata.deleting:
            by_owner.setdefault(owner.uid, []).append(pod)
    workloads = tuple(
        replace(workload, moves=_judged(workload, by_owner.get(workload.uid, []), now))
        for workload in status.workloads
    )
    return replace(status, workloads=workloads)


def _judged(
    workload: RecordedWorkload, pods: Sequence[Pod], now: datetime
) -> tuple[RecordedMove, ...]:
    """Each open move gets one replacement at most: the oldest pod that came after the eviction."""
    left = sorted(pods, key=lambda pod: (_born(pod), pod.metadata.name))
    judged: list[RecordedMove] = []
    for move in workload.moves:
        if move.outcome not in (MoveOutcome.UNDER_WAY, MoveOutcome.PENDING) or move.at is None:
            judged.append(move)
            continue
        since = move.at - SKEW
        replacement = next((pod for pod in left if _born(pod) >= since), None)
        if replacement is not None:
            left.remove(replacement)
        judged.append(_outcome(move, replacement, now - move.at))
    return tuple(judged)


def _outcome(move: RecordedMove, replacement: Pod | None, age: timedelta) -> RecordedMove:
    if replacement is None:
        return replace(move, outcome=MoveOutcome.GONE) if age > LANDING else move
    node = replacement.spec.node_name
    if node:
        # without a prediction, the pod only had to make room: it may come back
        back = bool(move.predicted) and node == move.source
        outcome = MoveOutcome.BOUNCED if back else MoveOutcome.LANDED
        return replace(move, outcome=outcome, landed=node)
    return replace(move, outcome=MoveOutcome.PENDING) if age > LANDING else move


_EPOCH = datetime.fromtimestamp(0).astimezone()


def _born(pod: Pod) -> datetime:
    return pod.metadata.creation_timestamp or _EPOCH
