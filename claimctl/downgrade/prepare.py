"""Carry out a DowngradePlan: freeze, record, expand, verify.

The plan itself is the freeze: while the plan exists, the controller adds no workload reference in
its scope. Before a claim is written, the plan's status records the references that the write will
remove and the resourceVersion that it carries. So a run that is cut off loses nothing, and the
next run continues from the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import groupby

from claimctl.downgrade.expander import Expander
from claimctl.downgrade.expansion import Unchanged, expand
from claimctl.downgrade.ledger import Ledger
from claimctl.downgrade.records import (
    Phase,
    State,
    expanded_record,
    failed,
    final_phase,
    status,
    survey,
    uncertain_uids,
    unread,
    withdrawn,
)
from claimctl.kube.client import Client
from claimctl.kube.codec import Listing
from claimctl.kube.errors import UnreadableObject
from claimctl.reservation.reserved_for.references import is_pod_group, uids_on_record
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import (
    ClaimReservation,
    DowngradedClaim,
    DowngradePlan,
    DowngradePlanStatus,
)
from claimctl.wire.resources import CLAIMRESERVATIONS, PODS, RESOURCECLAIMS
from claimctl.wire.seams import Clock
from claimctl.wire.unreadable import Unreadable

REPORT_SECONDS = 1.0
"""Least time between two progress reports within one phase, in seconds."""

ROUNDS = 3
"""How often ``verify`` writes lists again that other clients changed back."""


async def run_plan(
    client: Client,
    ledger: Ledger,
    clock: Clock,
    *,
    settle_seconds: float = 5.0,
    tended: bool = True,
) -> DowngradePlanStatus:
    """Expand every claim in the plan's scope that a workload holds.

    Args:
        ledger: the plan, read just before.
        settle_seconds: how long a scheduler may act on the claim's old list. Lists that pods
            shared without being listed are verified after this time.
        tended: whether a controller runs and will remove the tombstones later.

    Returns:
        The last stored status. Its phase is Prepared, or Blocked if a workload still holds a claim.

    Raises:
        Overtaken: another client wrote the plan; start over with its present status.
        PlanWithdrawn: the plan is gone.
        KubeError: a LIST or a status write failed; the plan's status records what is done.
    """
    run = _Run(client, ledger, clock, tended)
    await run.report(Phase.FROZEN)
    claims = await run.begin()
    await run.report(Phase.EXPANDING)
    await run.expand(claims)
    await run.verify(claims, settle_seconds)
    await run.report(final_phase(run.records.values()))
    return run.status


async def preview(client: Client, plan: DowngradePlan) -> DowngradePlanStatus:
    """The status that ``run_plan`` would reach, from live LISTs and without a write."""
    claims, unreadable = await _claims(client, plan)
    on_record = await _on_record(client, plan, claims.values())
    uncertain = {record.uid: uncertain_uids(record) for record in plan.status.claims}
    records = {}
    for record in survey(claims.values(), plan.status.claims, on_record):
        claim = claims[record.uid]
        pods = await _pods(client, record.namespace)
        expansion = expand(
            claim,
            pods.items,
            on_record=on_record,
            again=True,
            opened_by=record.replaced_references,
            unreadable=pods.unreadable,
        )
        records[record.uid] = expanded_record(
            record, claim, expansion, uncertain.get(record.uid, ())
        )
    records |= _unread(unreadable, {record.uid: record for record in plan.status.claims})
    return status(plan, final_phase(records.values()), records)


async def _claims(
    client: Client, plan: DowngradePlan
) -> tuple[dict[str, ResourceClaim], list[Unreadable]]:
    """Read the claims in the plan's scope: by UID, and those that cannot be read.

    Raises:
        UnreadableObject: a claim cannot be read, and its name or UID is not known either.
    """
    found, unreadable = {}, []
    for namespace in plan.spec.namespaces or ("",):
        listed = await client.list(RESOURCECLAIMS, namespace, partial=True)
        for each in listed.unreadable:
            if not each.identified:
                raise UnreadableObject("GET", RESOURCECLAIMS.path(namespace), each)
            unreadable.append(each)
        for claim in listed.items:
            found[claim.metadata.uid] = claim
    return found, unreadable


def _unread(
    unreadable: Iterable[Unreadable], known: Mapping[str, DowngradedClaim]
) -> dict[str, DowngradedClaim]:
    """A failed record for each claim that cannot be read: a workload may hold it."""
    return {
        each.uid: unread(
            known.get(each.uid)
            or DowngradedClaim(namespace=each.namespace, name=each.name, uid=each.uid),
            each,
        )
        for each in unreadable
    }


async def _pods(client: Client, namespace: str) -> Listing[Pod]:
    return await client.list(PODS, namespace, partial=True)


async def _on_record(
    client: Client, plan: DowngradePlan, claims: Iterable[ResourceClaim]
) -> frozenset[str]:
    """UIDs of the references that the statuses of reservations record for these claims.

    A cluster that does not serve ClaimReservations gives none, nor does a reservation that cannot
    be read. Their references then count as another writer's, and stay.
    """
    reservations: list[ClaimReservation] = []
    for namespace in plan.spec.namespaces or ("",):
        reservations += (await client.list_if_served(CLAIMRESERVATIONS, namespace)).items
    return frozenset(uid for claim in claims for uid in uids_on_record(claim, reservations))


class _Run:
    """One run of a plan. ``records`` has claim UIDs as keys, sorted by namespace and name."""

    def __init__(self, client: Client, ledger: Ledger, clock: Clock, tended: bool) -> None:
        self._plan = ledger.plan
        self.records = {record.uid: record for record in self._plan.status.claims}
        self.status = self._plan.status
        self._client = client
        self._ledger = ledger
        self._clock = clock
        self._expander = Expander(client, self._announce, tended=tended)
        self._uncertain = {uid: uncertain_uids(record) for uid, record in self.records.items()}
        self._reported = 0.0

    async def report(self, phase: Phase) -> None:
        self.status = status(self._plan, phase, self.records)
        self._reported = self._clock.monotonic()
        await self._ledger.store(self.status)

    async def _report_progress(self) -> None:
        if self._clock.monotonic() - self._reported >= REPORT_SECONDS:
            await self.report(Phase.EXPANDING)

    async def _announce(self, record: DowngradedClaim) -> None:
        self.records[record.uid] = record
        await self.report(Phase.EXPANDING)

    async def begin(self) -> dict[str, ResourceClaim]:
        claims, unreadable = await _claims(self._client, self._plan)
        on_record = await _on_record(self._client, self._plan, claims.values())
        self._expander = replace(self._expander, on_record=on_record)
        records = survey(claims.values(), self._plan.status.claims, on_record)
        self.records = {record.uid: record for record in records}
        self.records |= _unread(
            unreadable, {record.uid: record for record in self._plan.status.claims}
        )
        return claims

    async def expand(self, claims: Mapping[str, ResourceClaim]) -> None:
        """Expand the claims, which were read before. They share one LIST of pods a namespace."""
        open_ = [record for record in self.records.values() if record.uid in claims]
        for namespace, records in groupby(open_, key=lambda record: record.namespace):
            pods = await _pods(self._client, namespace)
            for record in records:
                await self._expand_one(record, claims[record.uid], pods)

    async def _expand_one(
        self, record: DowngradedClaim, claim: ResourceClaim, pods: Listing[Pod]
    ) -> None:
        uncertain = self._uncertain.get(record.uid, frozenset())
        self.records[record.uid] = await self._expander.expand(record, claim, pods, uncertain)
        await self._report_progress()

    async def verify(self, before: Mapping[str, ResourceClaim], settle_seconds: float) -> None:
        """Read the written claims again, and write those again that have changed since.

        While a claim was shared, schedulers bound its pods without listing them. A scheduler may
        do so until it sees the new list, so ``settle_seconds`` pass first. Where the scheduler
        lists every pod itself, there is nothing to wait for.
        """
        if any(_was_shared(before[uid], self.records[uid]) for uid in self._expanded()):
            await self._clock.sleep(settle_seconds)
        for _ in range(ROUNDS):
            wrong = await self._not_as_written(or_bound_later=True)
            if not wrong:
                return
            await self.expand(wrong)
        for uid, claim in (await self._not_as_written()).items():
            self.records[uid] = _put_back(withdrawn(self.records[uid], claim, ()))

    def _expanded(self) -> list[str]:
        return [uid for uid, record in self.records.items() if record.state == State.EXPANDED]

    async def _not_as_written(self, *, or_bound_later: bool = False) -> dict[str, ResourceClaim]:
        """The expanded claims that a workload holds again, or whose list lacks a bound pod.

        Args:
            or_bound_later: also the claims whose list lacks a pending pod that a scheduler may
                still be binding, because it saw the list before it was written.
        """
        claims, unreadable = await _claims(self._client, self._plan)
        recorded = (each for each in unreadable if each.uid in self.records)
        self.records |= _unread(recorded, self.records)
        pods: dict[str, Listing[Pod]] = {}
        wrong = {}
        for uid in self._expanded():
            record = self.records[uid]
            if uid not in claims:
                continue
            if record.namespace not in pods:
                pods[record.namespace] = await _pods(self._client, record.namespace)
            opened_by = record.replaced_references if or_bound_later else ()
            if _wants_writing(claims[uid], pods[record.namespace], opened_by):
                wrong[uid] = claims[uid]
        return wrong


def _was_shared(claim: ResourceClaim, record: DowngradedClaim) -> bool:
    """Whether pods could use the claim without being listed."""
    allocation = claim.status.allocation
    any_pod = allocation is not None and allocation.reserved_for_any_pod
    return any_pod or any(map(is_pod_group, record.replaced_references))


def _wants_writing(
    claim: ResourceClaim, pods: Listing[Pod], opened_by: Iterable[Reference]
) -> bool:
    expansion = expand(
        claim, pods.items, again=True, opened_by=opened_by, unreadable=pods.unreadable
    )
    return not isinstance(expansion, Unchanged)


def _put_back(record: DowngradedClaim) -> DowngradedClaim:
    return failed(
        record,
        "PutBack",
        "a workload reference comes back or pods come unlisted: switch the feature off in the "
        "scheduler and the controller manager, then run again",
    )
