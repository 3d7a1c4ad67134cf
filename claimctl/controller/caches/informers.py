"""The informers: the controller's caches of the cluster."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from claimctl.controller.caches.kinds import KindCache
from claimctl.controller.caches.slim import (
    bounded,
    slim,
    slim_claim,
    slim_node,
    slim_replica_set,
    slim_slice,
    slim_workload,
)
from claimctl.controller.keys import ClaimKey, GroupKey, WorkloadKey
from claimctl.kube.client import Client
from claimctl.kube.informer import Informer
from claimctl.reservation.facts.ordinals import (
    owner_ref,
    part_of,
    places_by_name,
    sticky_entries,
    sticky_of,
    waits_for_policy,
)
from claimctl.reservation.facts.pods import claim_names, names_in
from claimctl.reservation.facts.pools import PoolKey, drivers_on, pools_of
from claimctl.reservation.facts.references import groups_in, is_pod
from claimctl.reservation.facts.slim_pods import slim_pod
from claimctl.reservation.facts.workloads import judged, named_claims
from claimctl.reservation.remembered import Remembered
from claimctl.wire.claims import ResourceClaim, ResourceSlice
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.ordinals import Ordinal, pod_name
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import (
    POD_GROUP_ANNOTATION,
    RESERVE_ANNOTATION,
    ClaimReservation,
    DowngradePlan,
    WorkloadRef,
)
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    DOWNGRADEPLANS,
    JOBS,
    NODES,
    PODGROUPS,
    PODS,
    REPLICASETS,
    RESOURCECLAIMS,
    RESOURCESLICES,
    STATEFULSETS,
    WORKLOADKINDS,
    WORKLOADS,
    Resource,
)
from claimctl.wire.seams import Clock
from claimctl.wire.unreadable import Unreadable
from claimctl.wire.workload_kinds import WorkloadKind
from claimctl.wire.workloads import ReplicaSet, Workload, template_of

WATCHED: tuple[Resource[Any], ...] = (
    NODES,
    RESOURCECLAIMS,
    PODS,
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    REPLICASETS,
    STATEFULSETS,
    JOBS,
    DOWNGRADEPLANS,
    RESOURCESLICES,
    WORKLOADKINDS,
)
"""The resources that the cluster must serve and the controller must be allowed to read."""

BY_CLAIM, BY_WORKLOAD, BY_POOL, BY_GROUP = "claim", "workload", "pool", "group"
BY_NODE = "node"
STICKY = "sticky claims"
NOT_STICKY = "sticky claims that no policy has given"
BY_ORDINAL = "ordinal"
BY_PART = "part of the workload"
ANNOTATED_BELOW = "annotated below another object"
BINDING_CONDITIONS = "binding conditions"
DECIDING = (RESERVE_ANNOTATION, POD_GROUP_ANNOTATION)
"""The annotations that an object may have by a copy."""


class GroupCache:
    """An informer while the cluster serves PodGroups; empty otherwise."""

    def __init__(self, make: Callable[[], Informer[PodGroup]]) -> None:
        self._make = make
        self._informer: Informer[PodGroup] | None = None
        self.on_follow: Callable[[Informer[PodGroup]], None] = lambda informer: None
        """Called with each new informer, before it runs."""

    @property
    def followed(self) -> bool:
        return self._informer is not None

    @property
    def synced(self) -> bool:
        """Whether all PodGroups are known, or none are served."""
        return self._informer is None or self._informer.synced

    def informers(self) -> tuple[Informer[PodGroup], ...]:
        return (self._informer,) if self._informer is not None else ()

    def unreadable_for(self, key: GroupKey) -> Unreadable | None:
        """The unreadable object that is, or may be, the group; else None."""
        return self._informer.unreadable_for(key.name, key.namespace) if self._informer else None

    def follow(self) -> Informer[PodGroup]:
        """A new informer, to be run by the caller."""
        self._informer = self._make()
        self.on_follow(self._informer)
        return self._informer

    def leave(self) -> None:
        """Drop the cache, because PodGroups are not served any more."""
        self._informer = None

    def get(self, key: GroupKey) -> PodGroup | None:
        return self._informer.get(key.name, key.namespace) if self._informer else None

    def items(self) -> tuple[PodGroup, ...]:
        return tuple(self._informer.items()) if self._informer else ()

    def sharing(self, claim: ClaimKey) -> tuple[PodGroup, ...]:
        """The groups that name the claim."""
        return self._informer.by_index(BY_CLAIM, claim) if self._informer else ()


class Caches:
    """One informer per watched resource, with the indexes that snapshots need."""

    def __init__(self, client: Client, clock: Clock, rng: random.Random) -> None:
        def informer(
            resource: Resource[Any], keep: Callable[[Any], Any] = slim, **options: Any
        ) -> Informer[Any]:
            def within_bounds(item: Any) -> Any:
                kept = keep(item)
                return kept if kept is None else bounded(kept)

            return Informer(client, resource, clock, rng=rng, keep=within_bounds, **options)

        self.nodes = informer(NODES, keep=slim_node)
        self.claims: Informer[ResourceClaim] = informer(
            RESOURCECLAIMS,
            keep=slim_claim,
            indexes={BY_GROUP: _listed_groups, BY_POOL: pools_of, BY_NODE: _nodes_of},
        )
        self.pods: Informer[Pod] = informer(
            PODS,
            keep=lambda pod: slim_pod(
                pod, self.pods.get(pod.metadata.name, pod.metadata.namespace)
            ),
            indexes={
                BY_CLAIM: claims_of_pod,
                STICKY: _sticky_claims,
                NOT_STICKY: without_policy,
                BY_ORDINAL: ordinals_of,
            },
        )
        self.reservations: Informer[ClaimReservation] = informer(
            CLAIMRESERVATIONS,
            indexes={
                BY_CLAIM: lambda reservation: (reserved_key(reservation),),
                BY_WORKLOAD: lambda reservation: (workload_key(reservation),),
                BY_ORDINAL: _ordinal,
                BY_PART: _part,
            },
        )
        self.workloads: dict[tuple[str, str], Informer[Workload]] = {
            kind: informer(resource, keep=slim_workload, indexes=_OF_WORKLOADS)
            for kind, resource in WORKLOADS.items()
        }
        self.groups = GroupCache(lambda: informer(PODGROUPS, indexes={BY_CLAIM: claims_of_group}))
        self.replica_sets: Informer[ReplicaSet] = informer(
            REPLICASETS,
            keep=slim_replica_set,
            indexes={BY_CLAIM: claims_of_replica_set},
        )
        self.kind_rules: Informer[WorkloadKind] = informer(WORKLOADKINDS)
        self.kinds = KindCache(
            lambda resource, rule: informer(
                resource, keep=lambda workload: judged(workload, rule), indexes=_OF_WORKLOADS
            ),
            self.workloads,
        )
        self.plans: Informer[DowngradePlan] = informer(DOWNGRADEPLANS)
        self.slices: Informer[ResourceSlice] = informer(
            RESOURCESLICES,
            keep=slim_slice,
            indexes={BY_POOL: lambda piece: (_pool(piece),), BINDING_CONDITIONS: _condition_holder},
        )
        self._all = tuple(informer for wave in self.waves() for informer in wave)
        known = self.workloads.values()
        self._lasting = tuple(informer for informer in self._all if informer not in known)

    def waves(self) -> tuple[tuple[Informer[Any], ...], ...]:
        """The informers in the order of their start. Each wave starts after the lists of the last.

        Nodes come first, so that the boot ID of a ghost's node is known. Pods come before claims:
        a claim that is seen without allocation then has no pod that this process did not see.
        Reservations do, too: they decide which claims were reserved at the checkpoint.
        """
        return (
            (self.nodes, self.reservations, self.kind_rules),
            (self.pods,),
            (self.claims, *self.workloads.values(), self.replica_sets, self.plans, self.slices),
        )

    def informers(self) -> tuple[Informer[Any], ...]:
        return self._all

    def followed(self) -> tuple[Informer[Any], ...]:
        """All running informers, with PodGroups and kinds of workloads if they are served."""
        return (*self._lasting, *self.groups.informers(), *self.workloads.values())

    def unread(self) -> list[Unreadable]:
        """All objects that cannot be read."""
        return [item for informer in self.followed() for item in informer.unread()]

    def pods_of(self, key: ClaimKey) -> tuple[Pod, ...]:
        return self.pods.by_index(BY_CLAIM, key)

    def sticky_pods_of(self, key: ClaimKey) -> tuple[Pod, ...]:
        """The pods of which it is the sticky claim."""
        return self.pods.by_index(STICKY, key)

    def pods_of_ordinal(self, key: WorkloadKey, ordinal: Ordinal | None) -> tuple[Pod, ...]:
        """The pods of a workload's ordinal. Those of all its ordinals if None, but then only pods
        with sticky claims."""
        pods = self.pods.by_index(BY_ORDINAL, (key, ordinal))
        name = pod_name(key.api_group, key.kind, key.name, ordinal) if ordinal else ""
        other = self.pods.get(name, key.namespace) if name else None
        if other is None or other in pods or (key, ordinal) not in places_of(other):
            return pods
        return (*pods, other)

    def pods_without_policy(self, key: WorkloadKey) -> tuple[Pod, ...]:
        """The workload's pods that ask for sticky claims and have generated ones."""
        return self.pods.by_index(NOT_STICKY, key)

    def reservations_of(self, key: ClaimKey) -> tuple[ClaimReservation, ...]:
        """The claim's reservations, the oldest first."""
        reservations = self.reservations.by_index(BY_CLAIM, key)
        if len(reservations) < 2:
            return reservations
        return tuple(sorted(reservations, key=_seniority))

    def reservations_for(self, key: WorkloadKey) -> tuple[ClaimReservation, ...]:
        return self.reservations.by_index(BY_WORKLOAD, key)

    def claims_of_ordinal(self, key: WorkloadKey, ordinal: Ordinal) -> list[ClaimKey]:
        """The sticky claims of a workload's ordinal."""
        made = self.reservations.by_index(BY_ORDINAL, (key, ordinal))
        return [reserved_key(reservation) for reservation in made]

    def claims_of_part(self, key: WorkloadKey) -> list[ClaimKey]:
        """The sticky claims of the pods that an object makes as a part of their workload."""
        return [reserved_key(reservation) for reservation in self.reservations_in_part(key)]

    def reservations_in_part(self, key: WorkloadKey) -> tuple[ClaimReservation, ...]:
        """The reservations of these claims."""
        return self.reservations.by_index(BY_PART, key)

    def workloads_in(self, group: GroupKey) -> Iterator[tuple[WorkloadKey, Workload]]:
        """The workloads whose pod templates name the group, in a stable order."""
        for kind, informer in self.workloads.items():
            for workload in informer.by_index(BY_GROUP, group):
                yield WorkloadKey(*kind, group.namespace, workload.metadata.name), workload

    def annotated_below(self, namespace: str) -> Iterator[tuple[WorkloadKey, Workload]]:
        """The annotated workloads of a namespace that belong to other objects."""
        for kind, informer in self.workloads.items():
            for workload in informer.by_index(ANNOTATED_BELOW, namespace):
                yield WorkloadKey(*kind, namespace, workload.metadata.name), workload

    def claims_listing(self, group: GroupKey) -> tuple[ResourceClaim, ...]:
        """The claims that list a group of that name, whatever its UID."""
        return self.claims.by_index(BY_GROUP, group)

    def workload(self, key: WorkloadKey) -> Workload | None:
        informer = self.workloads.get((key.api_group, key.kind))
        return informer.get(key.name, key.namespace) if informer is not None else None

    def unreadable_workload(self, key: WorkloadKey) -> Unreadable | None:
        """The unreadable object that is, or may be, the workload; else None."""
        informer = self.workloads.get((key.api_group, key.kind))
        return informer.unreadable_for(key.name, key.namespace) if informer is not None else None

    def concerns(self, key: ClaimKey) -> bool:
        """Whether claimctl has to look at the claim: it has a reservation, is the sticky claim of a
        pod, or lists a workload."""
        if self.reservations_of(key) or self.sticky_pods_of(key):
            return True
        claim = self.claims.get(key.name, key.namespace)
        return claim is not None and _has_holder(claim)

    def slices_of(self, claim: ResourceClaim | None) -> tuple[ResourceSlice, ...]:
        """The slices of the pools of the allocation's devices, as far as they can be read now."""
        return self._pieces(pools_of(claim) if claim is not None else ())

    def _pieces(self, pools: Iterable[PoolKey]) -> tuple[ResourceSlice, ...]:
        unread = self.slices.unreadable_for
        pieces = (piece for pool in pools for piece in self.slices.by_index(BY_POOL, pool))
        return tuple(piece for piece in pieces if unread(piece.metadata.name) is None)

    def drivers_on(self, key: ClaimKey, node: str) -> frozenset[str]:
        """The drivers of the claim's devices that belong to the node; without a name, those of all
        claims of the namespace."""
        claims, is_named = self.claims.by_index(BY_NODE, (key.namespace, node)), True
        if key.name:
            claim = self.claims.get(key.name, key.namespace)
            claims = (claim,) if claim is not None else ()
            is_named = claim is not None and node in claim.nodes_named
        # many claims have devices of few pools
        pools = {pool for claim in claims for pool in pools_of(claim)}
        return drivers_on(node, pools, self._pieces(pools), is_named=is_named)

    def claims_on(self, piece: ResourceSlice) -> list[ClaimKey]:
        """The claims that are allocated in the pool of the slice."""
        claims = self.claims.by_index(BY_POOL, _pool(piece))
        return sorted(ClaimKey(*claim.metadata.key) for claim in claims)

    def concerned_claims(self) -> Iterator[ClaimKey]:
        """All claims that a controller reconciles when it begins to lead."""
        keys = {reserved_key(reservation) for reservation in self.reservations.items()}
        keys |= {
            ClaimKey(*claim.metadata.key) for claim in self.claims.items() if _has_holder(claim)
        }
        for pod in self.pods.items():
            keys |= set(_sticky_claims(pod))
        yield from sorted(keys)


