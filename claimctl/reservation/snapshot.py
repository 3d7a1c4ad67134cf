"""What a decision about one claim is made from, and what can be asked for on top."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import inf

from claimctl.reservation.decision import Write
from claimctl.reservation.pods import Consumers
from claimctl.reservation.workloads import WorkloadState
from claimctl.wire.claims import Reference, ResourceClaim, ResourceSlice
from claimctl.wire.nodes import Node
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservation, ForceDeletedPod
from claimctl.wire.unreadable import Unreadable


@dataclass(frozen=True, slots=True)
class Rules:
    """Settings that decisions depend on. Durations in seconds."""

    dialect: str = "hold"
    settle_seconds: float = 5.0
    """Longer than the scheduler's cache can lag behind the API server."""
    binding_seconds: float = 60.0
    """Longer than a scheduler takes from reading a claim until it binds a pod on what it read."""
    slow_binding_seconds: float = 600.0
    """The same for pods that may wait for a volume or for their gang, or whose scheduler is not a
    known one."""
    known_schedulers: frozenset[str] = frozenset({"default-scheduler"})
    """``schedulerName`` of the schedulers that have no plugin that keeps pods waiting (Permit)."""
    kcm_cleans_mixed_lists: bool = True
    """Whether KCM cleans pods beside references it does not know (from Kubernetes 1.36)."""
    dead_reference_seconds: float = 10.0
    """How long KCM may take to clean a dead pod before claimctl does."""
    status_seconds: float = 1.0
    """Least time between two status writes that only tell news."""
    fight_limit: int = 3
    """How often the same list may be written before a second writer is suspected."""


@dataclass(frozen=True, slots=True)
class LiveList:
    """The namespace's pods by a quorum LIST that began after ``claim_version`` was read."""

    claim_version: str
    pods: tuple[Pod, ...]
    """Those that name the claim."""
    uids: frozenset[str]
    """Of all pods in the namespace."""
    settled: bool = False
    """Whether the settle time had passed when the LIST began."""
    unreadable: tuple[Unreadable, ...] = ()
    """Pods that cannot be read and may name the claim; those with a UID are among ``uids``."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was asked of the API server beyond the caches. A UID never comes back."""

    gone_pods: frozenset[str] = frozenset()
    present_pods: frozenset[str] = frozenset()
    """UIDs of listed pods that were asked for and do exist, although the cache lacks them.

    Both also hold listed PodGroups, which are asked for in the same way."""
    gone_workloads: frozenset[str] = frozenset()
    live: LiveList | None = None
    claim_read_for: Write | None = None
    """Where the snapshot's claim was read live: the write that needed that."""
    held_for_another: bool | None = None
    """Whether the claim is held for a reservation that the cache does not show yet; None where
    nobody asked."""


@dataclass(frozen=True, slots=True)
class Openings:
    """For how long a claim has been closed to its pods, in seconds: a scheduler binds a pod
    without a write to the claim when it has seen the claim open to it (see ``binding``).

    Every age is since this process first saw a version without the entry; inf when it has seen
    all versions of the claim and none had one."""

    watched_age: float = inf
    """Since this process has seen every version of the claim; inf where it saw the first one."""
    group_age: float = inf
    """Of a PodGroup's entry."""
    holder_age: float = inf
    """Of any entry that is no pod's."""
    entry_age: Mapping[str, float] = field(default_factory=dict)
    """Per UID, of the pod's own entry; only of those that were listed."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What only this process knows, measured on its own monotonic clock, in seconds."""

    version_age: float = 0.0
    """Since this process first saw the claim at its present resourceVersion."""
    deleting_age: float = 0.0
    """Since it first saw the claim's deletionTimestamp."""
    openings: Openings = Openings()
    blind_age: float | None = None
    """Since it first saw the claim, if that was allocated then already (else None): pods may
    have vanished before, and nobody noted whether they were done."""
    ghost_age: Mapping[str, float] = field(default_factory=dict)
    """Per UID of a ghost: since this process knows of it (a wall clock may jump)."""
    dead_age: Mapping[str, float] = field(default_factory=dict)
    """Per UID of a listed pod: since it was first seen gone or done."""
    status_age: Mapping[str, float] = field(default_factory=dict)
    """Per reservation name: since its status was last written."""
    repeated_statuses: Mapping[str, int] = field(default_factory=dict)
    """Per reservation name: how often the same status was written lately and did not stay."""
    unstarted_age: Mapping[str, float] = field(default_factory=dict)
    """Per UID of a bound pod that has not started: since that was first seen."""
    told_ghosts: frozenset[str] = frozenset()
    """UIDs of the ghosts that this process has seen on record."""
    deallocated: bool = False
    """Whether the claim's present version is the one by which this process deallocated it."""
    repeated_writes: int = 0
    """How often the same list was written lately and did not stay."""


