"""DeschedulerPolicy (descheduler/v1alpha2): the policy file of ``claimctl reschedule``.

The file is that of the Kubernetes descheduler, and so are all names. It is no object of the
cluster. A field that is not named here is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from claimctl.reschedule.plan.policy import Avoid, MoveHeldClaims, NoEvictionPolicy, StandBack

V1ALPHA2 = "descheduler/v1alpha2"
KIND = "DeschedulerPolicy"

Number = Annotated[int, Field(ge=0)]
Percent = Annotated[float, Field(ge=0, le=100)]
Thresholds = dict[str, Percent]
"""Percentages by the name of a resource: cpu, memory, pods, an extended resource, or
``deviceclass.resource.kubernetes.io/CLASS``."""
EXTRA_PROTECTIONS = ("PodsWithPVC", "PodsWithoutPDB", "PodsWithResourceClaims")
DEFAULT_PROTECTIONS = (
    "PodsWithLocalStorage",
    "DaemonSetPods",
    "SystemCriticalPods",
    "FailedBarePods",
)


class PolicyModel(BaseModel):
    """Immutable, camelCase in the file, unknown fields and other types refused."""

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


class RequirementModel(PolicyModel):
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()


class SelectorModel(PolicyModel):
    match_labels: dict[str, str] = Field(default_factory=dict)
    match_expressions: tuple[RequirementModel, ...] = ()


class ThresholdModel(PolicyModel):
    """Pods of this priority or a higher one are not evicted: a number, or a PriorityClass."""

    value: int | None = None
    name: str | None = None


class NamespacesModel(PolicyModel):
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class ProtectedStorageClass(PolicyModel):
    name: str


class PodsWithPVCConfig(PolicyModel):
    protected_storage_classes: tuple[ProtectedStorageClass, ...] = ()


class PodProtectionsConfig(PolicyModel):
    pods_with_pvc: Annotated[PodsWithPVCConfig | None, Field(alias="PodsWithPVC")] = None


class PodProtections(PolicyModel):
    extra_enabled: tuple[str, ...] = ()
    default_disabled: tuple[str, ...] = ()
    config: PodProtectionsConfig | None = None


class OwnerKind(PolicyModel):
    group: str = ""
    kind: Annotated[str, Field(min_length=1)]


class DefaultEvictorArgs(PolicyModel):
    """Which pods may be evicted at all."""

    node_selector: str = ""
    label_selector: SelectorModel | None = None
    namespace_label_selector: SelectorModel | None = None
    priority_threshold: ThresholdModel | None = None
    node_fit: bool = True
    """The descheduler's default is false."""
    min_replicas: Number = 0
    min_pod_age: str | None = None
    no_eviction_policy: NoEvictionPolicy = NoEvictionPolicy.PREFERRED
    pod_protections: PodProtections | None = None
    evict_local_storage_pods: bool = False
    evict_daemon_set_pods: bool = False
    evict_system_critical_pods: bool = False
    ignore_pvc_pods: bool = False
    ignore_pods_without_pdb: Annotated[bool, Field(alias="ignorePodsWithoutPDB")] = False
    evict_failed_bare_pods: bool = False
    """Read and without effect: no strategy looks at pods that have failed and have no owner."""
    replacing_owners: tuple[OwnerKind, ...] = ()
    """claimctl's own: further kinds that replace their pods, as RayCluster and the like do."""
    move_held_claims: MoveHeldClaims = MoveHeldClaims.NEVER
    """claimctl's own: whether pods whose claim is held may be moved, with all pods of the claim."""
    max_unavailable_per_workload: Annotated[int, Field(ge=1)] = 1
    """claimctl's own: how many moves of one workload may be under way."""


DEPRECATED_SWITCHES: Mapping[str, tuple[str, str]] = {
    "evict_local_storage_pods": ("default_disabled", "PodsWithLocalStorage"),
    "evict_daemon_set_pods": ("default_disabled", "DaemonSetPods"),
    "evict_system_critical_pods": ("default_disabled", "SystemCriticalPods"),
    "evict_failed_bare_pods": ("default_disabled", "FailedBarePods"),
    "ignore_pvc_pods": ("extra_enabled", "PodsWithPVC"),
    "ignore_pods_without_pdb": ("extra_enabled", "PodsWithoutPDB"),
}
"""The older style of DefaultEvictor: each switch, and what ``podProtections`` says instead."""


class RemoveDuplicatesArgs(PolicyModel):
    """Not more pods of one owner on a node than an even spread needs."""

    exclude_owner_kinds: tuple[str, ...] = ()
    namespaces: NamespacesModel | None = None


class EvictionLimits(PolicyModel):
    node: Number | None = None