def _has_holder(claim: ResourceClaim) -> bool:
    """Whether the list or ``spec.reservedFor`` (KEP-5194) names a workload."""
    return claim.spec.reserved_for is not None or not all(map(is_pod, claim.status.reserved_for))


def reserved_key(reservation: ClaimReservation) -> ClaimKey:
    return ClaimKey(reservation.metadata.namespace, reservation.spec.resource_claim_name)


def workload_key(reservation: ClaimReservation) -> WorkloadKey:
    return _key_of(reservation.spec.workload_ref, reservation)


def _ordinal(reservation: ClaimReservation) -> Iterable[tuple[WorkloadKey, Ordinal]]:
    """The workload and the ordinal of a sticky claim."""
    sticky = sticky_of(reservation.spec)
    return ((workload_key(reservation), sticky.whose),) if sticky is not None else ()


def _part(reservation: ClaimReservation) -> Iterable[WorkloadKey]:
    """What makes the pods of a sticky claim as a part of their workload."""
    part, namespace = part_of(reservation.spec), reservation.metadata.namespace
    if part is None:
        return ()
    return (WorkloadKey(part.api_group, part.kind, namespace, part.name),)


def _seniority(reservation: ClaimReservation) -> tuple[str, str]:
    created = reservation.metadata.creation_timestamp
    return (created.isoformat() if created else "", reservation.metadata.name)


