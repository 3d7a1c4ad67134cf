"""The reconciler of PodGroups: it creates groups that pod templates name, and guards them."""

from __future__ import annotations

from typing import Any

from claimctl.controller.events import warn
from claimctl.controller.group_snapshots import GroupSnapshots
from claimctl.controller.keys import GroupKey
from claimctl.controller.snapshots import Knowledge
from claimctl.controller.workers import DONE, SOON, After
from claimctl.controller.writer import finalizers_patch
from claimctl.downgrade.scope import crosses
from claimctl.kube.client import Client
from claimctl.kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from claimctl.kube.events import EventRecorder
from claimctl.reservation.annotation import Problem
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.pod_groups.case import DropGroup, GroupWrite, GuardGroup, MakeGroup
from claimctl.reservation.pod_groups.decide import decide_about
from claimctl.telemetry.face import LateLogger, Span
from claimctl.wire.base import to_plain
from claimctl.wire.reservations import FINALIZER, MANAGED_LABEL
from claimctl.wire.resources import PODGROUPS

log = LateLogger(__name__)

AFTER_UPGRADE = 5.0
"""Seconds between looks whether PodGroups may be made again."""


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

    async def reconcile(self, key: GroupKey, span: Span) -> After:
        span.set(k8s__namespace__name=key.namespace, claimctl__podgroup__name=key.name)
        if not self._know.caches.groups.followed:
            return DONE
        if any(map(crosses, self._know.caches.plans.items())):
            return After(AFTER_UPGRADE)
        if self._snapshots.lagging(key):
            return SOON
        self._snapshots.observe(key)
        snapshot = self._snapshots.build(key)
        decision = decide_about(snapshot)
        if decision.lists:
            live = await self._know.investigator.live_pods(key.namespace)
            self._snapshots.observe(key)
            decision = decide_about(self._snapshots.build(key, (snapshot.group, live)))
        if decision.write is not None:
            return await self._carry_out(key, decision.write)
        return After(decision.after)

    async def _carry_out(self, key: GroupKey, write: GroupWrite) -> After:
        own_writes = self._know.observations.own_writes
        try:
            match write:
                case MakeGroup():
                    body = group_body(key.name, write)
                    created = await self._client.create(PODGROUPS, body, key.namespace)
                    own_writes.wrote(PODGROUPS, created.metadata)
                case GuardGroup():
                    meta = write.group.metadata
                    patched = await self._client.merge_patch(
                        PODGROUPS, meta, finalizers_patch(meta, present=write.present)
                    )
                    if write.present or not meta.deleting:
                        own_writes.wrote(PODGROUPS, patched.metadata)
                case DropGroup():
                    await self._client.delete_as_read(PODGROUPS, write.group.metadata)
        except (AlreadyExists, Conflict, NotFound):
            return SOON
        except Invalid as error:
            refused = Problem(Reason.FORBIDDEN, str(error))
            for workload_key, workload in self._know.caches.workloads_in(key):
                warn(self._events, workload_key, workload, refused, "Reserve")
            raise
        log.info("written", write=type(write).__name__)
        return SOON


def group_body(name: str, group: MakeGroup) -> dict[str, Any]:
    """The PodGroup to create: its pods are scheduled one by one, and share claims."""
    return {
        "metadata": {
            "name": name,
            "labels": {MANAGED_LABEL: "claimctl"},
            "finalizers": [FINALIZER],
            "ownerReferences": [
                {**to_plain(owner), "blockOwnerDeletion": False} for owner in group.owners
            ],
        },
        "spec": {
            "schedulingPolicy": {"basic": {}},
            "resourceClaims": [to_plain(claim) for claim in group.claims],
        },
    }
