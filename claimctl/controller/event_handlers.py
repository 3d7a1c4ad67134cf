"""The event handlers: they put a key into a queue for each change in the caches.

Each handler first notes the change in ``observations``, even while another replica leads. It adds
keys to queues only while this process leads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from claimctl.controller.caches.chains import Climber, PodKey
from claimctl.controller.caches.chains import group_of as group_of_owner
from claimctl.controller.caches.informers import (
    DECIDING,
    Caches,
    claims_of_group,
    claims_of_pod,
    claims_of_replica_set,
    places_of,
    reserved_key,
    without_policy,
    workload_key,
)
from claimctl.controller.keys import ClaimKey, GroupKey, PlanKey, WorkloadKey
from claimctl.controller.observations.observations import (
    Observations,
    just_allocated,
    same_to_claims,
)
from claimctl.controller.observations.openings import is_schedulable
from claimctl.controller.unreadable import UnreadableObjects
from claimctl.kube.informer import Change, Informer
from claimctl.reservation.annotation import OF_WORKLOADS, is_orphan
from claimctl.reservation.facts.devices import is_for_one_pod, judge
from claimctl.reservation.facts.ordinals import part_of
from claimctl.reservation.facts.pods import (
    evicts_a_pod,
    is_bound,
    is_done,
    is_finished,
)
from claimctl.reservation.facts.references import FEW_ENTRIES, groups_in, is_pod_group
from claimctl.reservation.facts.workloads import observe, own_annotations, verdict_of
from claimctl.wire.claims import ResourceClaim, ResourceSlice
from claimctl.wire.meta import HasMetadata, ObjectMeta
from claimctl.wire.nodes import Node
from claimctl.wire.ordinals import (
    STATEFUL_SET,
    OrdinalWish,
    may_have_earlier_template,
    ordinal_wish,
    wants_the_same,
)
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import (
    STICKY_ANNOTATION,
    ClaimReservation,
    DowngradePlan,
)
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DOWNGRADEPLANS,
    PODGROUPS,
    PODS,
    RESOURCECLAIMS,
)
from claimctl.wire.unreadable import Unreadable
from claimctl.wire.workloads import CustomWorkload, ReplicaSet, Workload, template_of

T = TypeVar("T", bound=HasMetadata)


@dataclass(frozen=True, slots=True)
class Queues:
    """The queues, as functions that add a key."""

    claims: Callable[[ClaimKey], None]
    """Adds a claim after the delay within which its changes lead to one reconcile."""
    soon: Callable[[ClaimKey], None]
    """Adds a claim after a short delay: a pod has come that may be listed ahead."""
    urgent: Callable[[ClaimKey], None]
    """Adds a claim without delay: pods may be listed ahead, a release may begin or go on, or
    kube-controller-manager's loop makes hundreds of writes a second."""
    workloads: Callable[[WorkloadKey], None]
    plans: Callable[[PlanKey], None]
    groups: Callable[[GroupKey], None]
    new_groups: Callable[[GroupKey], None]
    """Adds a PodGroup without delay: it does not exist, and its pods are about to be created."""