def claims_of_pod(pod: Pod) -> tuple[ClaimKey, ...]:
    """The claims that the pod uses."""
    return _within((pod.metadata.namespace, claim_names(pod)))


def _sticky_claims(pod: Pod) -> Iterable[ClaimKey]:
    """The sticky claims that the pod names."""
    if not pod.metadata.annotations:
        return ()
    return [ClaimKey(pod.metadata.namespace, entry.claim) for entry in sticky_entries(pod)]


def ordinals_of(pod: Pod) -> set[tuple[WorkloadKey, Ordinal | None]]:
    """The workload and the ordinal whose sticky claims the pod names; also without the ordinal."""
    if not pod.metadata.annotations:
        return set()
    places = _named_places(pod)
    return {*places, *((key, None) for key, _ in places)}


def places_of(pod: Pod) -> list[tuple[WorkloadKey, Ordinal]]:
    """The workloads, each with an ordinal, that the pod may belong to, by the sticky claims that it
    names and by its name."""
    by_name = ((_key_of(ref, pod), ordinal) for ref, ordinal in places_by_name(pod))
    return list(dict.fromkeys((*_named_places(pod), *by_name)))


def _named_places(pod: Pod) -> list[tuple[WorkloadKey, Ordinal]]:
    """The workload and the ordinal of each sticky claim that the pod names."""
    return [(_key_of(entry.workload, pod), entry.ordinal) for entry in sticky_entries(pod)]


