"""The reconciler of PodGroups: it creates groups that pod templates name, and guards them."""

from __future__ import annotations

import structlog

from claimctl.controller.events import subject_of
from claimctl.controller.group_snapshots import GroupSnapshots
from claimctl.controller.keys import GroupKey
from claimctl.controller.patches import finalizers_patch, group_body
from claimctl.controller.snapshots import Knowledge
from claimctl.controller.workers import DONE, After, Outcome
from claimctl.kube.client import Client
from claimctl.kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from claimctl.kube.events import EventRecorder
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.pod_groups.assess import decide_about
from claimctl.reservation.pod_groups.lifecycle import DropGroup, GroupWrite, GuardGroup, MakeGroup
from claimctl.telemetry.face import Span
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.reservations import FINALIZER
from claimctl.wire.resources import PODGROUPS

log = structlog.get_logger(__name__)

SOON = 0.5
"""Seconds to wait until a watch shows what this process knows already."""


class PodGroupReconciler:
    """Reconciles one name at a time, from the caches. Each write carries UID and version.

    Before claimctl's finalizer of a group is removed, the group's pods are listed live.
    """

    name = "podgroup"

    def __init__(self, client: Client, knowledge: Knowledge, events: EventRecorder) -> None:
        self._client = client
        self._know = knowledge
        self._snapshots = GroupSnapshots(knowledge)
        self._events = events

    async def reconcile(self, key: GroupKey, span: Span) -> Outcome:
        span.set(k8s__namespace__name=key.namespace, claimctl__podgroup__name=key.name)
        if not self._know.caches.groups.followed:
            return DONE
        if self._snapshots.lagging(key):
            return After(SOON)
        self._snapshots.observe(key)
        snapshot = self._snapshots.build(key)
        decision = decide_about(snapshot)
        if decision.lists:
            live = await self._know.investigator.live_pods(key.namespace)
            self._snapshots.observe(key)
            decision = decide_about(self._snapshots.build(key, (snapshot.group, live)))
        if decision.write is not None:
            return await self._carry_out(key, decision.write)
        return DONE if decision.after is None else After(decision.after)

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
        log.info("written", write=type(write).__name__)
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
        for workload_key, workload in self._know.caches.workloads_in(key):
            self._events.record(
                subject_of(workload_key, workload),
                type="Warning",
                reason=Reason.FORBIDDEN,
                note=note,
                action="Reserve",
            )