class Triggers:
    """Subscribes to every informer. It adds no keys before ``lead``."""

    def __init__(
        self, caches: Caches, observations: Observations, queues: Queues, climber: Climber
    ) -> None:
        self._climber = climber
        self._caches = caches
        self._seen = observations
        self._queues = queues
        self._leading = False
        self._unreadable = UnreadableObjects(caches)
        observations.ghosts.signs.is_node = self._is_node
        observations.ghosts.signs.drivers_on = caches.drivers_on
        caches.nodes.subscribe(self._node)
        caches.claims.subscribe(self._claim)
        caches.pods.subscribe(self._pod)
        caches.reservations.subscribe(self._reservation)
        caches.replica_sets.subscribe(self._replica_set)
        caches.pods.on_list(observations.pods_listed)
        caches.reservations.on_list(self._reservations_listed)
        caches.claims.on_list(self._claims_listed)
        self._reserved: tuple[str, frozenset[ClaimKey]] = ("", frozenset())
        caches.plans.subscribe(self._plan)
        caches.slices.subscribe(self._slice)
        caches.groups.on_follow = self._follow_groups
        for followed in caches.informers():
            followed.on_unread(self._unread)
        for kind, informer in caches.workloads.items():
            informer.subscribe(partial(self._workload, kind))
        caches.kinds.on_follow = self._follow

    def leads(self) -> bool:
        return self._leading

    def lead(self) -> None:
        """Begin to fill the queues, first with everything that concerns claimctl."""
        self._leading = True
        for pod in self._caches.pods.items():
            self._note_owners(pod)
        self._enqueue(self._caches.concerned_claims())
        for kind, informer in self._caches.workloads.items():
            for workload in informer.items():
                meta = workload.metadata
                self._enqueue_workload(WorkloadKey(*kind, meta.namespace, meta.name), workload)
                self._enqueue_group_of(meta.namespace, workload)
        self._enqueue_orphans(self._caches.reservations.items())
        for group in self._caches.groups.items():
            self._queues.groups(GroupKey(group.metadata.namespace, group.metadata.name))
        for plan in self._caches.plans.items():
            self._queues.plans(PlanKey(plan.metadata.name))

    def rest(self) -> None:
        """Stop filling the queues: another replica leads, or this process stops."""
        self._leading = False

    def _enqueue(self, keys: Iterable[ClaimKey], *, urgent: bool = False) -> None:
        self._add(keys, self._queues.urgent if urgent else self._queues.claims)

    def _add(self, keys: Iterable[ClaimKey], add: Callable[[ClaimKey], None]) -> None:
        if not self._leading:
            return
        for key in filter(self._caches.concerns, keys):
            add(key)

    def _unread(self, unread: Unreadable, gone: bool) -> None:
        """An object has become unreadable, is readable again, or was deleted meanwhile."""
        keys = tuple(self._unreadable.claims(unread))
        if gone and unread.resource.plural == PODS.plural and unread.uid:
            self._seen.ghosts.vanished_unread(unread, keys)
        if not self._leading:
            return
        self._enqueue(keys)
        for key in keys:
            self._enqueue_groups(key, (self._caches.claims.get(key.name, key.namespace),))
        for workload in self._unreadable.workloads(unread):
            self._enqueue_workload(workload, self._caches.workload(workload))
        if unread.resource.plural == PODGROUPS.plural and unread.identified:
            self._queues.groups(GroupKey(unread.namespace, unread.name))
        for plan in self._caches.plans.items():
            if unread.resource.plural == DOWNGRADEPLANS.plural:
                self._queues.plans(PlanKey(plan.metadata.name))

    def _claim(self, change: Change[ResourceClaim]) -> None:
        key = ClaimKey(change.namespace, change.name)
        self._seen.claim_changed(change)
        self._seen.list_changed(change, self._caches.pods_of(key))
        self._note_list(key, change)
        own = change.new is not None and self._seen.own_writes.awaited(
            RESOURCECLAIMS, change.new.metadata
        )
        self._enqueue((key,), urgent=own or just_allocated(change))
        self._enqueue_holders_below(key)
        if change.old is None or change.new is None or _concerns_groups(change.old, change.new):
            self._enqueue_groups(key, (change.old, change.new))

    def _reservations_listed(self, before: str, version: str) -> None:
        """Note which claims had a reservation then: later ones may come before the claims do."""
        keys = frozenset(map(reserved_key, self._caches.reservations.items()))
        self._reserved = (version, keys) if not before else ("", frozenset())
        self._seen.claims.reservations_listed(version)

    def _claims_listed(self, before: str, version: str) -> None:
        at, keys = self._reserved
        self._seen.claims_listed(before, version, keys if at == version else ())

    def _note_list(self, key: ClaimKey, change: Change[ResourceClaim]) -> None:
        """Note the pods that this version lists first: the next version may not list them."""
        if change.new is None:
            return
        before = change.old.status.reserved_for if change.old is not None else ()
        known = {entry.uid for entry in before}
        added = [entry for entry in change.new.status.reserved_for if entry.uid not in known]
        if not added:
            return
        shown = {pod.metadata.uid for pod in self._caches.pods_of(key)}
        if unseen := [entry for entry in added if entry.uid not in shown]:
            unread = frozenset(item.uid for item in self._unreadable.about(key, change.new))
            version = change.new.metadata.resource_version
            self._seen.ghosts.observe_list(key, unseen, unread, version)

    def _enqueue_groups(self, key: ClaimKey, claims: Iterable[ResourceClaim | None]) -> None:
        """Add the groups that share the claim or that it lists."""
        if not self._leading:
            return
        names = {group.metadata.name for group in self._caches.groups.sharing(key)}
        for claim in filter(None, claims):
            names |= groups_in(claim.status.reserved_for)
        for name in sorted(names):
            self._queues.groups(GroupKey(key.namespace, name))

    def _group(self, change: Change[PodGroup]) -> None:
        self._seen.group_changed(change)
        if not self._leading:
            return
        self._queues.groups(GroupKey(change.namespace, change.name))
        self._enqueue(_keys(claims_of_group, change))
        listing = self._caches.claims_listing(GroupKey(change.namespace, change.name))
        self._enqueue(ClaimKey(*claim.metadata.key) for claim in listing)

    def _enqueue_group_of(self, namespace: str, workload: Workload | None) -> None:
        name = template_of(workload).spec.group_name if workload is not None else ""
        if self._leading and name:
            key = GroupKey(namespace, name)
            missing = self._caches.groups.get(key) is None
            (self._queues.new_groups if missing else self._queues.groups)(key)

    def _pod(self, change: Change[Pod]) -> None:
        self._seen.pod_changed(change)
        if same_to_claims(change):
            return
        keys = _keys(claims_of_pod, change)
        if change.new is not None and is_bound(change.new) and change.new.status.conditions:
            self._note_eviction(change.new, keys)
            self._note_start(change.new, keys)
        if not self._leading:
            return
        ended = change.new is not None and (is_finished(change.new) or self._leaves(change, keys))
        # a plan takes PodGroups out of the lists, and kubelets refuse pods that are not listed then
        leaves = bool(len(self._caches.plans) and change.new and change.new.spec.group_name)
        self._enqueue(keys, urgent=ended or leaves)
        if _arrives(change):
            self._add(keys, self._queues.soon)
            # the pod waits for the claim that claimctl is to make
            self._add(
                (key for key in keys if self._caches.sticky_pods_of(key)), self._queues.urgent
            )
        if change.old is None and change.new is not None:
            self._note_owners(change.new)
            for workload in without_policy(change.new):
                self._queues.workloads(workload)
            for key, ordinal in places_of(change.new):
                # the new pod may name another claim of the ordinal, or none
                self._enqueue(self._caches.claims_of_ordinal(key, ordinal))
            # it may be the leader to whom the workers' StatefulSet of that name belongs
            self._enqueue(self._claims_of_part(STATEFUL_SET, change))
        if change.new is None:
            # no pod uses these claims any more, so that a release may begin
            unused = (key for key in keys if all(map(is_done, self._caches.pods_of(key))))
            self._enqueue(unused, urgent=True)

    def _claims_of_part(self, kind: tuple[str, str], change: Change[Any]) -> list[ClaimKey]:
        """The sticky claims of the pods that an object of the kind makes as a part of a
        workload."""
        key = WorkloadKey(*kind, change.namespace, change.name)
        return self._caches.claims_of_part(key)

    def _follow_groups(self, informer: Informer[PodGroup]) -> None:
        informer.subscribe(self._group)
        informer.on_unread(self._unread)

    def _follow(self, kind: tuple[str, str], informer: Informer[Any]) -> None:
        informer.subscribe(partial(self._workload, kind))
        informer.on_unread(self._unread)
        informer.on_list(lambda before, version: self.kinds_changed())

    def kinds_changed(self) -> None:
        """Look again at what depends on the kinds of workloads that can be read."""
        if not self._leading:
            return
        for pod in self._caches.pods.items():
            self._note_owners(pod)
        self._enqueue_orphans(self._caches.reservations.items())
        for reservation in self._caches.reservations.items():
            ref = reservation.spec.workload_ref
            if (ref.api_group, ref.kind) in self._caches.kinds.states or self._below(reservation):
                self._queues.claims(reserved_key(reservation))
        for kind, informer in self._caches.workloads.items():
            for meta in (workload.metadata for workload in informer.items()):
                if meta.controller() is not None and any(_annotated(meta)):
                    self._queues.workloads(WorkloadKey(*kind, meta.namespace, meta.name))

    def owner_known(self, pods: Iterable[PodKey]) -> None:
        """Go on with the chains of pods, one of whose owners has become known."""
        makers = set[WorkloadKey]()
        for pod in filter(None, (self._caches.pods.get(*key) for key in pods)):
            self._note_owners(pod)
            self._enqueue(claims_of_pod(pod))
            if (owner := pod.metadata.controller()) is not None:
                namespace = pod.metadata.namespace
                makers.add(WorkloadKey(group_of_owner(owner), owner.kind, namespace, owner.name))
        for maker in makers:
            self._enqueue(self._caches.claims_of_part(maker))

    def _note_owners(self, pod: Pod) -> None:
        """Note the claims that the workloads above the pod use, and look at those workloads."""
        if not self._leading:
            return
        chains, namespace = self._climber.chains, pod.metadata.namespace
        owners = chains.above(pod)
        for owner in owners:
            self._caches.kinds.note_owner((group_of_owner(owner), owner.kind))
        if not self._caches.kinds.informers():
            return
        chains.note(pod, owners)
        for owner in owners:
            key = WorkloadKey(group_of_owner(owner), owner.kind, namespace, owner.name)
            if key[:2] in self._caches.kinds.states:
                self._enqueue_workload(key, self._caches.workload(key))
        if (unknown := chains.unknown(pod)) is not None:
            key = WorkloadKey(group_of_owner(unknown), unknown.kind, namespace, unknown.name)
            self._climber.ask(key, unknown, (pod.metadata.name, namespace))
            self._queues.workloads(key)

    def _note_eviction(self, pod: Pod, keys: Iterable[ClaimKey]) -> None:
        """Note an eviction now: the pod may be gone before the next reconcile."""
        for key in keys:
            claim = self._caches.claims.get(key.name, key.namespace)
            if claim is not None and evicts_a_pod(claim, (pod,)):
                self._seen.claims.evicts(key)

    def _note_start(self, pod: Pod, keys: Iterable[ClaimKey]) -> None:
        """Note a start now: the next reconcile may come after it."""
        for key in keys:
            claim = self._caches.claims.get(key.name, key.namespace)
            if claim is not None and len(claim.status.reserved_for) <= FEW_ENTRIES:
                self._seen.pod_beside(key, claim, pod)

    def _leaves(self, change: Change[Pod], keys: Iterable[ClaimKey]) -> bool:
        """Whether the pod begins to leave a list that belongs to pods alone: a late hold has to
        join it before kube-controller-manager removes the pod."""
        old, new = change.old, change.new
        if new is None or not new.metadata.deleting or (old is not None and old.metadata.deleting):
            return False
        claims = (self._caches.claims.get(key.name, key.namespace) for key in keys)
        return any(claim is not None and self._wants_one_pod(claim) for claim in claims)

    def _wants_one_pod(self, claim: ResourceClaim) -> bool:
        devices = judge(claim.devices, self._caches.slices_of(claim))
        return is_for_one_pod(devices) or self._seen.drivers.want_one_pod(claim)

    def _reservation(self, change: Change[ClaimReservation]) -> None:
        self._seen.reservation_changed(change)
        if change.old is not None and not self._caches.reservations_of(reserved_key(change.old)):
            self._seen.ghosts.forget_record(reserved_key(change.old))
        written, meta = self._seen.own_writes, change.new.metadata if change.new else None
        own = meta is not None and written.awaited(CLAIMRESERVATIONS, meta)
        last = meta is not None and written.was_last(CLAIMRESERVATIONS, meta)
        for reservation in (change.old, change.new):
            if reservation is None or not self._leading:
                continue
            hurries = own or change.old is None or _takes_claim_along(change)
            if not last:
                add = self._queues.urgent if hurries else self._queues.claims
                add(reserved_key(reservation))
            key = workload_key(reservation)
            if change.old is None or change.new is None:
                self._enqueue_workload(key, self._caches.workload(key))
                self._enqueue_group_of(key.namespace, self._caches.workload(key))
            self._enqueue_groups(reserved_key(reservation), ())
        self._enqueue_orphans((change.new,) if change.new is not None else ())

    def _enqueue_orphans(self, reservations: Iterable[ClaimReservation]) -> None:
        """Add the workloads, there or gone, whose orphaned reservations are to be cleared up."""
        for reservation in reservations:
            if self._leading and is_orphan(reservation):
                self._queues.workloads(workload_key(reservation))

    def _workload(self, kind: tuple[str, str], change: Change[Workload]) -> None:
        key = WorkloadKey(*kind, change.namespace, change.name)
        self._seen.workload_changed(key)
        if _essence(change.old) == _essence(change.new):
            self._enqueue(self._ordinals_changed(key, change))
            return
        before, after = (it.metadata if it else ObjectMeta() for it in (change.old, change.new))
        if _annotated(before) != _annotated(after):
            self._enqueue_annotated_below(key.namespace)
        for workload in (change.old, change.new):
            self._enqueue_workload(key, workload)
            self._enqueue_group_of(key.namespace, workload)
        ended = change.new is None or observe(change.new, "").ended
        keys = [reserved_key(reservation) for reservation in self._caches.reservations_for(key)]
        keys += self._claims_of_part(kind, change)
        if change.old is None:
            # their pods may have come first
            waiting = self._caches.pods_of_ordinal(key, None)
            keys += [claim for pod in waiting for claim in claims_of_pod(pod)]
        self._enqueue(keys, urgent=ended)

    def _ordinals_changed(self, key: WorkloadKey, change: Change[Workload]) -> list[ClaimKey]:
        """The sticky claims of ordinals that the workload wants no more, or wants again, or whose
        pods get another pod template now."""
        old, new = change.old, change.new
        if old is None or new is None or isinstance(new, CustomWorkload):
            # what a rule says of the ordinals belongs to the essence
            return []
        if wants_the_same(old, new):
            return []
        reservations = self._caches.reservations_for(key) + self._caches.reservations_in_part(key)
        return [
            reserved_key(reservation)
            for reservation in reservations
            if (ordinal := _ordinal_in(reservation)) is not None
            and _wishes(old, ordinal) != _wishes(new, ordinal)
        ]

    def _enqueue_workload(self, key: WorkloadKey, workload: Workload | None) -> None:
        """Add a workload that is or was annotated, that owns a reservation, or that is named by one
        that an earlier workload has left behind."""
        if not self._leading or workload is None:
            return
        owned = any(
            is_orphan(reservation)
            or (
                reservation.spec.sticky is None
                and (owner := reservation.metadata.controller()) is not None
                and owner.uid == workload.metadata.uid
            )
            for reservation in self._caches.reservations_for(key)
        )
        asked = map(workload.metadata.annotation, OF_WORKLOADS)
        in_template = template_of(workload).metadata.annotation(STICKY_ANNOTATION)
        if owned or in_template is not None or any(value is not None for value in asked):
            self._queues.workloads(key)

    def _enqueue_annotated_below(self, namespace: str) -> None:
        """Add the annotated workloads that belong to other objects: those may decide now, or not
        any more."""
        for key, _ in self._caches.annotated_below(namespace) if self._leading else ():
            self._queues.workloads(key)

    def _enqueue_holders_below(self, claim: ClaimKey) -> None:
        """Add the workloads with a hold of the claim that belong to other objects: the hold of such
        an object may be in the list now."""
        for reservation in self._caches.reservations_of(claim) if self._leading else ():
            if self._below(reservation):
                self._queues.workloads(workload_key(reservation))

    def _below(self, reservation: ClaimReservation) -> bool:
        """Whether the workload of the reservation belongs to another object."""
        workload = self._caches.workload(workload_key(reservation))
        return workload is not None and workload.metadata.controller() is not None

    def _replica_set(self, change: Change[ReplicaSet]) -> None:
        """A ReplicaSet may make pods for the claim of a Deployment that is gone."""
        self._enqueue(_keys(claims_of_replica_set, change), urgent=change.new is None)

    def ghost_changed(self, key: ClaimKey) -> None:
        """Note that what a ghost of a claim waits for has changed; without a name, it is a ghost of
        all claims of the namespace."""
        keys = self._caches.concerned_claims() if not key.name and self._leading else (key,)
        self._enqueue((other for other in keys if other.namespace == key.namespace), urgent=True)

    def _node(self, change: Change[Node]) -> None:
        if self._seen.node_changed(change):
            for key in sorted(self._seen.ghosts.claims_on(change.name)):
                self.ghost_changed(key)

    def _is_node(self, name: str) -> bool:
        """Whether there is a Node of this name; it may be one that cannot be read."""
        nodes = self._caches.nodes
        return nodes.get(name) is not None or nodes.unreadable_for(name) is not None

    def _slice(self, change: Change[ResourceSlice]) -> None:
        """Look at the claims in the slice's pool: their devices may be gone or broken now, or not
        any more."""
        old, new = change.old, change.new
        pieces = (old, new) if old is None or new is None or old.spec != new.spec else ()
        for piece in filter(None, pieces):
            self._enqueue(self._caches.claims_on(piece))

    def _plan(self, change: Change[DowngradePlan]) -> None:
        if not self._leading:
            return
        self._queues.plans(PlanKey(change.name))
        old, new = change.old, change.new
        if old is None or new is None or old.status.phase != new.status.phase:
            namespaces = {
                name for plan in (old, new) if plan for name in plan.spec.namespaces or ("",)
            }
            for key in self._caches.concerned_claims():
                if "" in namespaces or key.namespace in namespaces:
                    self._queues.claims(key)