def _key_of(ref: WorkloadRef, holder: ObjectHeader) -> WorkloadKey:
    """The key of a workload that an object names in its own namespace."""
    return WorkloadKey(ref.api_group, ref.kind, holder.metadata.namespace, ref.name)


def without_policy(pod: Pod) -> tuple[WorkloadKey, ...]:
    """The workload of a pod that asks for sticky claims and has generated ones."""
    owner = pod.metadata.controller()
    if owner is None or not pod.metadata.annotations or not waits_for_policy(pod):
        return ()
    return (_key_of(owner_ref(owner), pod),)


def _keys(names: tuple[str, frozenset[str]]) -> tuple[ClaimKey, ...]:
    return tuple(ClaimKey(names[0], name) for name in sorted(names[1]))


_within = Remembered(_keys, most_bytes=8_000_000)
"""The keys of the claims of a namespace. The pods of a workload have equal ones."""


def _listed_groups(claim: ResourceClaim) -> Iterable[GroupKey]:
    names = sorted(groups_in(claim.status.reserved_for))
    return (GroupKey(claim.metadata.namespace, name) for name in names)


def _template_group(workload: Workload) -> Iterable[GroupKey]:
    if name := template_of(workload).spec.group_name:
        yield GroupKey(workload.metadata.namespace, name)


