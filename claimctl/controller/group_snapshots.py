"""Make the snapshot of one PodGroup name from caches and observations."""

from __future__ import annotations

from collections.abc import Iterator

from claimctl.controller.caches.informers import BY_CLAIM, claims_of_group
from claimctl.controller.keys import ClaimKey, GroupKey, WorkloadKey
from claimctl.controller.live_reads import Findings
from claimctl.controller.snapshots import Knowledge, Snapshots
from claimctl.controller.unreadable import UnreadableObjects
from claimctl.reservation.annotation import Annotated
from claimctl.reservation.pod_groups.decide import GroupSnapshot
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import RESERVE_ANNOTATION, WorkloadRef
from claimctl.wire.resources import PODGROUPS, WORKLOADS
from claimctl.wire.workloads import ReplicaSet, Workload


class GroupSnapshots:
    def __init__(self, knowledge: Knowledge) -> None:
        self._know = knowledge
        self._caches = knowledge.caches
        self._claims = Snapshots(knowledge)
        self._unreadable = UnreadableObjects(knowledge.caches)

    def lagging(self, key: GroupKey) -> bool:
        """Whether the caches lack a write of this process to the group."""
        group, writes = self._caches.groups.get(key), self._know.observations.own_writes
        meta = group.metadata if group else None
        return (
            writes.lags(PODGROUPS, key.namespace, key.name, meta) or not self._caches.groups.synced
        )

    def observe(self, key: GroupKey) -> None:
        """Note in the observations what only this process knows of the group."""
        groups = self._caches.groups
        if groups.followed and groups.synced:
            self._know.observations.group_names.known()
        group = groups.get(key)
        if group is not None and group.made_by_claimctl:
            for claim in self._claims_of(key, group):
                self._claims.observe(claim, Findings())

    def build(
        self, key: GroupKey, listed: tuple[PodGroup | None, tuple[Pod, ...]] | None = None
    ) -> GroupSnapshot:
        """Make the present snapshot. This does not change the observations.

        Args:
            listed: the group from before a live LIST of its pods, and that LIST.
        """
        group, live = (self._caches.groups.get(key), None) if listed is None else listed
        claims = tuple(self._claims_of(key, group)) if group is not None else ()
        ours = group is not None and group.made_by_claimctl
        return GroupSnapshot(
            name=key.name,
            group=group,
            listed=bool(self._caches.claims_listing(key)),
            quiet=self._know.observations.group_names.quiet(key),
            settle_seconds=self._know.rules.settle_seconds,
            workloads=tuple(self._workloads(key)),
            owners=tuple(self._owners(group)) if group is not None else (),
            claims=tuple(self._claims.build(claim, Findings()) for claim in claims) if ours else (),
            replica_sets=tuple(self._replica_sets(claims)),
            live_pods=live,
            unreadable=self._is_uncertain(key, claims),
        )

    def _claims_of(self, key: GroupKey, group: PodGroup) -> Iterator[ClaimKey]:
        listing = (claim.metadata for claim in self._caches.claims_listing(key))
        yield from sorted({*claims_of_group(group), *(ClaimKey(*meta.key) for meta in listing)})

    def _is_uncertain(self, key: GroupKey, claims: tuple[ClaimKey, ...]) -> bool:
        return self._caches.groups.unreadable_for(key) is not None or any(
            self._unreadable.about(claim, self._caches.claims.get(claim.name, claim.namespace))
            for claim in claims
        )

    def _workloads(self, key: GroupKey) -> Iterator[Annotated]:
        ancestry = self._know.ancestry
        for workload_key, workload in self._caches.workloads_in(key):
            api_group, kind, _, name = workload_key
            yield Annotated(
                ref=WorkloadRef(api_group=api_group, kind=kind, name=name),
                api_version=WORKLOADS[api_group, kind].api_version,
                workload=workload,
                reservations=self._caches.reservations_for(workload_key),
                authority=ancestry.who_decides(RESERVE_ANNOTATION, workload.metadata),
            )

    def _owners(self, group: PodGroup) -> Iterator[Workload | None]:
        for owner in group.metadata.owner_references:
            api_group = owner.api_version.partition("/")[0]
            namespace = group.metadata.namespace
            yield self._caches.workload(WorkloadKey(api_group, owner.kind, namespace, owner.name))

    def _replica_sets(self, claims: tuple[ClaimKey, ...]) -> Iterator[ReplicaSet]:
        for claim in claims:
            yield from self._caches.replica_sets.by_index(BY_CLAIM, claim)
