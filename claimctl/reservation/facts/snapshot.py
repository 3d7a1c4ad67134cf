"""The input of a decision about one claim: caches, answers of live reads, and memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from math import inf

from claimctl.reservation.facts.decision import Write
from claimctl.reservation.facts.devices import (
    GONE_BESIDE_PODS_SECONDS,
    GONE_SECONDS,
    JudgedDevice,
    Loss,
    after_eviction,
    is_for_one_pod,
    judge,
    stays_gone,
)
from claimctl.reservation.facts.dialects import DIALECTS, Dialect
from claimctl.reservation.facts.memory import Memory, SeenGhost
from claimctl.reservation.facts.pods import Consumers
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import (
    LIMIT,
    groups_in,
    is_pod,
    is_pod_group,
    is_tombstone,
    uids_written_by,
)
from claimctl.reservation.facts.unreadable import about_claim
from claimctl.reservation.facts.workloads import WorkloadState
from claimctl.reservation.kinds.drivers import known_drivers
from claimctl.reservation.kinds.shipped import WORKLOAD_RESOURCES, workload_reference
from claimctl.wire.claims import Reference, ResourceClaim, ResourceSlice
from claimctl.wire.nodes import Node
from claimctl.wire.placement import NO_EXECUTE, admits, lasting_taints, selects
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import REALLOCATE_ANNOTATION, ClaimReservation
from claimctl.wire.unreadable import Unreadable
from claimctl.wire.workloads import WAIT_FOR_THEIR_PODS

STUCK_SECONDS = 10.0
"""After so many seconds, no pod of those that wait for the claim is about to be bound."""
_NEVER = datetime.min.replace(tzinfo=UTC)
CLOCK_SKEW = timedelta(seconds=60)
"""Clocks of different machines agree to within this time."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings of decisions. Durations are in seconds."""

    dialect: str = "hold"
    settle_seconds: float = 5.0
    """The settle time. It must exceed the lag of every scheduler's cache."""
    binding_seconds: float = 60.0
    """The binding time. It must exceed the time from a scheduler's read of a claim to its binding
    of a pod."""
    slow_binding_seconds: float = 600.0
    """The binding time of pods that may wait for a volume or for their gang, and of pods with
    unknown schedulers."""
    known_schedulers: frozenset[str] = frozenset({"default-scheduler"})
    """``schedulerName`` of schedulers without a Permit plugin, which would keep pods waiting."""
    kcm_cleans_mixed_lists: bool = True
    """Whether kube-controller-manager (KCM) removes dead pods from a list that also has references
    of unknown kinds (from Kubernetes 1.36)."""
    kcm_looks_at_claims: bool = True
    """Whether KCM looks at every claim when it starts, and at a claim that changes. KCM up to 1.33
    only looks at the claims of a pod that changes (kubernetes/kubernetes#132334)."""
    kcm_lists_finished_pods: bool = True
    """Whether KCM lists a finished pod again that was taken out, so that it needs a tombstone (up
    to Kubernetes 1.37)."""
    dead_reference_seconds: float = 10.0
    """How long claimctl waits for KCM to remove a dead pod."""
    makes_reservations: bool = True
    """Whether pods get the sticky claims that they ask for. A process before an uninstall ends what
    there is."""
    list_ahead: bool = False
    """Whether claimctl lists pending pods before the scheduler does (see
    ``reserved_for.listing_ahead``)."""
    crowd: int = 50
    """If more pods of a claim are pending, claimctl lists all of them ahead. Otherwise, only those
    at which a scheduler failed."""
    one_pod_drivers: frozenset[str] = frozenset(
        name for name, driver in known_drivers().items() if driver.wants_one_pod
    )
    """Drivers that refuse to prepare a claim whose list has more than one pod's entry."""
    refusing_drivers: frozenset[str] = frozenset()
    """Drivers that did not start a pod beside a hold, as this process saw."""
    max_seconds_without_pods: float = inf
    """For how long a claim may be held while no pod uses it, whatever holds it."""
    status_seconds: float = 10.0
    """Minimum seconds between status writes that only update counters."""
    fight_limit: int = 3
    """After so many writes of the same list, claimctl assumes that another client undoes them."""


