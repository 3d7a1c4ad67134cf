"""Carry out a DowngradePlan that asks for the way back: replaced references return to the lists.

``_RestoreRun`` reads and writes. ``restoration`` decides which references of a claim return.

A write to a claim only adds references that the plan has on record. If the process ends between
that write and the status write, the next run finds the references listed and records them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from msgspec.structs import replace

from claimctl.downgrade import records
from claimctl.downgrade.plan_run import ATTEMPTS, CHANGED_TOO_OFTEN, PlanRun, write_list
from claimctl.downgrade.pods import PodsOfClaims, with_pods
from claimctl.downgrade.records import PlanPhase
from claimctl.downgrade.restoration import decide_restoration
from claimctl.kube.client import Client
from claimctl.kube.discovery import Discovery
from claimctl.kube.errors import Conflict, Forbidden, Invalid, NotFound, RequestTimeout
from claimctl.live_objects import UnknownKind, read_header
from claimctl.parallel import in_parallel
from claimctl.reservation.facts.references import is_pod_group
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.reservations import DowngradePlan, DowngradePlanStatus
from claimctl.wire.seams import Clock

FEW = 100
"""How many claims are written before the workloads of further claims are looked up."""


async def restore_plan(
    client: Client, plan: DowngradePlan, clock: Clock, dialect: str
) -> DowngradePlanStatus:
    """Add the replaced references of every record again, as far as they can return. Returns and
    raises what ``prepare.run_plan`` does; the phase is Restored, or PartlyRestored."""
    return await _RestoreRun(client, plan, clock, dialect).run()


async def preview(
    client: Client, plan: DowngradePlan, clock: Clock, dialect: str
) -> DowngradePlanStatus:
    """The status that ``restore_plan`` would reach, without a write."""
    return await _RestoreRun(client, plan, clock, dialect, writes=False).run()


class _RestoreRun(PlanRun):
    """One run that adds replaced references again. A preview writes nothing."""

    def __init__(
        self,
        client: Client,
        plan: DowngradePlan,
        clock: Clock,
        dialect: str,
        *,
        writes: bool = True,
    ) -> None:
        super().__init__(client, plan, clock, writes=writes)
        self._dialect = dialect
        self._existing: dict[str, bool | None] = {}
        """By the UID of a reference: whether its object exists, a PodGroup also anew; None if that
        may not be read."""
        self._renewed: dict[str, Reference] = {}
        """By the UID of a PodGroup from before an upgrade: the reference to the one of its name."""
        self._discovery = Discovery(client)

    async def run(self) -> DowngradePlanStatus:
        due = [uid for uid, record in self.records.items() if record.replaced_references]
        # so that the progress counts them
        self.records |= {uid: records.awaiting(self.records[uid]) for uid in due}
        await self.report(PlanPhase.RESTORING)
        await self._restore_all(due)
        await self.report(records.restored_phase(self.records.values()))
        return self.status

    async def _restore_all(self, due: list[str]) -> None:
        for _ in range(ATTEMPTS):
            again: set[str] = set()
            # ends the records of claims that are gone or cannot be read
            existing = await self.read(due)
            claims = [existing[uid] for uid in due if uid in existing]
            async for chunk, pods in with_pods(self.client, claims):
                work = partial(self._restore_one, pods, again)
                for start in range(0, len(chunk), FEW):
                    part = chunk[start : start + FEW]
                    # shortly before the writes: an entry for a workload that is gone would stay
                    await in_parallel(
                        self._look_for, self._wanted_references(part), self.parallelism
                    )
                    await in_parallel(work, part, self.parallelism)
            due = [uid for uid in due if uid in again]
            if not due:
                return
        for uid in due:
            self.records[uid] = records.failed(self.records[uid], "Conflict", CHANGED_TOO_OFTEN)

    def _wanted_references(self, claims: Iterable[ResourceClaim]) -> list[tuple[str, Reference]]:
        """The replaced references of the claims' records, each once, with their namespaces."""
        references = {}
        for record in (self.records[claim.metadata.uid] for claim in claims):
            for reference in record.replaced_references:
                references[reference.uid] = (record.namespace, reference)
        return list(references.values())

    async def _look_for(self, wanted: tuple[str, Reference]) -> None:
        namespace, reference = wanted
        kind = (reference.api_group, reference.resource)
        try:
            there = await read_header(
                self.client, self._discovery, *kind, reference.name, namespace
            )
        except (NotFound, UnknownKind):
            there = None
        except Forbidden:
            self._existing[reference.uid] = None
            return
        same = there is not None and there.metadata.uid == reference.uid
        if there and not same and self.plan.spec.upgrade_to and is_pod_group(reference):
            # kubelets and schedulers know a group by its name: the new one has the same pods
            self._renewed[reference.uid] = replace(reference, uid=there.metadata.uid)
            same = True
        self._existing[reference.uid] = same

    async def _restore_one(self, pods: PodsOfClaims, again: set[str], claim: ResourceClaim) -> None:
        uid = claim.metadata.uid
        record = self.records[uid]
        restoration = decide_restoration(
            claim, record, pods.of(claim), self._existing, self._dialect
        )
        if restoration is None:
            self.records[uid] = records.over(record)
            return
        try:
            if self.writes and restoration.add:
                entries = {entry.uid: entry for entry in claim.status.reserved_for}
                renewed = (
                    self._renewed.get(reference.uid, reference) for reference in restoration.add
                )
                entries |= {reference.uid: reference for reference in renewed}
                await write_list(self.client, claim, entries.values())
        except (Conflict, RequestTimeout):
            again.add(uid)
        except NotFound:
            self.records[uid] = records.over(record)
        except (Forbidden, Invalid) as error:
            self.records[uid] = records.failed(record, error.reason, str(error))
        else:
            self.records[uid] = records.restored_record(record, restoration)
        await self.report_progress()
