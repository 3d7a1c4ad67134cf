"""What the user wants, as the decisions see it: every value is checked and has its default.

``claimctl.reschedule.run`` translates the files that people write into this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from claimctl.wire.label_selectors import LabelSelector

CRITICAL_PRIORITY = 2_000_000_000
"""From this priority on a pod is critical (SystemCriticalPriority of Kubernetes)."""
DEFAULT_SCHEDULER = "default-scheduler"
SYSTEM_NAMESPACES = frozenset({"kube-system"})
"""Where the annotation of 2018 makes a pod critical, unless ``CriticalPods`` names others."""
DEVICE_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
"""Before the name of a DeviceClass: the resource 'a device of this class' (KEP-5004)."""


class Protection(StrEnum):
    """The protections of pods that a policy can switch, by their names in v1alpha2."""

    # on unless the policy lifts them
    LOCAL_STORAGE = "PodsWithLocalStorage"
    DAEMON_SETS = "DaemonSetPods"
    SYSTEM_CRITICAL = "SystemCriticalPods"
    FAILED_BARE = "FailedBarePods"
    # off unless the policy adds them
    VOLUME_CLAIMS = "PodsWithPVC"
    WITHOUT_BUDGET = "PodsWithoutPDB"
    RESOURCE_CLAIMS = "PodsWithResourceClaims"


DEFAULT_PROTECTIONS = frozenset(
    {
        Protection.LOCAL_STORAGE,
        Protection.DAEMON_SETS,
        Protection.SYSTEM_CRITICAL,
        Protection.FAILED_BARE,
    }
)


class MoveHeldClaims(StrEnum):
    """What to do with pods that a held claim keeps on their node."""

    NEVER = "Never"
    WHOLE_UNIT = "WholeUnit"
    """Close the node, evict all pods of the claim, and ask the controller to give it up."""


class NoEvictionPolicy(StrEnum):
    """What the annotation ``descheduler.alpha.kubernetes.io/prefer-no-eviction`` means."""

    PREFERRED = "Preferred"
    MANDATORY = "Mandatory"


@dataclass(frozen=True, slots=True)
class PriorityThreshold:
    """Pods with this priority, or a higher one, are not moved. One of the two is set."""

    value: int | None = None
    name: str = ""
    """The name of a PriorityClass."""


@dataclass(frozen=True, slots=True)
class Namespaces:
    """Either ``include`` or ``exclude``, or neither: then all namespaces are meant."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def __contains__(self, namespace: str) -> bool:
        return namespace not in self.exclude and (not self.include or namespace in self.include)


@dataclass(frozen=True, slots=True)
class Evictor:
    """Which pods may be moved at all (the plugin DefaultEvictor)."""

    protections: frozenset[Protection] = DEFAULT_PROTECTIONS
    protected_storage_classes: tuple[str, ...] = ()
    """With ``VOLUME_CLAIMS``: only these. Empty: all."""
    node_fit: bool = True
    min_replicas: int = 0
    min_pod_age_seconds: float = 0.0
    priority_threshold: PriorityThreshold | None = None
    """None: pods of every priority below the critical one."""
    label_selector: LabelSelector | None = None
    namespace_label_selector: LabelSelector | None = None
    replacing_owners: frozenset[tuple[str, str]] = frozenset()
    """Group and kind of further owners that make their pods again."""
    no_eviction_policy: NoEvictionPolicy = NoEvictionPolicy.PREFERRED
    move_held_claims: MoveHeldClaims = MoveHeldClaims.NEVER


@dataclass(frozen=True, slots=True)
class RemoveDuplicates:
    """At most ceil(pods / feasible nodes) pods of one owner on a node."""

    exclude_owner_kinds: tuple[str, ...] = ()
    namespaces: Namespaces = Namespaces()
    name: str = "RemoveDuplicates"


@dataclass(frozen=True, slots=True)
class LowNodeUtilization:
    """Move pods from over-used to under-used nodes.

    Attributes:
        thresholds, target_thresholds: percent by resource name, with the same names in both. With
            ``use_deviation_thresholds``, percentage points below and above the mean of all nodes.
            Without thresholds, the strategy reports that and does nothing.
        number_of_nodes: act only if more nodes than this are under-used.
        limit_per_node: how many pods this strategy moves from one node; None: no limit.
    """

    thresholds: Mapping[str, float] = field(default_factory=dict)
    target_thresholds: Mapping[str, float] = field(default_factory=dict)
    use_deviation_thresholds: bool = False
    number_of_nodes: int = 0
    limit_per_node: int | None = None
    namespaces: Namespaces = Namespaces()
    """Only ``exclude`` is used (evictableNamespaces)."""
    name: str = "LowNodeUtilization"