def _annotated_below(workload: Workload) -> Iterable[str]:
    meta = workload.metadata
    annotated = any(meta.annotation(name) is not None for name in DECIDING)
    return (meta.namespace,) if annotated and meta.controller() is not None else ()


_OF_WORKLOADS = {BY_GROUP: _template_group, ANNOTATED_BELOW: _annotated_below}


def claims_of_group(group: PodGroup) -> tuple[ClaimKey, ...]:
    """The claims that the group's spec names."""
    return _within((group.metadata.namespace, names_in(group.spec.resource_claims)))


def claims_of_replica_set(replica_set: ReplicaSet) -> tuple[ClaimKey, ...]:
    """The claims that its pods use."""
    template = replica_set.spec.template
    return _within((replica_set.metadata.namespace, frozenset(named_claims(template))))


def _pool(piece: ResourceSlice) -> PoolKey:
    return piece.spec.driver, piece.spec.pool.name


def _nodes_of(claim: ResourceClaim) -> list[tuple[str, str]]:
    """The claim's namespace with each node that the allocation names."""
    return [(claim.metadata.namespace, node) for node in sorted(claim.nodes_named)]


def _condition_holder(piece: ResourceSlice) -> Iterable[str]:
    if any(device.has_binding_conditions for device in piece.spec.devices or ()):
        yield ""
