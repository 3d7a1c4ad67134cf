"""The reconciler of PodGroups: makes those that templates name, and guards those it made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import structlog

from claimctl.controller.caches.informers import BY_CLAIM, Caches, workload_resource
from claimctl.controller.keys import ClaimKey, GroupKey, WorkloadKey
from claimctl.controller.live_reads import Findings
from claimctl.controller.patches import finalizers_patch, group_body
from claimctl.controller.reconcilers.result import DONE, After, Outcome
from claimctl.controller.snapshots import Knowledge, Snapshots
from claimctl.controller.unreadable import Doubts
from claimctl.kube.client import Client
from claimctl.kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from claimctl.kube.events import EventRecorder
from claimctl.reservation.annotation import Annotated, plan
from claimctl.reservation.assess import assess
from claimctl.reservation.decision import Blocker
from claimctl.reservation.pod_groups.lifecycle import (
    Asking,
    DropGroup,
    GroupCase,
    GroupWrite,
    GuardGroup,
    MakeGroup,
    decide_group,
    lets_go,
)
from claimctl.reservation.pod_groups.membership import made_by_claimctl
from claimctl.reservation.pods import claim_names, is_done
from claimctl.reservation.reasons import ConditionType, Reason
from claimctl.reservation.snapshot import Snapshot
from claimctl.reservation.workloads import group_of, observe
from claimctl.telemetry.face import Span
from claimctl.wire.coordination import ObjectReference
from claimctl.wire.meta import OwnerReference
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import FINALIZER, WorkloadRef
from claimctl.wire.resources import PODGROUPS
from claimctl.wire.workloads import ReplicaSet, Workload

log = structlog.get_logger(__name__)

SOON = 0.5
"""Seconds to wait for a watch that is about to tell what we know already."""
LOOK_AGAIN = 5.0
"""Seconds after which to see whether time alone has let a guarded group go."""


class PodGroupReconciler:
    """Decides about one name at a time, from the caches; each write carries UID and version.

    Only before a group is let go its pods are listed live.
    """

    name = "podgroup"

    def __init__(self, client: Client, knowledge: Knowledge, events: EventRecorder) -> None:
        self._client = client
        self._know = knowledge
        self._snapshots = Snapshots(knowledge)
        self._doubts = Doubts(knowledge.caches)
        self._events = events

    @property
    def _caches(self) -> Caches:
        return self._know.caches

    async def reconcile(self, key: GroupKey, span: Span) -> Outcome:
        span.set(k8s__namespace__name=key.namespace, claimctl__podgroup__name=key.name)
        if not self._caches.groups.followed:
            return DONE
        group = self._caches.groups.get(key)
        lags = self._know.observations.own_writes.lags(
            PODGROUPS, key.namespace, key.name, group.metadata if group else None
        )
        if lags or not self._caches.groups.synced:
            return After(SOON)
        if self._in_doubt(key, group):
            return DONE
        asking = self._asking(key)
        if asking is None:
            return After(SOON)
        context = self._case(key, group, asking)
        decision = decide_group(context)
        if decision.lists:
            live = await self._know.investigator.live_pods(key.namespace)
            context = self._case(key, group, asking, live)
            decision = decide_group(context)
        if decision.write is not None:
            return await self._carry_out(key, decision.write)
        if decision.after is not None:
            return After(decision.after)
        waits = group is not None and made_by_claimctl(group) and _on_the_way(context, group)
        return After(LOOK_AGAIN) if waits else DONE

    # What is known

    def _in_doubt(self, key: GroupKey, group: PodGroup | None) -> bool:
        """Whether the group, or what may concern a claim of its, cannot be read."""
        if self._caches.groups.doubt(key) is not None:
            return True
        claims = self._claims_of(key, group) if group is not None else ()
        return any(
            self._doubts.about(claim, self._caches.claims.get(claim.name, claim.namespace))
            for claim in claims
        )

    def _asking(self, key: GroupKey) -> tuple[Asking, ...] | None:
        """Who names the group; None while reservations of theirs are still being made."""
        found = []
        for workload_key, workload in self._caches.workloads_in(key):
            if workload.metadata.deleting or observe(workload, "").ended:
                continue
            if plan(self._annotated(workload_key, workload)).create:
                return None
            found.append(self._ask(workload_key, workload))
        return tuple(found)

    def _ask(self, key: WorkloadKey, workload: Workload) -> Asking:
        reserved = (
            one.spec.resource_claim_name
            for one in self._caches.reservations_for(key)
            if not one.metadata.deleting
        )
        return Asking(_owner(key, workload), workload.spec.template, frozenset(reserved))

    def _annotated(self, key: WorkloadKey, workload: Workload) -> Annotated:
        return Annotated(
            ref=WorkloadRef(api_group=key.api_group, kind=key.kind, name=key.name),
            api_version=workload_resource(key.api_group, key.kind).api_version,
            workload=workload,
            reservations=self._caches.reservations_for(key),
        )

    def _case(
        self,
        key: GroupKey,
        group: PodGroup | None,
        asking: tuple[Asking, ...],
        live: tuple[Pod, ...] | None = None,
    ) -> GroupCase:
        base = GroupCase(
            group=group,
            asking=asking,
            listed=bool(self._caches.claims_listing(key)),
            quiet=self._caches.groups.quiet(key),
            settle_seconds=self._know.rules.settle_seconds,
        )
        if group is None or not made_by_claimctl(group):
            return base
        claims = list(self._claims_of(key, group))
        cached = [pod for claim in claims for pod in self._caches.pods_of(claim)]
        return GroupCase(
            group=group,
            asking=asking,
            owner_ended=self._owner_ended(group),
            guarded=any(self._caches.reservations_of(claim) for claim in claims),
            in_use=_in_use(group, claims, cached),
            in_use_live=None if live is None else _in_use(group, claims, live),
            claims_let_go=all(self._lets_go(claim, group) for claim in claims),
            listed=base.listed,
            quiet=base.quiet,
            settle_seconds=base.settle_seconds,
        )

    def _claims_of(self, key: GroupKey, group: PodGroup) -> Iterator[ClaimKey]:
        named = {each.resource_claim_name for each in group.spec.resource_claims}
        named |= {claim.metadata.name for claim in self._caches.claims_listing(key)}
        for name in sorted(filter(None, named)):
            yield ClaimKey(key.namespace, name)

    def _owner_ended(self, group: PodGroup) -> bool:
        """Whether the workloads that own the group are there and have ended.

        Of those that are gone garbage collection tells, by deleting the group; unless they were
        deleted with cascade=orphan.
        """
        if not group.metadata.owner_references:
            return self._left_alone(group)
        owners = [self._owner_of(group, owner) for owner in group.metadata.owner_references]
        return all(workload is not None and observe(workload, "").ended for workload in owners)

    def _left_alone(self, group: PodGroup) -> bool:
        """Whether its workload has ended, as reservations tell, or nobody names the group at all,
        and no pod needs it."""
        key = GroupKey(group.metadata.namespace, group.metadata.name)
        claims = list(self._claims_of(key, group))
        pods = [pod for claim in claims for pod in self._caches.pods_of(claim)]
        if any(not is_done(pod) for pod in pods):
            return False
        told = [
            (condition.type, condition.status, condition.reason)
            for claim in claims
            for one in self._caches.reservations_of(claim)
            for condition in one.status.conditions
        ]
        if told:
            return (ConditionType.RELEASED, "True", Reason.WORKLOAD_ENDED) in told
        return not self._named(key, claims)

    def _named(self, key: GroupKey, claims: Iterable[ClaimKey]) -> bool:
        """Whether a reservation, a workload or a ReplicaSet may still come to need the group."""
        if any(self._caches.workloads_in(key)):
            return True
        return any(
            self._caches.reservations_of(claim)
            or any(group_of(each.spec.template.spec) == key.name for each in self._sets(claim))
            for claim in claims
        )

    def _sets(self, claim: ClaimKey) -> tuple[ReplicaSet, ...]:
        return self._caches.replica_sets.by_index(BY_CLAIM, str(claim))

    def _owner_of(self, group: PodGroup, owner: OwnerReference) -> Workload | None:
        api_group = owner.api_version.partition("/")[0]
        key = WorkloadKey(api_group, owner.kind, group.metadata.namespace, owner.name)
        workload = self._caches.workload(key)
        same = workload is not None and workload.metadata.uid == owner.uid
        return workload if same else None

    def _lets_go(self, key: ClaimKey, group: PodGroup) -> bool:
        self._snapshots.observe(key, Findings())
        snapshot = self._snapshots.build(key, Findings())
        return lets_go(snapshot, group, _against(snapshot))

    # What is done

    async def _carry_out(self, key: GroupKey, write: GroupWrite) -> Outcome:
        try:
            match write:
                case MakeGroup():
                    await self._make(key, write)
                case GuardGroup():
                    await self._guard(write)
                case DropGroup():
                    await self._drop(write.group)
        except (AlreadyExists, Conflict, NotFound):
            return After(SOON)
        except Invalid as error:
            self._report(key, str(error))
            raise
        log.info("wrote", group=str(key), write=type(write).__name__)
        return After(SOON)

    async def _make(self, key: GroupKey, write: MakeGroup) -> None:
        made = await self._client.create(PODGROUPS, group_body(key.name, write), key.namespace)
        self._know.observations.own_writes.wrote(PODGROUPS, made.metadata)

    async def _guard(self, write: GuardGroup) -> None:
        meta = write.group.metadata
        change = {"add": FINALIZER} if write.present else {"remove": FINALIZER}
        written = await self._client.merge_patch(
            PODGROUPS,
            meta.name,
            finalizers_patch(meta.finalizers, **change),
            meta.namespace,
            resource_version=meta.resource_version,
        )
        if not (meta.deleting and not write.present):
            self._know.observations.own_writes.wrote(PODGROUPS, written.metadata)

    async def _drop(self, group: PodGroup) -> None:
        meta = group.metadata
        await self._client.delete(
            PODGROUPS,
            meta.name,
            meta.namespace,
            uid=meta.uid,
            resource_version=meta.resource_version,
        )

    def _report(self, key: GroupKey, note: str) -> None:
        for workload_key, workload in self._caches.workloads_in(key):
            resource = workload_resource(workload_key.api_group, workload_key.kind)
            subject = ObjectReference(
                api_version=resource.api_version,
                kind=resource.kind,
                namespace=key.namespace,
                name=workload.metadata.name,
                uid=workload.metadata.uid,
            )
            self._events.record(
                subject, type="Warning", reason=Reason.FORBIDDEN, note=note, action="Reserve"
            )


def _on_the_way(context: GroupCase, group: PodGroup) -> bool:
    """Whether the group waits for time to pass (ghosts, settling), or for pods that nobody owns."""
    guards, meta = FINALIZER in group.metadata.finalizers, group.metadata
    return (guards and (meta.deleting or context.owner_ended)) or not meta.owner_references


def _in_use(group: PodGroup, claims: Iterable[ClaimKey], pods: Iterable[Pod]) -> bool:
    """Whether pods of the group may still be scheduled on its claims, or run."""
    names = {claim.name for claim in claims}
    members = (pod for pod in pods if group_of(pod.spec) == group.metadata.name)
    return any(not is_done(pod) and names & claim_names(pod) for pod in members)


def _against(snapshot: Snapshot) -> tuple[Blocker, ...] | None:
    """What stands against the claim's release beside its finished pods; None: it is held."""
    if snapshot.claim is None or not snapshot.allocated:
        return None
    found = assess(snapshot)
    if found.reason is None:
        return None
    return tuple(each for each in found.blockers if each.reason is not Reason.FINISHED_PODS_LEFT)


def _owner(key: WorkloadKey, workload: Workload) -> OwnerReference:
    """Goes with its workload; does not block a foreground deletion."""
    return OwnerReference(
        api_version=workload_resource(key.api_group, key.kind).api_version,
        kind=key.kind,
        name=key.name,
        uid=workload.metadata.uid,
    )