@dataclass(frozen=True, slots=True)
class LiveList:
    """The namespace's pods by a quorum LIST that began after ``claim_version`` was read."""

    claim_version: str
    pods: tuple[Pod, ...]
    """The pods that name the claim."""
    uids: frozenset[str]
    """The UIDs of all pods in the namespace."""
    settled: bool = False
    """Whether the settle time had passed when the LIST began."""
    caught_up: bool = True
    """Whether the pod cache has reached the LIST's version, so that vanished pods are known."""
    unreadable: tuple[Unreadable, ...] = ()
    """Pods that cannot be read and may name the claim. ``uids`` has their UIDs, if known."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The answers of live reads."""

    gone_pods: frozenset[str] = frozenset()
    present_pods: frozenset[str] = frozenset()
    """UIDs of listed pods that exist although the cache lacks them.

    Both sets also have listed PodGroups."""
    live: LiveList | None = None
    claim_read_for: Write | None = None
    """If the snapshot's claim was read live: the write that needed this read."""
    last_attempt: bool = False
    """Whether the attempts before this one, each on a claim that was read live, all conflicted."""


@dataclass(frozen=True, slots=True)
class Held:
    """A ClaimReservation with the state of the workload that it names."""

    reservation: ClaimReservation
    workload: WorkloadState
    deleting_age: float = inf
    """Seconds since this process first saw the reservation being deleted, by whomever. Until the
    settle time has passed, another controller with a late cache may still add its hold."""
    idle_age: float | None = None
    """Seconds since the status's idleSince by this process's clock, or since this process last saw
    the claim in use if that is less; None if unknown."""
    idle_outdated: bool = False
    """Whether this process saw the claim in use after idleSince, which no status records."""
    unused_age: float | None = None
    """Seconds since the status's lastConsumerTime, as for ``idle_age``."""
    since_use: float = inf
    """Seconds since this process last saw a pod that used the claim, or was about to."""
    status_age: float = inf
    """Seconds since this process last wrote the status."""
    due_age: float = inf
    """Seconds since the status has had to change; inf if it need not wait for further changes."""
    repeated_statuses: int = 0
    """How often the same status was written lately and overwritten."""
    requests_met: tuple[str, ...] = ()
    """The annotations that asked for a release, and after which this process saw the claim
    deallocated."""
    api_version: str = ""
    """The version of the workload's kind; '' for a kind that claimctl reads in one version."""
    served_as: str = ""
    """The resource name of the workload's kind, as the cluster serves it; '' for a kind with a
    shipped rule, or if it is unknown."""

    wanted: ClaimReservation | None = None
    """For a sticky claim: the reservation as the annotations of its workload ask for it now."""
    above: str = ""
    """What is to be said of an object above the workload whose annotation made the reservation."""

    @property
    def resource(self) -> str:
        """The resource name of the workload's kind; '' if it is unknown."""
        ref = self.reservation.spec.workload_ref
        return self.served_as or WORKLOAD_RESOURCES.get((ref.api_group, ref.kind), "")

    @property
    def reference(self) -> Reference:
        """The reference to the workload's present incarnation; its resource is known."""
        ref = self.reservation.spec.workload_ref
        return workload_reference(ref, self.workload.uid, self.resource)

    @property
    def reference_to_any(self) -> Reference:
        """The reference to whatever incarnation there is."""
        return workload_reference(self.reservation.spec.workload_ref, "", self.resource)

    @property
    def name(self) -> str:
        return self.reservation.metadata.name

    def has_made(self, claim: ResourceClaim) -> bool:
        """Whether claimctl made the claim for this reservation."""
        return is_made_for(claim, self.reservation)

    @property
    def may_reallocate(self) -> bool:
        """Whether the reservation ever lets claimctl give up devices that its pods cannot use."""
        return self.reservation.spec.reallocate_after_seconds is not None

    @property
    def withdrawn_by_user(self) -> bool:
        """Whether a user deleted the reservation, directly or by removing the annotation. Garbage
        collection deletes it after its workload, the owner: then the workload is gone."""
        meta = self.reservation.metadata
        return meta.deleting and (self.workload.exists or meta.controller() is None)


def is_made_for(claim: ResourceClaim, reservation: ClaimReservation) -> bool:
    """Whether claimctl made the claim for the reservation."""
    maker = claim.metadata.controller()
    return maker is not None and maker.uid == reservation.metadata.uid