def _takes_claim_along(change: Change[ClaimReservation]) -> bool:
    """Whether the reservation of a sticky claim begins to be deleted: the claim has to be, too,
    before a new workload of the name has pods."""
    old, new = change.old, change.new
    if old is None or new is None or new.spec.sticky is None:
        return False
    return new.metadata.deleting and not old.metadata.deleting


def _ordinal_in(reservation: ClaimReservation) -> int | None:
    """The ordinal of a sticky claim in what makes its pods; None for another claim."""
    part, sticky = part_of(reservation.spec), reservation.spec.sticky
    if part is not None:
        return part.ordinal
    return sticky.ordinal if sticky is not None else None


def _wishes(workload: Workload, ordinal: int) -> tuple[OrdinalWish, bool]:
    """What the workload wants of an ordinal, and whether its pods may have an earlier template."""
    return ordinal_wish(workload, ordinal), may_have_earlier_template(workload, ordinal)


def _keys(claims: Callable[[T], Iterable[ClaimKey]], change: Change[T]) -> list[ClaimKey]:
    """The claims that either version of the object names."""
    versions = (version for version in (change.old, change.new) if version is not None)
    return sorted({key for version in versions for key in claims(version)})


def _arrives(change: Change[Pod]) -> bool:
    """Whether a scheduler begins to schedule the pod now."""
    old, new = change.old, change.new
    if new is None or change.relist or not is_schedulable(new):
        return False
    return old is None or not is_schedulable(old)


def _concerns_groups(old: ResourceClaim, new: ResourceClaim) -> bool:
    """Whether the change may matter to PodGroups: the allocation, or the listed groups."""
    before = [entry for entry in old.status.reserved_for if is_pod_group(entry)]
    after = [entry for entry in new.status.reserved_for if is_pod_group(entry)]
    lost = (old.status.allocation is None) != (new.status.allocation is None)
    return lost or before != after


def _annotated(meta: ObjectMeta) -> tuple[str | None, ...]:
    """The annotations that decide whether those of objects below count."""
    return tuple(map(meta.annotation, DECIDING))


def _essence(workload: Workload | None) -> Any:
    """The parts of a workload that matter to reservations; its status changes with every pod."""
    if workload is None:
        return None
    meta, ours = workload.metadata, own_annotations(workload.metadata)
    return (
        meta.uid,
        meta.deleting,
        meta.controller(),
        ours,
        template_of(workload),
        verdict_of(workload),
    )
