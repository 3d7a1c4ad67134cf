"""DeschedulerPolicy (descheduler/v1alpha2): the policy file of ``claimctl reschedule``.

The file is that of the Kubernetes descheduler, and so are all names. It is no object of the
cluster. A field that is not named here is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from claimctl.reschedule.plan.policy import (
    CriticalPods,
    DeferredResizes,
    LeaveBadNodes,
    LowNodeUtilization,
    MoveHeldClaims,
    NoEvictionPolicy,
    Number,
    PolicyModel,
    Positive,
    PriorityThreshold,
    RemoveDuplicates,
    Strategy,
    UnplaceablePods,
)

V1ALPHA2 = "descheduler/v1alpha2"
KIND = "DeschedulerPolicy"
EVICTOR = "DefaultEvictor"


class RequirementModel(PolicyModel):
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()


class SelectorModel(PolicyModel):
    match_labels: dict[str, str] = Field(default_factory=dict)
    match_expressions: tuple[RequirementModel, ...] = ()


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
    priority_threshold: PriorityThreshold | None = None
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
    max_unavailable_per_workload: Positive = 1
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


STRATEGIES: Mapping[str, type[Strategy]] = {
    strategy.name: strategy
    for strategy in (
        RemoveDuplicates,
        LowNodeUtilization,
        CriticalPods,
        DeferredResizes,
        UnplaceablePods,
        LeaveBadNodes,
    )
}
ARGS: Mapping[str, type[PolicyModel]] = {EVICTOR: DefaultEvictorArgs, **STRATEGIES}
"""The plugins that claimctl has, each with the model of its args."""
_BALANCE = (RemoveDuplicates.name, LowNodeUtilization.name)
POINTS: Mapping[str, tuple[str, ...]] = {
    EVICTOR: ("filter", "preevictionfilter"),
    **{name: ("balance",) if name in _BALANCE else ("deschedule",) for name in STRATEGIES},
}
"""The extension points at which each of these plugins can be enabled."""
