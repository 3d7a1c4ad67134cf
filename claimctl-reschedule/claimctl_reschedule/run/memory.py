"""What the record says of moves: what a run did, written every few seconds, and what became of the
moves of earlier runs, judged by the pods that are there now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from msgspec.structs import replace

from claimctl.wire.pods import Pod
from claimctl.wire.seams import Clock
from claimctl_reschedule.plan.facts import created_at
from claimctl_reschedule.plan.ledger import REVISION
from claimctl_reschedule.run.records import NoRecord, Records, with_move
from claimctl_reschedule.run.steps import MoveStep, RunReport
from claimctl_reschedule.shapes.records import (
    MoveOutcome,
    RecordedMove,
    RecordedRun,
    RecordedWorkload,
    RescheduleRecordStatus,
)

EVERY_SECONDS = 10.0


@dataclass(slots=True)
class MoveMemory:
    """The moves of one run."""

    records: Records
    clock: Clock
    report: RunReport
    _at: dict[str, datetime] = field(default_factory=dict)
    """When each pod was evicted, by its UID."""
    _written: dict[str, MoveOutcome] = field(default_factory=dict)
    """The outcome that the record has of each of these pods."""
    _kept: float | None = None
    _missing: bool = False

    def evicted(self, step: MoveStep) -> None:
        self._at[step.uid] = self.clock.now()

    async def begin(self) -> None:
        """Make sure, before the first eviction, that the moves can be remembered. Otherwise each
        further run would evict the same pods again."""
        try:
            await self.records.check_writable()
        except NoRecord as error:
            self._forget(error)

    def _forget(self, error: NoRecord) -> None:
        self._missing = True
        self.report.notes.append(f"this run is not remembered: {error}")

    async def keep(self, *, last: bool = False) -> None:
        """Write the record if it is time, or if this is the end of the run."""
        now = self.clock.monotonic()
        due = last or self._kept is None or now >= self._kept + EVERY_SECONDS
        if self._missing or not self._at or not due:
            return
        self._kept = now
        evicted = [step for step in self.report.steps if step.uid in self._at]
        outcomes = {step.uid: step.outcome or MoveOutcome.UNDER_WAY for step in evicted}
        news = [step for step in evicted if self._written.get(step.uid) != outcomes[step.uid]]
        try:
            await self.records.change(lambda status: self._changed(status, news, last=last))
        except NoRecord as error:
            self._forget(error)
        self._written |= outcomes

    def _changed(
        self, status: RescheduleRecordStatus, news: Sequence[MoveStep], *, last: bool
    ) -> RescheduleRecordStatus:
        for step in news:
            move, owner = step.move, step.move.owner
            if owner is None:
                continue
            workload = RecordedWorkload(
                uid=owner.uid,
                kind=owner.kind,
                namespace=move.pod.namespace,
                name=owner.name,
                revision=dict(move.facts.labels).get(REVISION, ""),
            )
            made = RecordedMove(
                strategy=move.strategy,
                at=self._at[move.pod.uid],
                source=move.pod.node,
                predicted=move.destination,
                landed=step.landed,
                outcome=step.outcome or MoveOutcome.UNDER_WAY,
            )
            status = with_move(status, workload, made)
        if not last:
            return status
        run = RecordedRun(
            ended=max(self._at.values()),
            digest=self.report.plan.digest,
            planned=len(self.report.steps),
            evicted=self.report.evicted,
        )
        return replace(status, last_run=run)


LANDING = timedelta(seconds=60)
"""A replacement without a node counts as pending after this time."""
SKEW = timedelta(seconds=2)
"""How far the clocks of claimctl and of the API server, which counts in seconds, may differ."""


def settle(
    status: RescheduleRecordStatus, pods: Iterable[Pod], now: datetime
) -> RescheduleRecordStatus:
    """The status with the outcomes of the moves that were under way or pending."""
    by_owner: dict[str, list[Pod]] = {}
    for pod in pods:
        owner = pod.metadata.controller()
        if owner is not None and not pod.metadata.deleting:
            by_owner.setdefault(owner.uid, []).append(pod)
    workloads = tuple(
        replace(workload, moves=_judge(workload, by_owner.get(workload.uid, []), now))
        for workload in status.workloads
    )
    return replace(status, workloads=workloads)


def _judge(
    workload: RecordedWorkload, pods: Sequence[Pod], now: datetime
) -> tuple[RecordedMove, ...]:
    """Each open move gets one replacement at most: the oldest pod that came after the eviction."""
    left = sorted(pods, key=lambda pod: (created_at(pod), pod.metadata.name))
    judged: list[RecordedMove] = []
    for move in workload.moves:
        if move.outcome not in (MoveOutcome.UNDER_WAY, MoveOutcome.PENDING) or move.at is None:
            judged.append(move)
            continue
        since = (move.at - SKEW).timestamp()
        replacement = next((pod for pod in left if created_at(pod) >= since), None)
        if replacement is not None:
            left.remove(replacement)
        judged.append(_outcome(move, replacement, now - move.at))
    return tuple(judged)


def _outcome(move: RecordedMove, replacement: Pod | None, age: timedelta) -> RecordedMove:
    if replacement is not None and (node := replacement.spec.node_name):
        return replace(move, outcome=outcome_on(node, move.source, move.predicted), landed=node)
    late = MoveOutcome.GONE if replacement is None else MoveOutcome.PENDING
    return replace(move, outcome=late) if age > LANDING else move


def outcome_on(node: str, source: str, predicted: str) -> MoveOutcome:
    """The outcome of a move whose replacement is on a node. Without a prediction, the pod only had
    to make room: it may come back."""
    back = node == source and predicted not in ("", node)
    return MoveOutcome.BOUNCED if back else MoveOutcome.LANDED
