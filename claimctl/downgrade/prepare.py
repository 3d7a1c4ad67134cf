"""Carry out a DowngradePlan: replace the workload references of claims by pod references.

``run_plan`` is one run. Its steps, as methods of ``_Preparation``:

1. The plan itself is the freeze: while the plan exists, the controller adds no workload reference
   to the claims in its scope.
2. ``begin`` reads these claims, and makes a record of each in the plan's status.
3. Only before an upgrade, ``leave_groups`` lists the pods beside their PodGroups and deletes the
   groups (``Departure``): a scheduler that may bind a pod has the group listed. If a list lacks
   pods then, the run ends here.
4. ``expand`` replaces the references (``Expander``, claim by claim). It waits while schedulers may
   be binding pods whose entries have left.
5. ``verify`` reads the claims again, and expands those that have changed since.

Before a claim is written, the plan's status records the references that the write will remove and
the resourceVersion that it carries. So a run that is cut off loses nothing, and the next run
continues from the records.

Claims are read first and their pods are listed afterwards, so a pod that is missing from the LIST
was gone at the claim's version. Many claims share one LIST. A claim whose list seems to lack a pod
is read again: the scheduler may have listed the pod between the two.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial

import msgspec

from claimctl.downgrade import records
from claimctl.downgrade.departure import Departure
from claimctl.downgrade.expander import Attempt, Expander
from claimctl.downgrade.expansion import Unchanged, claims_under, expand_recorded, uids_on_record
from claimctl.downgrade.plan_run import ATTEMPTS, CHANGED_TOO_OFTEN, PlanRun, store, unskipped
from claimctl.downgrade.pods import PodsOfClaims, with_pods
from claimctl.downgrade.records import PlanPhase, RecordState
from claimctl.downgrade.scope import is_skipped
from claimctl.kube.client import Client
from claimctl.kube.errors import UnreadableObject
from claimctl.label_selectors import parse, selects
from claimctl.live_objects import list_if_served
from claimctl.parallel import in_parallel
from claimctl.reservation.facts.references import is_pod, is_pod_group
from claimctl.reservation.facts.snapshot import Rules
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.reservations import (
    ClaimReservation,
    DowngradedClaim,
    DowngradePlan,
    DowngradePlanStatus,
)
from claimctl.wire.resources import CLAIMRESERVATIONS, RESOURCECLAIMS
from claimctl.wire.seams import Clock
from claimctl.wire.unreadable import Unreadable

ROUNDS = 3
"""How often ``verify`` writes lists again that other clients changed back."""
SIGN_SECONDS = 5.0
"""Time between two writes of a run that waits."""
_RULES = Rules()


async def run_plan(
    client: Client,
    plan: DowngradePlan,
    clock: Clock,
    *,
    rules: Rules = _RULES,
    tombstones: bool = True,
) -> DowngradePlanStatus:
    """Expand every claim in the plan's scope that a workload holds.

    Args:
        plan: the plan, read just before.
        rules: for how long a scheduler may act on a claim's old list. Lists that pods shared
            without being listed are verified after the settle time. The binding times are for pods
            that were listed ahead.
        tombstones: whether a controller stays that will remove the tombstones later.

    Returns:
        The last stored status. Its phase is Prepared, Blocked if a workload still holds a claim,
        or Failed if the plan's label selector is wrong.

    Raises:
        Conflict: another client wrote the plan; start over with its present status.
        NotFound: the plan is gone.
    """
    try:
        parse(plan.spec.claim_selector)
    except ValueError as error:
        refusal = records.refused(plan, str(error), clock.now())
        await store(client, plan, refusal)
        return refusal
    run = _Preparation(client, plan, clock, rules, tombstones=tombstones)
    await run.report(PlanPhase.FROZEN)
    claims = await run.begin()
    if plan.spec.upgrade_to:
        claims = await run.leave_groups(claims)
    if not plan.spec.upgrade_to or run.is_through():
        await run.expand(claims)
        await run.verify(rules.settle_seconds)
    await run.report(records.final_phase(run.records.values()))
    return run.status


async def preview(client: Client, plan: DowngradePlan) -> DowngradePlanStatus:
    """The status that ``run_plan`` would reach, from live LISTs and without a write."""
    claims, on_record, made = await _survey(client, plan)
    uncertain = _uncertain(plan.status.claims)
    async for chunk, pods in with_pods(client, unskipped(made, claims)):
        for claim in chunk:
            uid, record = claim.metadata.uid, made[claim.metadata.uid]
            expansion = expand_recorded(claim, pods, record, on_record=on_record)
            made[uid] = records.expanded_record(record, claim, expansion, uncertain.get(uid, ()))
    return records.status(plan, records.final_phase(made.values()), made)


async def _survey(
    client: Client, plan: DowngradePlan
) -> tuple[dict[str, ResourceClaim], frozenset[str], dict[str, DowngradedClaim]]:
    """The claims in the plan's scope, the UIDs of the references that the statuses of reservations
    record for them, and the records to begin with; claims and records by UID.

    A cluster that does not serve ClaimReservations records none, nor does a reservation that cannot
    be read. Their references then count as another writer's, and stay.
    """
    claims, unreadable = await _claims(client, plan)
    reservations: list[ClaimReservation] = []
    for namespace in plan.spec.namespaces or ("",):
        reservations += (await list_if_served(client, CLAIMRESERVATIONS, namespace)).items
    on_record = frozenset(
        uid for claim in claims.values() for uid in uids_on_record(claim, reservations)
    )
    names = {uid: (claim.metadata.namespace, claim.metadata.name) for uid, claim in claims.items()}
    skipped = {uid for uid, name in names.items() if is_skipped(plan.spec, *name)}
    made = records.survey(claims.values(), plan.status.claims, on_record, skipped)
    lost = _unread(unreadable, plan.status.claims)
    return claims, on_record, {record.uid: record for record in made} | lost


async def _claims(
    client: Client, plan: DowngradePlan
) -> tuple[dict[str, ResourceClaim], list[Unreadable]]:
    """Read the claims in the plan's scope: by UID, and those that cannot be read.

    A claim that the plan has on record stays in its scope, whatever its labels are now.

    Raises:
        UnreadableObject: a claim cannot be read, and its name or UID is not known either.
    """
    selector = parse(plan.spec.claim_selector)
    recorded = {record.uid for record in plan.status.claims}

    def in_scope(claim: ResourceClaim) -> ResourceClaim | None:
        meta = claim.metadata
        return claim if meta.uid in recorded or selects(selector, meta.labels or {}) else None

    claims: dict[str, ResourceClaim] = {}
    unreadable: list[Unreadable] = []
    for namespace in plan.spec.namespaces or ("",):
        listing = await client.collect(claims_under(plan.spec), in_scope, namespace)
        for problem in listing.unreadable:
            if not problem.identified:
                raise UnreadableObject("GET", RESOURCECLAIMS.path(namespace), problem)
        claims |= {claim.metadata.uid: claim for claim in listing.items}
        unreadable += listing.unreadable
    return claims, unreadable


def _unread(
    unreadable: Iterable[Unreadable], recorded: Iterable[DowngradedClaim]
) -> dict[str, DowngradedClaim]:
    """A failed record for each claim that cannot be read: a workload may hold it."""
    known = {record.uid: record for record in recorded}
    return {
        problem.uid: records.unread(
            known.get(problem.uid)
            or DowngradedClaim(namespace=problem.namespace, name=problem.name, uid=problem.uid),
            problem,
        )
        for problem in unreadable
    }


def _uncertain(recorded: Iterable[DowngradedClaim]) -> dict[str, Collection[str]]:
    """By claim UID: the references that a write may have removed whose outcome is unknown."""
    return {record.uid: records.uncertain_uids(record) for record in recorded}


_PUT_BACK = (
    "a workload reference comes back or pods come unlisted: switch the feature off in the "
    "scheduler and the controller manager, then run again"
)


class _Preparation(PlanRun):
    """One run that replaces workload references."""

    def __init__(
        self, client: Client, plan: DowngradePlan, clock: Clock, rules: Rules, *, tombstones: bool
    ) -> None:
        super().__init__(client, plan, clock)
        self._tombstones = tombstones
        self._expander = Expander(client, clock, self._announce, tombstones=tombstones, rules=rules)
        self._held_back = {
            uid for uid, record in self.records.items() if records.is_held_back(record)
        }
        """The claims for which an earlier run waited, and perhaps not long enough."""
        self._waits: dict[str, float] = {}
        """By claim UID: for how many seconds its workload references have to stay."""
        self._uncertain = _uncertain(self.records.values())
        """By claim UID: the references that a write of an earlier run may have removed."""
        self._open_to_any: set[str] = set()
        """The claims that pods may use without being listed."""

    async def _announce(self, record: DowngradedClaim) -> None:
        self.records[record.uid] = record
        await self.report(PlanPhase.EXPANDING)

    async def begin(self) -> dict[str, ResourceClaim]:
        """Make the records, and return the claims as read. They are not kept."""
        claims, on_record, self.records = await _survey(self.client, self.plan)
        self._expander = replace(self._expander, on_record=on_record)
        self._open_to_any = {uid for uid, claim in claims.items() if claim.is_open_to_any}
        await self.report(PlanPhase.EXPANDING)
        return claims

    async def leave_groups(self, claims: Mapping[str, ResourceClaim]) -> dict[str, ResourceClaim]:
        """List the pods of PodGroups, and delete the groups, if no claim is in the way.

        Returns:
            The claims as they are now.
        """
        departure = Departure(self, self._expander, self._uncertain)
        await departure.list_pods(claims)
        claims = await self.read(self.records)
        for uid, claim in claims.items():
            if self.records[uid].state == RecordState.PENDING:
                self.records[uid] = records.announced(self.records[uid], claim)
        # kube-controller-manager takes groups that are gone out of the lists, as this run does
        self._uncertain = _uncertain(self.records.values())
        await self.report(PlanPhase.EXPANDING)
        if self.is_through():
            await departure.delete_groups(claims)
        return await self.read(self.records)

    async def expand(self, claims: Mapping[str, ResourceClaim]) -> None:
        """Expand the claims, which were read before.

        Claims that changed meanwhile are read again together, and then share a new LIST of pods.
        """
        left = unskipped(self.records, claims)
        uncertain: dict[str, Collection[str]] = {**self._uncertain}
        for _ in range(ATTEMPTS):
            again: set[str] = set()
            async for chunk, pods in with_pods(self.client, left):
                work = partial(self._expand_one, pods, uncertain, again)
                await in_parallel(work, chunk, self.parallelism)
            await self._wait()
            changed = await self.read([uid for uid in self.records if uid in again])
            left = unskipped(self.records, changed)
            if not left:
                return
        for claim in left:
            uid = claim.metadata.uid
            record = records.withdrawn(self.records[uid], claim, uncertain.get(uid, ()))
            self.records[uid] = records.failed(record, "Conflict", CHANGED_TOO_OFTEN)

    async def _expand_one(
        self,
        pods: PodsOfClaims,
        uncertain: dict[str, Collection[str]],
        again: set[str],
        claim: ResourceClaim,
    ) -> None:
        """Expand one claim. If it has to be tried again, ``again`` and ``uncertain`` say so."""
        uid, record = claim.metadata.uid, self.records[claim.metadata.uid]
        if uid in self._held_back:
            self._held_back.discard(uid)
            left = self._expander.binding_left(claim, pods)
            attempt = Attempt(record, again=True, uncertain=uncertain.get(uid, ()), wait=left)
        else:
            attempt = await self._expander.expand(record, claim, pods, uncertain.get(uid, ()))
        self.records[uid] = attempt.record
        if attempt.wait:
            self._waits[uid] = attempt.wait
        if attempt.again:
            again.add(uid)
            uncertain[uid] = attempt.uncertain
        await self.report_progress()

    async def _wait(self) -> None:
        """Wait while schedulers may be binding pods whose entries have left.

        The records say so, and change every few seconds: who follows the plan sees that it goes on.
        """
        waits, self._waits = self._waits, {}
        end = self._clock.monotonic() + max(waits.values(), default=0.0)
        while (left := end - self._clock.monotonic()) > 0:
            self.records |= {uid: records.held_back(self.records[uid], left) for uid in waits}
            await self.report(PlanPhase.EXPANDING)
            await self._clock.sleep(min(left, SIGN_SECONDS))

    def is_through(self) -> bool:
        """Whether the list of every claim has its pods."""
        return records.final_phase(self.records.values()) is PlanPhase.PREPARED

    async def verify(self, settle_seconds: float) -> None:
        """Read the written claims again, and write those again that have changed since.

        While a claim was shared, schedulers bound its pods without listing them. A scheduler may
        do so until it sees the new list, so ``settle_seconds`` pass first. Where the scheduler
        lists every pod itself, there is nothing to wait for.
        """
        expanded = self._expanded_uids()
        replaced = (old for uid in expanded for old in self.records[uid].replaced_references)
        if self._open_to_any.intersection(expanded) or any(map(is_pod_group, replaced)):
            await self._clock.sleep(settle_seconds)
        for _ in range(ROUNDS):
            wrong = await self._not_as_written(or_bound_later=True)
            if not wrong:
                return
            await self.expand(wrong)
        for uid, claim in (await self._not_as_written()).items():
            left = records.withdrawn(self.records[uid], claim, ())
            self.records[uid] = records.failed(left, "PutBack", _PUT_BACK)

    def _expanded_uids(self) -> list[str]:
        return [uid for uid, record in self.records.items() if record.state == RecordState.EXPANDED]

    async def _not_as_written(self, *, or_bound_later: bool = False) -> dict[str, ResourceClaim]:
        """The expanded claims that a workload holds again, or whose list lacks a bound pod.

        Args:
            or_bound_later: also the claims whose list lacks a pending pod that a scheduler may
                still be binding, because it saw the list before it was written.
        """
        claims, unreadable = await _claims(self.client, self.plan)
        recorded = (problem for problem in unreadable if problem.uid in self.records)
        self.records |= _unread(recorded, self.records.values())
        expanded = [claims[uid] for uid in self._expanded_uids() if uid in claims]
        wrong = {}
        async for chunk, pods in with_pods(self.client, expanded):

            def differs(claim: ResourceClaim, pods: PodsOfClaims = pods) -> bool:
                record = self.records[claim.metadata.uid] if or_bound_later else None
                expansion = expand_recorded(claim, pods, record, tombstones=self._tombstones)
                return not isinstance(expansion, Unchanged)

            before = {claim.metadata.uid: claim for claim in chunk if differs(claim)}
            # a pod that was listed after the claim was read, and before the LIST, is no difference
            for uid, claim in (await self.read(before)).items():
                if differs(_listing_also(claim, before[uid])):
                    wrong[uid] = claim
        return wrong


def _listing_also(claim: ResourceClaim, before: ResourceClaim) -> ResourceClaim:
    """The claim as if it still listed the pods that an earlier version of it listed."""
    listed = {entry.uid for entry in claim.status.reserved_for}
    gone = (
        entry for entry in before.status.reserved_for if is_pod(entry) and entry.uid not in listed
    )
    entries = (*claim.status.reserved_for, *gone)
    listing = msgspec.structs.replace(claim.status, reserved_for=entries)
    return msgspec.structs.replace(claim, status=listing)