@dataclass(frozen=True, slots=True)
class CriticalPods:
    """Make room for critical pods that the scheduler's own preemption cannot help."""

    system_namespaces: tuple[str, ...] = tuple(SYSTEM_NAMESPACES)
    unschedulable_seconds: float = 30.0
    pod_scheduled_timeout_seconds: float = 600.0
    attempts: int = 3
    name: str = "CriticalPods"


class StandBack(StrEnum):
    """Who makes room for resizes: claimctl, or the scheduler of Kubernetes 1.37 and newer."""

    AUTO = "Auto"
    """claimctl, unless the scheduler's gate is on or the node forbids it."""
    ALWAYS = "Always"
    """claimctl only reports."""
    NEVER = "Never"
    """claimctl, whatever the gate and the node say."""


@dataclass(frozen=True, slots=True)
class DeferredResizes:
    """Make room for resizes that their kubelet has deferred.

    Attributes:
        deferred_seconds: a resize must have waited this long.
        settle_seconds: after one round, the next begins this much later at the earliest.
    """

    stand_back: StandBack = StandBack.AUTO
    deferred_seconds: float = 60.0
    settle_seconds: float = 210.0
    name: str = "DeferredResizes"


class Avoid(StrEnum):
    """How pods are kept off a node."""

    AUTO = "Auto"
    """By the admission policy where it is installed, else by a taint."""
    ADMISSION = "Admission"
    TAINT = "Taint"
    """PreferNoSchedule: a hint to the scheduler, for all pods."""
    REPORT = "Report"
    """Pods are not kept off."""


@dataclass(frozen=True, slots=True)
class UnplaceablePods:
    """Keep the pods of an owner off nodes that refuse them, or cannot prepare their devices.

    Attributes:
        stuck_seconds: a bound pod whose devices are not prepared after this time is stuck.
        refusals, window_seconds: after this many refused pods of an owner within the time, its new
            pods wait, if ``brake`` is on.
        keep_refused: how many refused pods of an owner are kept; None: all.
    """

    stuck_seconds: float = 300.0
    refusals: int = 5
    window_seconds: float = 600.0
    keep_refused: int | None = 3
    avoid: Avoid = Avoid.AUTO
    brake: bool = False
    name: str = "UnplaceablePods"


@dataclass(frozen=True, slots=True)
class LeaveBadNodes:
    """Move pods with claims off nodes whose taints or labels do not fit them any more."""

    name: str = "LeaveBadNodes"


Strategy = (
    RemoveDuplicates
    | LowNodeUtilization
    | CriticalPods
    | DeferredResizes
    | UnplaceablePods
    | LeaveBadNodes
)


@dataclass(frozen=True, slots=True)
class Profile:
    """A set of strategies with one evictor. ``deschedule`` of all profiles runs first."""

    name: str = ""
    evictor: Evictor = Evictor()
    deschedule: tuple[Strategy, ...] = ()
    balance: tuple[Strategy, ...] = ()


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The most pods that one run evicts; None: no limit."""

    per_node: int | None = None
    per_namespace: int | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    profiles: tuple[Profile, ...] = ()
    node_selector: LabelSelector | None = None
    """Pods are moved only from these nodes. None: from all."""
    limits: RunLimits = RunLimits()
    max_unavailable_per_workload: int = 1
    """The most moves of one workload that are in flight at a time."""
    grace_period_seconds: int | None = None
    """For the evicted pods. None: as their specs say."""
    eviction_failure_event: bool = False
    schedulers: frozenset[str] = frozenset({DEFAULT_SCHEDULER})
    """Names of schedulers whose decisions are predicted; pods of others are left alone."""

    def names(self, strategy: type[Strategy]) -> bool:
        """Whether a profile has such a strategy."""
        return any(isinstance(known, strategy) for known in self.strategies)

    @property
    def strategies(self) -> Iterator[Strategy]:
        """Those of all profiles."""
        for profile in self.profiles:
            yield from (*profile.deschedule, *profile.balance)

    def only(self, strategy: type[Strategy]) -> Policy:
        """The policy with the strategies of this kind alone."""

        def of(strategies: tuple[Strategy, ...]) -> tuple[Strategy, ...]:
            return tuple(known for known in strategies if isinstance(known, strategy))

        profiles = (
            replace(profile, deschedule=of(profile.deschedule), balance=of(profile.balance))
            for profile in self.profiles
        )
        return replace(self, profiles=tuple(profiles))

    @property
    def system_namespaces(self) -> frozenset[str]:
        """Where nobody evicts a pod with the annotation of 2018, whatever the strategy is."""
        named = (
            namespace
            for strategy in self.strategies
            if isinstance(strategy, CriticalPods)
            for namespace in strategy.system_namespaces
        )
        return SYSTEM_NAMESPACES.union(named)
