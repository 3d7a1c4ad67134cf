"""The RescheduleRecord in the cluster: read, created, and changed under its resourceVersion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec.structs import replace

from claimctl.kube.client import Client
from claimctl.kube.errors import AlreadyExists, NotFound
from claimctl.live_objects import Changed, change_object
from claimctl.wire.base import merge_diff
from claimctl.wire.fitted import fitted, status_body
from claimctl_reschedule.shapes.records import (
    MAX_MOVES,
    MAX_WORKLOADS,
    RESCHEDULERECORDS,
    RecordedMove,
    RecordedWorkload,
    RescheduleRecord,
    RescheduleRecordStatus,
)

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
        return await self.client.find(RESCHEDULERECORDS, self.name)

    async def all(self) -> tuple[RescheduleRecord, ...]:
        """The records of all names; none if their kind is not served. Raises UnreadableObject: a
        record cannot be read, so nobody knows which taints it has."""
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
        """
        wanted = RescheduleRecordStatus()

        def patch(record: RescheduleRecord) -> dict[str, Any]:
            nonlocal wanted
            wanted = fitted(change(record.status))
            fields = merge_diff(status_body(record.status), status_body(wanted))
            return {"status": fields} if fields else {}

        await self._write(patch)
        return wanted

    async def check_writable(self) -> None:
        """Write nothing, in order to learn that the record can be written. Raises NoRecord if its
        kind is not served, and Forbidden if a right is missing."""
        await self._write(lambda _: {"status": {}})

    async def _write(self, patch: Callable[[RescheduleRecord], dict[str, Any]]) -> None:
        what = self.client, RESCHEDULERECORDS, self.name, patch
        write = partial(change_object, *what, subresource="status")
        if await write() is not Changed.GONE:
            return
        try:
            await self.client.create(RESCHEDULERECORDS, {"metadata": {"name": self.name}})
        except AlreadyExists:
            pass
        except NotFound as error:
            text = "this cluster has no RescheduleRecords: 'claimctl install' installs the CRDs"
            raise NoRecord(text) from error
        await write()


def with_move(
    status: RescheduleRecordStatus, workload: RecordedWorkload, move: RecordedMove
) -> RescheduleRecordStatus:
    """The status with one more move of a workload, whose own ``moves`` are not used."""
    known = {workload.uid: workload for workload in status.workloads}
    before = known.get(workload.uid)
    moves = before.moves if before is not None and before.revision == workload.revision else ()
    kept = (past for past in moves if (past.at, past.source) != (move.at, move.source))
    newest = (*kept, move)[-MAX_MOVES:]
    known[workload.uid] = replace(workload, moves=newest)
    ordered = sorted(known.values(), key=lambda workload: (_latest(workload), workload.uid))
    return replace(status, workloads=tuple(ordered[-MAX_WORKLOADS:]))


def _latest(workload: RecordedWorkload) -> float:
    times = [move.at.timestamp() for move in workload.moves if move.at is not None]
    return max(times, default=0.0)
