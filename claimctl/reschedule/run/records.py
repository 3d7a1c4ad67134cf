"""The RescheduleRecord in the cluster: read, created, and changed under its resourceVersion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec.structs import replace

from claimctl.kube.client import Changed, Client
from claimctl.kube.errors import AlreadyExists, NotFound
from claimctl.reschedule.plan.record import (
    Attempts,
    MoveOutcome,
    PastMove,
    Record,
    TaintEntry,
    WorkloadMemory,
)
from claimctl.reschedule.run.rounds import round_of
from claimctl.reschedule.shapes.records import (
    MAX_MOVES,
    MAX_WORKLOADS,
    RESCHEDULERECORDS,
    RecordedMove,
    RecordedTaint,
    RecordedWorkload,
    RescheduleRecord,
    RescheduleRecordStatus,
)
from claimctl.wire.base import merge_diff, to_plain

DEFAULT_NAME = "claimctl"

Change = Callable[[RescheduleRecordStatus], RescheduleRecordStatus]


class NoRecord(Exception):
    """The cluster does not serve RescheduleRecords: claimctl's CRDs are not installed."""


@dataclass(frozen=True, slots=True)
class Records:
    """The record of one name. Several processes may change it: each write carries its version."""

    client: Client
    name: str = DEFAULT_NAME

    async def read(self) -> RescheduleRecord | None:
        """The record, or None if there is none yet or its kind is not served."""
        try:
            return await self.client.get(RESCHEDULERECORDS, self.name)
        except NotFound:
            return None

    async def all(self) -> tuple[RescheduleRecord, ...]:
        """The records of all names; none if their kind is not served.

        Raises:
            UnreadableObject: a record cannot be read, so nobody knows which taints it has.
            KubeError: the request failed.
        """
        try:
            return (await self.client.list(RESCHEDULERECORDS)).items
        except NotFound:
            return ()

    async def change(self, change: Change) -> RescheduleRecordStatus:
        """Apply ``change`` to the status as it is on the server. Without a change, nothing is
        written.

        ``change`` may be called several times, and must give the same result for its own result: a
        write without an answer may have been applied.

        Raises:
            NoRecord: the kind is not served.
            Conflict: other processes wrote again and again.
            KubeError: a request failed.
        """
        wanted = RescheduleRecordStatus()

        def patch(record: RescheduleRecord) -> dict[str, Any]:
            nonlocal wanted
            wanted = change(record.status)
            fields = merge_diff(to_plain(record.status), to_plain(wanted))
            return {"status": fields} if fields else {}

        await self._write(patch)
        return wanted

    async def check_writable(self) -> None:
        """Write nothing, in order to learn that the record can be written.

        Raises:
            NoRecord: the kind is not served.
            Forbidden: the right to create the record or to write its status is missing.
            KubeError: a request failed.
        """
        await self._write(lambda _: {"status": {}})

    async def _write(self, patch: Callable[[RescheduleRecord], dict[str, Any]]) -> None:
        write = partial(
            self.client.change, RESCHEDULERECORDS, self.name, patch, subresource="status"
        )
        if await write() is Changed.GONE:
            await self._create()
            await write()

    async def _create(self) -> None:
        try:
            await self.client.create(RESCHEDULERECORDS, {"metadata": {"name": self.name}})
        except AlreadyExists:
            pass
        except NotFound as error:
            raise NoRecord(
                "this cluster has no RescheduleRecords: 'claimctl install' installs the CRDs"
            ) from error


def remembered(status: RescheduleRecordStatus) -> Record:
    """The record as planning reads it."""
    return Record(
        workloads={workload.uid: _memory(workload) for workload in status.workloads},
        taints=tuple(entry for taint in status.taints if (entry := _entry(taint)) is not None),
        attempts={
            attempt.pod_uid: Attempts(attempt.count, attempt.last) for attempt in status.attempts
        },
        rounds={
            resize.pod_uid: round_
            for resize in status.resizes
            if (round_ := round_of(resize)) is not None
        },
        avoidances=status.avoidances,
    )


def _memory(given: RecordedWorkload) -> WorkloadMemory:
    return WorkloadMemory(
        kind=given.kind,
        namespace=given.namespace,
        name=given.name,
        revision=given.revision,
        moves=tuple(past for move in given.moves if (past := _past(move)) is not None),
    )


def _past(given: RecordedMove) -> PastMove | None:
    if given.at is None or given.outcome not in list(MoveOutcome):
        return None
    return PastMove(
        strategy=given.strategy,
        at=given.at,
        source=given.source,
        predicted=given.predicted,
        landed=given.landed,
        outcome=MoveOutcome(given.outcome),
    )


def _entry(given: RecordedTaint) -> TaintEntry | None:
    if given.since is None or given.deadline is None:
        return None
    return TaintEntry(
        node=given.node,
        node_uid=given.node_uid,
        key=given.key,
        value=given.value,
        pod_namespace=given.pod_namespace,
        pod_name=given.pod_name,
        pod_uid=given.pod_uid,
        since=given.since,
        deadline=given.deadline,
    )


def with_move(
    status: RescheduleRecordStatus, workload: RecordedWorkload, move: RecordedMove
) -> RescheduleRecordStatus:
    """The status with one more move of a workload, whose own ``moves`` are not used."""
    known = {workload.uid: workload for workload in status.workloads}
    before = known.get(workload.uid)
    moves = before.moves if before is not None and before.revision == workload.revision else ()
    same = (move.at, move.source)
    kept = tuple(move for move in moves if (move.at, move.source) != same)
    newest = (*kept, move)[-MAX_MOVES:]
    known[workload.uid] = RecordedWorkload(
        uid=workload.uid,
        kind=workload.kind,
        namespace=workload.namespace,
        name=workload.name,
        revision=workload.revision,
        moves=newest,
    )
    ordered = sorted(known.values(), key=lambda each: (_latest(each), each.uid))
    return replace(status, workloads=tuple(ordered[-MAX_WORKLOADS:]))


def _latest(workload: RecordedWorkload) -> float:
    times = [move.at.timestamp() for move in workload.moves if move.at is not None]
    return max(times, default=0.0)