@dataclass(frozen=True, slots=True)
class Held:
    """A ClaimReservation with the workload it names."""

    reservation: ClaimReservation
    workload: WorkloadState
    withdrawn_age: float = inf
    """Seconds since this process first saw the reservation being deleted."""
    idle_age: float | None = None
    """Seconds since the status's idleSince on this process's own clock, where it knows, but no
    more than since it saw the claim in use."""
    idle_outdated: bool = False
    """Whether it saw the claim in use since, and nobody wrote that down."""
    unused_age: float | None = None
    """The same of lastConsumerTime."""
    released_since_asked: bool = False
    """Whether the claim was seen without allocation after the release that is asked for was."""

    @property
    def name(self) -> str:
        return self.reservation.metadata.name


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything about one claim at one moment."""

    now: datetime
    namespace: str
    name: str
    claim: ResourceClaim | None
    reservations: tuple[Held, ...] = ()
    pods: tuple[Pod, ...] = ()
    """Pods that name the claim, from the cache."""
    ghosts: tuple[ForceDeletedPod, ...] = ()
    """Pods that vanished while they may have been running, as far as is known."""
    nodes: Mapping[str, Node] = field(default_factory=dict)
    slices: tuple[ResourceSlice, ...] = ()
    groups: tuple[PodGroup, ...] = ()
    """The PodGroups that the claim lists, that its workloads name or that share it."""
    frozen: bool = False
    """A DowngradePlan asks to add no workload references here."""
    template_missing: bool = False
    template_refused: str = ""
    """What the API server said of a claim made from the template, where it refused that."""
    unreadable: tuple[Unreadable, ...] = ()
    """What cannot be read and may concern the claim (``reservation.unreadable``). What else is
    here of such an object is how it was when it could be read."""
    rules: Rules = Rules()
    evidence: Evidence = Evidence()
    memory: Memory = Memory()

    @property
    def references(self) -> tuple[Reference, ...]:
        return self.claim.status.reserved_for if self.claim else ()

    @property
    def allocated(self) -> bool:
        return self.claim is not None and self.claim.status.allocation is not None

    @property
    def shared(self) -> bool:
        """KEP-5194: the allocation serves any pod, and pods are not listed."""
        allocation = self.claim.status.allocation if self.claim else None
        return allocation is not None and allocation.reserved_for_any_pod

    def consumers(self) -> Consumers:
        return Consumers.of(self.pods)

    @property
    def settling_left(self) -> float:
        """Seconds until every scheduler sees the claim as it is, or that it is being deleted."""
        deleting = self.claim is not None and self.claim.metadata.deleting
        age = self.memory.deleting_age if deleting else self.memory.version_age
        return max(self.rules.settle_seconds - age, 0.0)

    def live(self, *, settled: bool = False) -> LiveList | None:
        """The live LIST, if it was made for the claim's present version (and settle time)."""
        live = self.evidence.live
        if self.claim is None or live is None:
            return None
        if live.claim_version != self.claim.metadata.resource_version:
            return None
        return live if live.settled or not settled else None
