"""Carry out a DowngradePlan that asks for the way back: replaced references return to the lists.

A write to a claim only adds references that the plan has on record. If the process ends between
that write and the status write, the next run finds the references listed and records them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from claimctl.downgrade.claims import read_claim, write_list
from claimctl.downgrade.ledger import Ledger
from claimctl.downgrade.pods import PodsOfClaims, with_pods
from claimctl.downgrade.records import (
    Phase,
    failed,
    over,
    restored_phase,
    restored_record,
    status,
)
from claimctl.downgrade.restoration import restore
from claimctl.downgrade.scope import parallelism
from claimctl.kube.client import Client
from claimctl.kube.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    RequestTimeout,
)
from claimctl.kube.parallel import in_parallel
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.reservations import DowngradedClaim, DowngradePlan, DowngradePlanStatus
from claimctl.wire.served import ApiGroup, ApiResourceList

ATTEMPTS = 10
"""How often a claim is tried. After a conflict the claim is read again."""


async def restore_plan(client: Client, ledger: Ledger, dialect: str) -> DowngradePlanStatus:
    """Add the replaced references of every record again, as far as they can return.

    Args:
        ledger: the plan, read just before.
        dialect: the dialect of the cluster.

    Returns:
        The last stored status. Its phase is Restored, or PartlyRestored if references are left.

    Raises:
        Overtaken: another client wrote the plan; start over with its present status.
        PlanWithdrawn: the plan is gone.
        KubeError: a request failed; the plan's status records what is done.
    """
    run = _Run(client, ledger.plan, dialect, ledger)
    await run.report(Phase.RESTORING)
    await run.restore()
    await run.report(restored_phase(run.records.values()))
    return run.status


async def preview(client: Client, plan: DowngradePlan, dialect: str) -> DowngradePlanStatus:
    """The status that ``restore_plan`` would reach, without a write."""
    run = _Run(client, plan, dialect)
    await run.restore()
    return status(plan, restored_phase(run.records.values()), run.records)


class _Run:
    """One run. ``records`` has claim UIDs as keys. Without a ledger, the run writes nothing."""

    def __init__(
        self, client: Client, plan: DowngradePlan, dialect: str, ledger: Ledger | None = None
    ) -> None:
        self.records = {record.uid: record for record in plan.status.claims}
        self.status = plan.status
        self._plan = plan
        self._client = client
        self._dialect = dialect
        self._ledger = ledger
        self._parallelism = parallelism(plan.spec)
        self._existing: dict[str, bool | None] = {}
        """By the UID of a reference: whether its object exists with this UID."""
        self._prefixes: dict[tuple[str, str], str] = {}
        """By API group and resource: the path of the version that serves it."""

    async def report(self, phase: Phase) -> None:
        if self._ledger is not None:
            self.status = status(self._plan, phase, self.records)
            await self._ledger.store(self.status)

    async def restore(self) -> None:
        due = [uid for uid, record in self.records.items() if record.replaced_references]
        await in_parallel(self._look_for, self._wanted(due), self._parallelism)
        for _ in range(ATTEMPTS):
            again: set[str] = set()
            async for chunk, pods in with_pods(self._client, await self._read(due)):
                work = partial(self._restore_one, pods, again)
                await in_parallel(work, chunk, self._parallelism)
            due = [uid for uid in due if uid in again]
            if not due:
                return
        text = f"another client changed the claim {ATTEMPTS} times: run again"
        for uid in due:
            self.records[uid] = failed(self.records[uid], "Conflict", text)

    def _wanted(self, uids: Iterable[str]) -> list[tuple[str, Reference]]:
        """The replaced references of the records, each once, with their namespaces."""
        found = {}
        for record in (self.records[uid] for uid in uids):
            for each in record.replaced_references:
                found[each.uid] = (record.namespace, each)
        return list(found.values())

    async def _look_for(self, wanted: tuple[str, Reference]) -> None:
        namespace, reference = wanted
        try:
            path = await self._path(namespace, reference)
            there = await self._client.get_document(path, ObjectHeader)
            self._existing[reference.uid] = there.metadata.uid == reference.uid
        except NotFound:
            self._existing[reference.uid] = False
        except Forbidden:
            self._existing[reference.uid] = None

    async def _path(self, namespace: str, reference: Reference) -> str:
        """The path of the reference's object.

        Raises:
            NotFound: the server does not serve the resource.
        """
        kind = (reference.api_group, reference.resource)
        if kind not in self._prefixes:
            self._prefixes[kind] = await _prefix(self._client, *kind)
        return f"{self._prefixes[kind]}/namespaces/{namespace}/{kind[1]}/{reference.name}"

    async def _read(self, uids: Iterable[str]) -> list[ResourceClaim]:
        """Read the claims, as far as they still exist, in the order of the records."""
        found = {}

        async def read(uid: str) -> None:
            now = await read_claim(self._client, self.records[uid])
            if isinstance(now, DowngradedClaim):
                self.records[uid] = now
            else:
                found[uid] = now

        await in_parallel(read, uids, self._parallelism)
        return [found[uid] for uid in self.records if uid in found]

    async def _restore_one(self, pods: PodsOfClaims, again: set[str], claim: ResourceClaim) -> None:
        uid = claim.metadata.uid
        record = self.records[uid]
        found = restore(claim, record, pods.of(claim), self._existing, self._dialect)
        if found is None:
            self.records[uid] = over(record)
            return
        try:
            if self._ledger is not None and found.add:
                await write_list(self._client, claim, (*claim.status.reserved_for, *found.add))
        except (Conflict, RequestTimeout):
            again.add(uid)
        except NotFound:
            self.records[uid] = over(record)
        except (Forbidden, Invalid) as error:
            self.records[uid] = failed(record, error.reason, str(error))
        else:
            self.records[uid] = restored_record(record, found)


async def _prefix(client: Client, group: str, resource: str) -> str:
    """The path of the first version of the group that serves the resource.

    Raises:
        NotFound: no version does.
    """
    if not group:
        return "/api/v1"
    path = f"/apis/{group}"
    served = await client.get_document(path, ApiGroup)
    for each in served.versions or ():
        listed = await client.get_document(f"{path}/{each.version}", ApiResourceList)
        if any(one.name == resource for one in listed.resources or ()):
            return f"{path}/{each.version}"
    raise NotFound("GET", path, message=f"no version serves {resource}")