class LowNodeUtilizationArgs(PolicyModel):
    """Pods of over-used nodes move to under-used nodes."""

    use_deviation_thresholds: bool = False
    thresholds: Thresholds = Field(default_factory=dict)
    target_thresholds: Thresholds = Field(default_factory=dict)
    number_of_nodes: Number = 0
    metrics_utilization: dict[str, Any] | None = None
    """Read so that it can be refused by its name: claimctl counts requests, not real use."""
    evictable_namespaces: NamespacesModel | None = None
    eviction_limits: EvictionLimits | None = None


class CriticalPodsArgs(PolicyModel):
    """claimctl's own: a node for critical pods that wait for devices or room."""

    system_namespaces: tuple[str, ...] = ("kube-system",)
    unschedulable_seconds: Number = 30
    pod_scheduled_timeout_seconds: Annotated[int, Field(ge=1)] = 600
    attempts: Annotated[int, Field(ge=1)] = 3


class DeferredResizesArgs(PolicyModel):
    """claimctl's own: room on its node for a pod whose resize the kubelet has deferred."""

    stand_back: StandBack = StandBack.AUTO
    deferred_seconds: Number = 60
    settle_seconds: Number = 210


class RefusalBudget(PolicyModel):
    """How many pods of one owner nodes may refuse within the time, before its new pods wait."""

    refusals: Annotated[int, Field(ge=2, le=15)] = 5
    window_seconds: Annotated[int, Field(ge=10)] = 600


class UnplaceablePodsArgs(PolicyModel):
    """claimctl's own: pods that their node refuses, or cannot start, go to other nodes."""

    stuck_seconds: Annotated[int, Field(ge=1)] = 300
    budget: RefusalBudget = RefusalBudget()
    keep_refused: Number | None = 3
    """How many refused pods of an owner are kept; null: all."""
    avoid: Avoid = Avoid.AUTO
    brake: bool = False
    """Whether new pods of an owner wait when the budget is spent."""


class LeaveBadNodesArgs(PolicyModel):
    """claimctl's own: pods with claims leave nodes that would not take them any more."""


class PluginConfig(PolicyModel):
    """``args`` is read by the model of the plugin that ``name`` names."""

    name: str
    args: dict[str, Any] = Field(default_factory=dict)


class PluginSet(PolicyModel):
    enabled: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()


class Plugins(PolicyModel):
    presort: PluginSet = PluginSet()
    sort: PluginSet = PluginSet()
    deschedule: PluginSet = PluginSet()
    balance: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    preevictionfilter: PluginSet = PluginSet()
    spellings: ClassVar[Mapping[str, str]] = {"preEvictionFilter": "preevictionfilter"}
    """The descheduler's own pages write it so."""


class ProfileModel(PolicyModel):
    name: Annotated[str, Field(min_length=1)]
    plugin_config: tuple[PluginConfig, ...] = ()
    plugins: Plugins = Plugins()


class DeschedulerPolicy(PolicyModel):
    """The whole file."""

    api_version: Literal["descheduler/v1alpha2"]
    kind: Literal["DeschedulerPolicy"]
    profiles: tuple[ProfileModel, ...] = ()
    node_selector: str | None = None
    max_no_of_pods_to_evict_per_node: Number | None = None
    max_no_of_pods_to_evict_per_namespace: Number | None = None
    max_no_of_pods_to_evict_total: Number | None = None
    eviction_failure_event_notification: bool = False
    grace_period_seconds: Number | None = None
    metrics_collector: dict[str, Any] | None = None
    metrics_providers: tuple[dict[str, Any], ...] = ()
    """Read so that both can be refused by name, as ``metricsUtilization``."""


ARGS: Mapping[str, type[PolicyModel]] = {
    "DefaultEvictor": DefaultEvictorArgs,
    "RemoveDuplicates": RemoveDuplicatesArgs,
    "LowNodeUtilization": LowNodeUtilizationArgs,
    "CriticalPods": CriticalPodsArgs,
    "DeferredResizes": DeferredResizesArgs,
    "UnplaceablePods": UnplaceablePodsArgs,
    "LeaveBadNodes": LeaveBadNodesArgs,
}
"""The plugins that claimctl has, each with the model of its args."""
POINTS: Mapping[str, tuple[str, ...]] = {
    "DefaultEvictor": ("filter", "preevictionfilter"),
    "RemoveDuplicates": ("balance",),
    "LowNodeUtilization": ("balance",),
    "CriticalPods": ("deschedule",),
    "DeferredResizes": ("deschedule",),
    "UnplaceablePods": ("deschedule",),
    "LeaveBadNodes": ("deschedule",),
}
"""The extension points at which each of these plugins can be enabled."""