@dataclass(frozen=True)
class Snapshot:
    """Everything about one claim at one moment."""

    now: datetime
    namespace: str
    name: str
    claim: ResourceClaim | None
    reservations: tuple[Held, ...] = ()
    pods: tuple[Pod, ...] = ()
    """Pods that name the claim, from the cache."""
    ghosts: tuple[SeenGhost, ...] = ()
    """The known ghosts, from this process's watch and from statuses."""
    nodes: Mapping[str, Node] = field(default_factory=dict)
    claims: Mapping[str, ResourceClaim] = field(default_factory=dict)
    """The other claims of the namespace, by name."""
    slices: tuple[ResourceSlice, ...] = ()
    """The ResourceSlices of the claim's pools. Of most devices they have the name alone (see
    ``Device.is_special``)."""
    binding_conditions: bool = False
    """Whether a device with binding conditions is published, or may be."""
    groups: tuple[PodGroup, ...] = ()
    """The PodGroups that the claim lists, that its workloads name, or that share it."""
    to_create: ClaimReservation | None = None
    """The reservation of a sticky claim that a pod names, and that has none yet."""
    frozen: bool = False
    """Whether a DowngradePlan forbids new workload references in the namespace."""
    template_missing: bool = False
    template_refused: str = ""
    """The API server's message if it refused a claim made from the template."""
    deletion_refused: bool = False
    """Whether the API server refused to delete the claim before its reservation goes."""
    unreadable: tuple[Unreadable, ...] = ()
    """The unreadable objects that may concern the claim (see ``facts.unreadable``). The other
    fields may have the last readable version of such an object."""
    rules: Rules = Rules()
    evidence: Evidence = Evidence()
    memory: Memory = field(default_factory=Memory)

    @cached_property
    def unreadable_parts(self) -> tuple[Unreadable, ...]:
        """The unreadable objects because of which the controller leaves the claim alone."""
        return about_claim(self.unreadable) if self.unreadable else ()

    @property
    def references(self) -> tuple[Reference, ...]:
        return self.claim.status.reserved_for if self.claim else ()

    @property
    def no_template(self) -> bool:
        """Whether no claim can be created from the present template."""
        return self.template_missing or bool(self.template_refused)

    @property
    def allocated(self) -> bool:
        return self.claim is not None and self.claim.status.allocation is not None

    @property
    def shared(self) -> bool:
        """Whether the allocation admits any pod, so that pods are not listed (KEP-5194)."""
        return self.claim is not None and self.claim.is_open_to_any

    @property
    def deleting(self) -> bool:
        """Whether the claim is being deleted. The API then accepts no new entries of its list."""
        return self.claim is not None and self.claim.metadata.deleting

    @property
    def dialect(self) -> Dialect:
        """How the cluster lets a workload hold a claim."""
        return DIALECTS[self.rules.dialect]

    @cached_property
    def devices(self) -> tuple[JudgedDevice, ...]:
        """What the ResourceSlices say about each allocated device."""
        return tuple(judge(self.claim.devices if self.claim is not None else (), self.slices))

    @cached_property
    def loss(self) -> Loss | None:
        """Why no pod should be brought to the claim's devices; None if nothing is wrong with them.

        A hold brings each new pod to the same devices: the scheduler looks at slices only when it
        allocates. The taint of a DeviceTaintRule shows in the pods (``evicts_a_pod``). A user may
        want to keep devices that no pod can use, but not those that evict pods without end.
        """
        refs = (held.reservation.spec.workload_ref for held in self.reservations)
        kinds = {ref.kind for ref in refs if (ref.api_group, ref.kind) not in WAIT_FOR_THEIR_PODS}
        if self.memory.evicting:
            text = f"a taint of a device evicts its pods (NoExecute); {after_eviction(kinds)}"
            return Loss(Reason.DEVICE_TAINTED, text)
        never = not all(held.may_reallocate for held in self.reservations)
        patience = GONE_BESIDE_PODS_SECONDS if self.consumers.bound else GONE_SECONDS
        losses = []
        for judged in self.devices:
            if judged.taint is not None:
                evicts = judged.taint.effect == NO_EXECUTE
                text = f"{judged.problem}; {after_eviction(kinds)}" if evicts else judged.problem
                kept = never and not evicts
                losses.append(Loss(Reason.DEVICE_TAINTED, text, None if kept else 0.0))
            elif stays_gone(judged, age := self.memory.gone_age.get(judged.key, 0.0)):
                left = max(patience - age, 0.0)
                losses.append(Loss(Reason.DEVICE_GONE, judged.problem, None if never else left))
        return min(losses, key=lambda loss: inf if loss.after is None else loss.after, default=None)

    @cached_property
    def late(self) -> Reason | None:
        """Why the list belongs to the pods, so that a hold stands in it only while the last pod
        leaves (see ``reserved_for.late``); None if a hold may stand beside any pod."""
        if self.claim is None or not self.lists_each_pod or self.group_listed:
            return None
        drivers = {device.driver for device in self.claim.devices}
        if drivers & self.rules.one_pod_drivers or is_for_one_pod(self.devices):
            return Reason.HELD_BETWEEN_PODS
        return Reason.DRIVER_REFUSES_HOLD if drivers & self.rules.refusing_drivers else None

    @property
    def lists_each_pod(self) -> bool:
        """Whether schedulers list each pod that has no PodGroup before they bind it."""
        return self.claim is not None and self.dialect.lists_each_pod(self.claim)

    @cached_property
    def non_pods(self) -> tuple[Reference, ...]:
        """The listed references to workloads, PodGroups and tombstones, so to anything but pods. A
        list has few of them."""
        return tuple(reference for reference in self.references if not is_pod(reference))

    @property
    def group_listed(self) -> bool:
        """Whether the list has a PodGroup."""
        return any(map(is_pod_group, self.non_pods))

    @cached_property
    def admits_unlisted(self) -> bool:
        """Whether schedulers bind any pod without a write to the claim, as the list is now."""
        return self.dialect.admits_unlisted(self.non_pods)

    @property
    def needs_fence(self) -> bool:
        """Whether pods may be bound without a write to the claim, so that a release needs a
        fence."""
        return self.shared or self.group_listed or self.admits_unlisted

    @property
    def shares_by_group(self) -> bool:
        """Whether a pod may use the claim through a PodGroup, without an entry of its own: this
        process saw a group in the list, or one may have left it just before."""
        seen = self.memory.openings
        if self.group_listed or seen.group_age < inf:
            return True
        grouped = bool(self.groups) or bool(self.consumers.groups)
        recent = seen.watched_age < self.rules.settle_seconds
        return self.dialect.groups and grouped and recent

    @property
    def one_by_one(self) -> bool:
        """Whether each pod of the present allocation was listed before it was bound."""
        return self.lists_each_pod and not self.shares_by_group

    @cached_property
    def listed_uids(self) -> frozenset[str]:
        return frozenset(reference.uid for reference in self.references)

    @cached_property
    def written_uids(self) -> frozenset[str]:
        """UIDs of the entries that claimctl wrote, by the claim's managedFields."""
        return uids_written_by(self.claim) if self.claim is not None else frozenset()

    @property
    def ahead_unseen(self) -> frozenset[str]:
        """UIDs of the pods that claimctl listed and the cache does not show: they are gone, or the
        cache is late and some of them may be pending."""
        seen = {pod.metadata.uid for pod in self.pods}
        entries = (entry.uid for entry in self.references if is_pod(entry))
        return self.written_uids.intersection(entries) - seen

    @cached_property
    def consumers(self) -> Consumers:
        """The table of the cached pods."""
        return self.table_of(self.pods)

    def table_of(self, pods: tuple[Pod, ...]) -> Consumers:
        """The table of these pods, of the cache or of a live LIST."""
        full = len(self.references) >= LIMIT and not self.shared and not self.group_listed
        relisted = self.rules.kcm_lists_finished_pods
        return Consumers.of(pods, self.references, self.written_uids, full=full, relisted=relisted)

    @cached_property
    def asked_to_reallocate(self) -> frozenset[str]:
        """The names of the reservations whose users asked to give the claim's devices up at once,
        without a timeout."""
        uid = self.claim.metadata.uid if self.claim is not None else ""
        return frozenset(
            held.name
            for held in self.reservations
            if uid and held.reservation.metadata.annotation(REALLOCATE_ANNOTATION) == uid
        )

    @cached_property
    def sharing_groups(self) -> frozenset[str]:
        """The names of the PodGroups whose pods share the claim."""
        groups = (group for group in self.groups if group.shares(self.name))
        return frozenset(group.metadata.name for group in groups)

    @cached_property
    def stuck_since(self) -> datetime | None:
        """The time since which a pod has waited in vain for a claim without bound pods, or None.

        The scheduler frees an unused claim at once for a pod that finds no node with it, for
        whatever reason. A hold forbids that.
        """
        unused, stuck = self.unused_since, self.consumers.stuck
        return max(min(stuck.values()), unused) if stuck and unused is not None else None

    @cached_property
    def unused_since(self) -> datetime | None:
        """The time since which no pod has used the allocated claim; None if one uses it.

        The time is not before the last consumer went, and not before the claim was allocated. An
        allocation that has no time yet is new: the pod for which it was made is about to be bound.
        A time that a wrong clock wrote does not count.
        """
        if not self.allocated or self.consumers.bound:
            return None
        allocation = self.claim.status.allocation if self.claim else None
        given = allocation.allocation_timestamp if allocation else None
        statuses = [held.reservation.status for held in self.reservations]
        allocated = [given] if given else [status.allocation_time for status in statuses]
        used = [
            status.last_consumer_time
            if held.unused_age is None
            else self.now - timedelta(seconds=held.unused_age)
            for held, status in zip(self.reservations, statuses, strict=True)
        ]
        times = [*filter(None, used), *(list(filter(None, allocated)) or [self.now])]
        return max((time for time in times if time - self.now < CLOCK_SKEW), default=_NEVER)

    @cached_property
    def node_missing(self) -> bool:
        """Whether what the pending pods lack is the node itself: each node that the allocation can
        be used on is gone, cordoned, or has a taint that none of them tolerates."""
        allocation = self.claim.status.allocation if self.claim else None
        if allocation is None or not self.nodes:
            return False
        pending, gated = self.consumers.pending, self.consumers.gated
        tolerations = {pod.spec.tolerations for uid, pod in pending.items() if uid not in gated}
        return bool(tolerations) and not any(
            admits(lasting_taints(node), tolerated)
            for node in self.nodes.values()
            if selects(allocation.node_selector, node)
            for tolerated in tolerations
        )

    @cached_property
    def until_in_vain(self) -> float | None:
        """Seconds until pods wait in vain, so that none should be listed; 0 if they do now. None if
        no pod waits so."""
        asked, reservations = self.asked_to_reallocate, self.reservations
        lost = self.loss is not None and self.loss.after == 0
        if lost or any(held.name in asked and held.may_reallocate for held in reservations):
            return 0.0
        since = self.stuck_since
        if since is None:
            return None
        return max(STUCK_SECONDS - (self.now - since).total_seconds(), 0.0)

    @cached_property
    def group_names(self) -> frozenset[str]:
        """The names of the PodGroups of the claim's workloads: a pod template or a pod names it, a
        status records it, or claimctl made it for a workload."""
        names, workloads = set(), set()
        for held in self.reservations:
            names |= {held.workload.pod_group, held.reservation.status.pod_group_name}
            ref = held.reservation.spec.workload_ref
            workloads.add((ref.kind, ref.name))
        for group in self.groups:
            owners = {(owner.kind, owner.name) for owner in group.metadata.owner_references}
            if group.made_by_claimctl and owners & workloads:
                names.add(group.metadata.name)
        return frozenset(filter(None, names))

    @cached_property
    def own_groups(self) -> frozenset[str]:
        """UIDs of the listed groups that belong to the claim's workloads, or that claimctl made:
        such a group may outlive its reservation, while its workload goes on making pods."""
        made = {group.metadata.uid for group in self.groups if group.made_by_claimctl}
        return frozenset(
            entry.uid
            for entry in self.non_pods
            if is_pod_group(entry) and (entry.name in self.group_names or entry.uid in made)
        )

    @cached_property
    def gone_groups(self) -> tuple[Reference, ...]:
        """Listed groups of the claim's workloads whose objects are gone; KCM should remove them."""
        if not self.dialect.groups:
            return ()
        known = {group.metadata.uid for group in self.groups}
        return tuple(
            entry
            for entry in self.non_pods
            if is_pod_group(entry) and entry.name in self.group_names and entry.uid not in known
        )

    @cached_property
    def listed_groups(self) -> frozenset[str]:
        """The names of the PodGroups whose pods need no entry: their group is listed, or KCM will
        list it, even for a finished pod. It removes a group only if the group's object is gone. So
        finished pods need no tombstones while their group is listed, but at the fence."""
        return groups_in(self.non_pods) | self.sharing_groups

    @property
    def too_many_finished(self) -> bool:
        """Whether the list at a fence has no room for the tombstones of all finished pods. Then the
        group has to be deleted first: KCM writes nothing for the pods of a group that is gone."""
        tombstones = {entry.uid for entry in self.non_pods if is_tombstone(entry)}
        return len(tombstones | self.consumers.tombstones.keys()) > LIMIT

    @property
    def fights(self) -> bool:
        """Whether another client keeps undoing claimctl's writes."""
        return self.memory.repeated_writes >= self.rules.fight_limit

    @property
    def settling_left(self) -> float:
        """Seconds until every scheduler sees the claim's present version, or its deletion."""
        age = self.memory.deleting_age if self.deleting else self.memory.version_age
        return max(self.rules.settle_seconds - age, 0.0)

    @property
    def any_live(self) -> LiveList | None:
        """The live LIST, if it was made for the claim's present version. It may lack pods that
        vanished just before."""
        live = self.evidence.live
        if self.claim is None or live is None:
            return None
        return live if live.claim_version == self.claim.metadata.resource_version else None

    @property
    def live(self) -> LiveList | None:
        """The same, if pods that vanished just before are known, too."""
        live = self.any_live
        return live if live is not None and live.caught_up else None
