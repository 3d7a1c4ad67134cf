"""Make the snapshot of one claim from caches, findings and observations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from claimctl.controller.caches.informers import (
    BINDING_CONDITIONS,
    BY_CLAIM,
    BY_POOL,
    Caches,
    pool_key,
    reserved_key,
    workload_key,
)
from claimctl.controller.keys import ClaimKey, GroupKey
from claimctl.controller.live_reads import Findings, Investigator
from claimctl.controller.observations.ghosts import Ghosts
from claimctl.controller.observations.observations import Observations
from claimctl.controller.unreadable import UnreadableObjects
from claimctl.downgrade.scope import freezes
from claimctl.kube.cache import HasMetadata
from claimctl.kube.informer import Informer
from claimctl.reservation.assessment.retention import shown_reference
from claimctl.reservation.facts.pods import is_bound, is_done
from claimctl.reservation.facts.references import is_pod, is_pod_group
from claimctl.reservation.facts.snapshot import Held, Memory, Rules, Snapshot
from claimctl.reservation.facts.workloads import (
    WorkloadPhase,
    WorkloadState,
    observe,
    orphaned_replica_sets_of,
)
from claimctl.wire.claims import ResourceClaim, ResourceSlice
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservation
from claimctl.wire.resources import CLAIMRESERVATIONS, RESOURCECLAIMS
from claimctl.wire.seams import Clock
from claimctl.wire.unreadable import Unreadable
from claimctl.wire.workloads import ReplicaSet, Workload

T = TypeVar("T", bound=HasMetadata)


@dataclass(slots=True)
class Knowledge:
    """The sources of snapshots. The manager sets ``rules`` when the cluster changes."""

    caches: Caches
    observations: Observations
    investigator: Investigator
    clock: Clock
    rules: Rules


class Snapshots:
    def __init__(self, knowledge: Knowledge) -> None:
        self._know = knowledge
        self._nodes = CacheView(knowledge.caches.nodes)
        self._unreadable = UnreadableObjects(knowledge.caches)

    def lagging(self, key: ClaimKey) -> bool:
        """Whether the caches lack a write of this process about the claim."""
        fresh, caches = self._know.observations.own_writes, self._know.caches
        claim = caches.claims.get(key.name, key.namespace)
        if fresh.lags(RESOURCECLAIMS, key.namespace, key.name, claim.metadata if claim else None):
            return True
        return any(
            fresh.lags(CLAIMRESERVATIONS, key.namespace, one.metadata.name, one.metadata)
            for one in caches.reservations_of(key)
        )

    def observe(self, key: ClaimKey, findings: Findings) -> None:
        """Note in the observations what only this process knows.

        That is: ghosts, dead pods, pods that have not started, and deleted reservations.
        """
        seen, caches = self._know.observations, self._know.caches
        if findings.live_claim is not None:
            seen.claims.see(findings.live_claim)
        for workload, answer in findings.workloads.items():
            if answer is None:
                seen.gone_workloads.gone(workload)
        claim = self._claim(key, findings)
        pods, reservations = caches.pods_of(key), caches.reservations_of(key)
        unread = frozenset(each.uid for each in self._unreadable.about(key, claim))
        present = unread | {pod.metadata.uid for pod in pods}
        if claim is not None:
            version = claim.metadata.resource_version
            seen.ghosts.observe_list(key, claim.status.reserved_for, present, version)
        recorded = (ghost for one in reservations for ghost in one.status.force_deleted_pods)
        seen.ghosts.observe_record(key, recorded)
        for one in filter(lambda one: one.metadata.deleting, reservations):
            seen.claims.observe_withdrawn(one.metadata)
        if claim is not None:
            dead = (uid for uid in self._dead(claim, pods) if uid not in unread)
            seen.claims.observe_pods(key, dead, filter(None, map(_unstarted, pods)))

    def build(self, key: ClaimKey, findings: Findings) -> Snapshot:
        """Make the present snapshot. This does not change the observations."""
        know, caches, seen = self._know, self._know.caches, self._know.observations
        claim = self._claim(key, findings)
        held = tuple(self._held(one, findings) for one in caches.reservations_of(key))
        pods = caches.pods_of(key)
        pending = tuple(pod for pod in pods if not is_bound(pod))
        references = claim.status.reserved_for if claim else ()
        ghosts = seen.ghosts.of(key)
        return Snapshot(
            now=know.clock.now(),
            namespace=key.namespace,
            name=key.name,
            claim=claim,
            reservations=held,
            pods=pods,
            ghosts=ghosts.pods,
            nodes=self._nodes,
            claims=CacheView(caches.claims, key.namespace),
            slices=tuple(self._slices(claim)),
            binding_conditions=self._binding_conditions(),
            groups=tuple(self._groups(key, claim, held)),
            unreadable=self._unreadable.about(key, claim),
            frozen=self._frozen(key, claim),
            template_missing=findings.template_missing,
            template_refused=findings.template_refused,
            rules=self._rules(),
            evidence=know.investigator.evidence(references, findings),
            memory=self._memory(claim, pending, ghosts)
            if claim
            else seen.claims.memory_without_claim(key),
        )

    def _memory(self, claim: ResourceClaim, pending: tuple[Pod, ...], ghosts: Ghosts) -> Memory:
        seen = self._know.observations
        return seen.claims.memory(
            claim,
            ghosts,
            seen.arrivals.ages(pending),
            history_complete=seen.claims.openings.history_complete(
                claim, self._know.caches.pods.version
            ),
            done_pods=seen.ghosts.done(filter(is_pod, claim.status.reserved_for)),
        )

    def _claim(self, key: ClaimKey, findings: Findings) -> ResourceClaim | None:
        if findings.claim_read_for is not None:
            return findings.live_claim
        return findings.claim or self._know.caches.claims.get(key.name, key.namespace)

    def _rules(self) -> Rules:
        """The rules of the detected cluster, corrected by its observed behaviour."""
        if self._know.observations.kcm_left_dead_references:
            return replace(self._know.rules, kcm_cleans_mixed_lists=False)
        return self._know.rules

    def _held(self, reservation: ClaimReservation, findings: Findings) -> Held:
        memories, meta = self._know.observations.claims, reservation.metadata
        held = Held(
            reservation,
            self._workload(reservation, findings),
            idle_age=memories.recorded.idle_age(reservation),
            idle_outdated=memories.recorded.idle_outdated(reservation),
            unused_age=memories.recorded.unused_age(reservation),
            requests_met=memories.requests_met(reserved_key(reservation), meta),
        )
        if meta.deleting:
            held = replace(held, withdrawn_age=memories.withdrawn_age(meta))
        return held

    def _workload(self, reservation: ClaimReservation, findings: Findings) -> WorkloadState:
        key, claim = workload_key(reservation), reservation.spec.resource_claim_name
        if (unreadable := self._unreadable.about_workload(key)) is not None:
            return _unread_workload(unreadable, self._know.caches.workload(key))
        confirmed = key in findings.workloads
        gone = not confirmed and self._know.observations.gone_workloads.lately(key)
        workload = findings.workloads[key] if confirmed else self._know.caches.workload(key)
        if isinstance(workload, Unreadable):
            return _unread_workload(workload, None)
        if workload is not None:
            state = observe(workload, claim, self._replica_sets(reservation))
            return replace(state, confirmed=confirmed)
        if confirmed or gone:
            return WorkloadState(
                WorkloadPhase.ABSENT,
                orphaned_replica_sets=self._orphaned_replica_sets(reservation, findings),
            )
        return WorkloadState(WorkloadPhase.UNSEEN)

    def _orphaned_replica_sets(
        self, reservation: ClaimReservation, findings: Findings
    ) -> tuple[str, ...]:
        """The ReplicaSets left by the incarnation for which the claim was reserved."""
        key, recorded = reserved_key(reservation), reservation.status.reserved_for
        if recorded is None and (claim := self._claim(key, findings)) is not None:
            recorded = shown_reference(claim, reservation)
        left = self._replica_sets(reservation)
        return orphaned_replica_sets_of(recorded.uid if recorded else "", key.name, left)

    def _replica_sets(self, reservation: ClaimReservation) -> tuple[ReplicaSet, ...]:
        """The ReplicaSets whose pods use the claim."""
        index = f"{reservation.metadata.namespace}/{reservation.spec.resource_claim_name}"
        return self._know.caches.replica_sets.by_index(BY_CLAIM, index)

    def _slices(self, claim: ResourceClaim | None) -> Iterator[ResourceSlice]:
        """The slices of the allocation's pools that have devices of interest. Few have any."""
        devices = claim.devices if claim else ()
        for pool in sorted({pool_key(each.driver, each.pool) for each in devices}):
            yield from self._know.caches.slices.by_index(BY_POOL, pool)

    def _binding_conditions(self) -> bool:
        """Whether a device with binding conditions is published; an unreadable slice may do so."""
        slices = self._know.caches.slices
        return bool(slices.by_index(BINDING_CONDITIONS, "")) or any(slices.unread())

    def _groups(
        self, key: ClaimKey, claim: ResourceClaim | None, held: tuple[Held, ...]
    ) -> Iterator[PodGroup]:
        """The PodGroups that the claim lists, that its workloads name, or that name it."""
        if not self._know.caches.groups.followed:
            return
        listed = claim.status.reserved_for if claim else ()
        names = {each.name for each in listed if is_pod_group(each)}
        names |= {one.workload.pod_group for one in held}
        found = {group.metadata.name: group for group in self._know.caches.groups.sharing(key)}
        for name in names - found.keys():
            group = self._know.caches.groups.get(GroupKey(key.namespace, name))
            if group is not None:
                found[name] = group
        for name in sorted(found):
            yield found[name]

    def _dead(self, claim: ResourceClaim, pods: tuple[Pod, ...]) -> Iterator[str]:
        """UIDs of listed pods that are done or not in the cache, and of groups that are gone."""
        yield from _dead_pods(claim, pods)
        groups, namespace = self._know.caches.groups, claim.metadata.namespace
        if groups.followed and groups.synced:
            for each in filter(is_pod_group, claim.status.reserved_for):
                group = groups.get(GroupKey(namespace, each.name))
                if group is None or group.metadata.uid != each.uid:
                    yield each.uid

    def _frozen(self, key: ClaimKey, claim: ResourceClaim | None) -> bool:
        """Whether a DowngradePlan freezes the claim: it exists and has not failed."""
        labels = None if claim is None else claim.metadata.labels or {}
        return self._unreadable.freezes(key.namespace) or any(
            freezes(plan, key.namespace, key.name, labels)
            for plan in self._know.caches.plans.items()
        )


