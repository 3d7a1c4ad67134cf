"""What ``prepare`` and ``restore`` share: a run keeps the records of a plan, stores them in the
plan's status, and reads claims again.

Each step is recorded in the plan's status before it is done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress

from claimctl.downgrade.expansion import claims_under
from claimctl.downgrade.records import PlanPhase, RecordState, over, status, unread
from claimctl.downgrade.scope import PARALLELISM
from claimctl.kube.claim_lists import change_list
from claimctl.kube.client import Client
from claimctl.kube.errors import UnreadableObject
from claimctl.parallel import in_parallel
from claimctl.wire.base import merge_diff
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.fitted import fitted, status_body
from claimctl.wire.reservations import DowngradedClaim, DowngradePlan, DowngradePlanStatus
from claimctl.wire.resources import DOWNGRADEPLANS, RESOURCECLAIMS
from claimctl.wire.seams import Clock

ATTEMPTS = 10
"""How often a claim is tried. After a conflict the claim is read again."""

REPORT_SECONDS = 1.0
"""Least time between two progress reports within one phase, in seconds."""

CHANGED_TOO_OFTEN = f"another client changed the claim {ATTEMPTS} times: run again"


class PlanRun:
    """One run over a plan, with its records by claim UID, sorted by namespace and name.

    Args:
        writes: whether the records are stored in the plan; a preview stores nothing.
    """

    def __init__(
        self, client: Client, plan: DowngradePlan, clock: Clock, *, writes: bool = True
    ) -> None:
        self.plan = plan
        self.writes = writes
        self.client = client
        self.records = {record.uid: record for record in plan.status.claims}
        self.status = plan.status
        self.parallelism = plan.spec.parallelism or PARALLELISM
        self._clock = clock
        self._phase = PlanPhase.FROZEN
        self._reported = 0.0
        self._storing = asyncio.Lock()

    async def report(self, phase: PlanPhase) -> None:
        """Store the present records; records that wait for this are stored with one write."""
        async with self._storing:
            self._phase, self._reported = phase, self._clock.monotonic()
            self.status = status(self.plan, phase, self.records)
            if self.writes:
                self.plan = await store(self.client, self.plan, self.status)

    async def report_progress(self) -> None:
        """Report in the present phase, unless the last report is too recent."""
        now = self._clock.monotonic()
        if now - self._reported >= REPORT_SECONDS:
            self._reported = now
            await self.report(self._phase)

    async def read(self, uids: Iterable[str]) -> dict[str, ResourceClaim]:
        """Read the claims of these records, as far as they still exist. The records of others say
        that their claims are over or cannot be read."""
        claims, resource = {}, claims_under(self.plan.spec)

        async def read(uid: str) -> None:
            record = self.records[uid]
            try:
                claim = await self.client.find(resource, record.name, record.namespace)
            except UnreadableObject as error:
                self.records[uid] = unread(record, error.unreadable)
                return
            if claim is None or claim.metadata.uid != uid:
                self.records[uid] = over(record)
            else:
                claims[uid] = claim

        await in_parallel(read, uids, self.parallelism)
        return claims


async def store(client: Client, plan: DowngradePlan, status: DowngradePlanStatus) -> DowngradePlan:
    """Write the status, unless the plan has it already; the plan as it is now.

    Raises:
        Conflict: another client wrote the plan since it was read.
        NotFound: the plan is gone.
        KubeError: the request failed; it may be unknown whether the status was written.
    """
    wanted = fitted(status)
    if wanted == plan.status:
        return plan
    patch = {"status": merge_diff(status_body(plan.status), status_body(wanted))}
    return await client.merge_patch(DOWNGRADEPLANS, plan.metadata, patch, subresource="status")


def unskipped(
    records: Mapping[str, DowngradedClaim], claims: Mapping[str, ResourceClaim]
) -> list[ResourceClaim]:
    """The claims that have records, in the order of the records, less the skipped ones."""
    return [
        claims[uid]
        for uid, record in records.items()
        if uid in claims and record.state != RecordState.SKIPPED
    ]


async def write_list(client: Client, claim: ResourceClaim, entries: Iterable[Reference]) -> None:
    """Write the list; Conflict if the claim has changed, RequestTimeout if the outcome is unknown.
    If the answer cannot be read, the write has succeeded nevertheless."""
    with suppress(UnreadableObject):
        await change_list(client, RESOURCECLAIMS, claim, entries)
