"""What the user wants, as the decisions see it: every value is checked and has its default.

The strategies are the args of their plugins in a policy file. ``policyfile`` reads the rest of such
files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from claimctl.label_selectors import LabelSelector

CRITICAL_PRIORITY = 2_000_000_000
"""From this priority on a pod is critical (SystemCriticalPriority of Kubernetes)."""
DEFAULT_SCHEDULER = "default-scheduler"
"""Its decisions are predicted; pods of other schedulers are left alone."""
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


class PolicyModel(BaseModel):
    """A part of a policy file: camelCase there, unknown fields and other types refused."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        extra="forbid",
        frozen=True,
        strict=True,
    )

    spellings: ClassVar[Mapping[str, str]] = {}
    """Other names of fields that files have, too."""


Number = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Percent = Annotated[float, Field(ge=0, le=100)]
Thresholds = dict[str, Percent]
"""Percentages by the name of a resource: cpu, memory, pods, an extended resource, or
``deviceclass.resource.kubernetes.io/CLASS``."""


class PriorityThreshold(PolicyModel):
    """Pods of this priority or a higher one are not moved: a number, or a PriorityClass."""

    value: int | None = None
    name: str | None = None


class Namespaces(PolicyModel):
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


class RemoveDuplicates(PolicyModel):
    """At most ceil(pods / feasible nodes) pods of one owner on a node."""

    name: ClassVar[str] = "RemoveDuplicates"
    exclude_owner_kinds: tuple[str, ...] = ()
    namespaces: Namespaces = Namespaces()


class EvictionLimits(PolicyModel):
    node: Number | None = None
    """How many pods the strategy moves from one node; None: no limit."""


class Utilization(PolicyModel):
    """A strategy that acts because nodes are under-used."""

    thresholds: Thresholds = Field(default_factory=dict)
    """Without them, the strategy reports that and does nothing."""
    number_of_nodes: Number = 0
    """Act only if more nodes than this are under-used."""
    evictable_namespaces: Namespaces = Namespaces()
    """Only ``exclude`` is read."""


class LowNodeUtilization(Utilization):
    """Move pods from over-used to under-used nodes."""

    name: ClassVar[str] = "LowNodeUtilization"
    use_deviation_thresholds: bool = False
    target_thresholds: Thresholds = Field(default_factory=dict)
    """For the same resources. With ``use_deviation_thresholds``, both are percentage points, below
    and above the mean of all nodes."""
    eviction_limits: EvictionLimits = EvictionLimits()


class HighNodeUtilization(Utilization):
    """Empty under-used nodes."""

    name: ClassVar[str] = "HighNodeUtilization"
    eviction_modes: tuple[Literal["OnlyThresholdingResources"], ...] = ()
    """With this mode, pods that use nothing of what the thresholds name stay, and do not count."""


class CriticalPods(PolicyModel):
    """Make room for critical pods that the scheduler's own preemption cannot help."""

    name: ClassVar[str] = "CriticalPods"
    system_namespaces: tuple[str, ...] = tuple(SYSTEM_NAMESPACES)
    unschedulable_seconds: Number = 30
    pod_scheduled_timeout_seconds: Positive = 600
    attempts: Positive = 3


class StandBack(StrEnum):
    """Who makes room for resizes: claimctl, or the scheduler of Kubernetes 1.37 and newer."""

    AUTO = "Auto"
    """claimctl, unless the scheduler's gate is on or the node forbids it."""
    ALWAYS = "Always"
    """claimctl only reports."""
    NEVER = "Never"
    """claimctl, whatever the gate and the node say."""


class DeferredResizes(PolicyModel):
    """Make room for resizes that their kubelet has deferred."""

    name: ClassVar[str] = "DeferredResizes"
    stand_back: StandBack = StandBack.AUTO
    deferred_seconds: Number = 60
    """A resize must have waited this long."""
    settle_seconds: Number = 210
    """After one round, the next begins this much later at the earliest."""


class Avoid(StrEnum):
    """How pods are kept off a node."""

    AUTO = "Auto"
    """By the admission policy where it is installed, else by a taint."""
    ADMISSION = "Admission"
    TAINT = "Taint"
    """PreferNoSchedule: a hint to the scheduler, for all pods."""
    REPORT = "Report"
    """Pods are not kept off."""


class RefusalBudget(PolicyModel):
    """How many pods of one owner nodes may refuse within the time, before its new pods wait."""

    refusals: Annotated[int, Field(ge=2, le=15)] = 5
    window_seconds: Annotated[int, Field(ge=10)] = 600


class UnplaceablePods(PolicyModel):
    """Keep the pods of an owner off nodes that refuse them, or cannot prepare their devices."""

    name: ClassVar[str] = "UnplaceablePods"
    stuck_seconds: Positive = 300
    """A bound pod whose devices are not prepared after this time is stuck."""
    budget: RefusalBudget = RefusalBudget()
    keep_refused: Number | None = 3
    """How many refused pods of an owner are kept; None: all."""
    avoid: Avoid = Avoid.AUTO
    brake: bool = False
    """Whether new pods of an owner wait when the budget is spent."""


class LeaveBadNodes(PolicyModel):
    """Move pods with claims off nodes whose taints or labels do not fit them any more."""

    name: ClassVar[str] = "LeaveBadNodes"


Strategy = (
    RemoveDuplicates
    | LowNodeUtilization
    | HighNodeUtilization
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

    def with_owners(self, kinds: frozenset[tuple[str, str]]) -> Policy:
        """The policy whose evictors count further owners that make their pods again."""

        def of(known: Evictor) -> Evictor:
            return replace(known, replacing_owners=known.replacing_owners | kinds)

        profiles = (replace(profile, evictor=of(profile.evictor)) for profile in self.profiles)
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