def _unread_workload(found: Unreadable, known: Workload | None) -> WorkloadState:
    """The state of an unreadable workload, with the last readable version if it is known."""
    uid = known.metadata.uid if known is not None and not found.identified else found.uid
    return WorkloadState(
        WorkloadPhase.UNREADABLE, uid=uid, confirmed=True, problem=found.describe()
    )


def _unstarted(pod: Pod) -> str | None:
    """The pod's UID if the pod is bound and has not started."""
    return pod.metadata.uid if pod.status.phase == "Pending" and is_bound(pod) else None


def _dead_pods(claim: ResourceClaim, pods: tuple[Pod, ...]) -> tuple[str, ...]:
    """UIDs of listed pods that are done or that the cache does not show."""
    alive = {pod.metadata.uid for pod in pods if not is_done(pod)}
    listed = (reference for reference in claim.status.reserved_for if is_pod(reference))
    return tuple(reference.uid for reference in listed if reference.uid not in alive)


class CacheView(Mapping[str, T], Generic[T]):
    """The objects of a cache by name, in one namespace, without a copy for every decision."""

    def __init__(self, cache: Informer[T], namespace: str = "") -> None:
        self._cache, self._namespace = cache, namespace

    def __getitem__(self, name: str) -> T:
        found = self._cache.get(name, self._namespace)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        metas = (each.metadata for each in self._cache.items())
        return iter(sorted(meta.name for meta in metas if meta.namespace == self._namespace))

    def __len__(self) -> int:
        return sum(1 for _ in self)
