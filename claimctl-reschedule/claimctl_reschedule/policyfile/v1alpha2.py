"""DeschedulerPolicy (descheduler/v1alpha2): the policy file of ``claimctl reschedule``.

The file is that of the Kubernetes descheduler, and so are all names. It is no object of the
cluster. A field that is not named here is refused. ``evictor_of`` gives what planning reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field

from claimctl.label_selectors import LabelSelector
from claimctl.wire.base import from_plain
from claimctl_reschedule.plan import policy as policies
from claimctl_reschedule.plan.policy import Number, PolicyModel, Positive

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
    priority_threshold: policies.PriorityThreshold | None = None
    node_fit: bool = True
    """The descheduler's default is false."""
    min_replicas: Number = 0
    min_pod_age: str | None = None
    no_eviction_policy: policies.NoEvictionPolicy = policies.NoEvictionPolicy.PREFERRED
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
    move_held_claims: policies.MoveHeldClaims = policies.MoveHeldClaims.NEVER
    """claimctl's own: whether pods whose claim is held may be moved, with all pods of the claim."""
    max_unavailable_per_workload: Positive = 1
    """claimctl's own: how many moves of one workload may be under way."""


DEPRECATED_SWITCHES: Mapping[str, policies.Protection] = {
    "evict_local_storage_pods": policies.Protection.LOCAL_STORAGE,
    "evict_daemon_set_pods": policies.Protection.DAEMON_SETS,
    "evict_system_critical_pods": policies.Protection.SYSTEM_CRITICAL,
    "evict_failed_bare_pods": policies.Protection.FAILED_BARE,
    "ignore_pvc_pods": policies.Protection.VOLUME_CLAIMS,
    "ignore_pods_without_pdb": policies.Protection.WITHOUT_BUDGET,
}
"""The older style of DefaultEvictor: each switch, and the protection that it lifts or adds."""


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


STRATEGIES: Mapping[str, type[policies.Strategy]] = {
    kind.name: kind for kind in get_args(policies.Strategy)
}
ARGS: Mapping[str, type[PolicyModel]] = {EVICTOR: DefaultEvictorArgs, **STRATEGIES}
"""The plugins that claimctl has, each with the model of its args."""
_BALANCE = ("RemoveDuplicates", "LowNodeUtilization", "HighNodeUtilization")
POINTS: Mapping[str, tuple[str, ...]] = {
    EVICTOR: ("filter", "preevictionfilter"),
    **{name: ("balance",) if name in _BALANCE else ("deschedule",) for name in STRATEGIES},
}
"""The extension points at which each of these plugins can be enabled."""


_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|us|µs|ns|m|s)")


def duration(text: str) -> float:
    """The seconds of a duration as Go writes it, such as 1h30m, or a ValueError."""
    parts = _PART.findall(text)
    if text == "0":
        return 0.0
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is not a duration like 30s, 10m or 1h30m")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


@dataclass(frozen=True, slots=True)
class CheckedPolicy:
    """A policy file that was checked. ``skipped`` is what ``--skip-unsupported`` left out, and
    ``notes`` what a reader of the file might not expect, one line each."""

    policy: policies.Policy
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def evictor_of(args: DefaultEvictorArgs) -> policies.Evictor:
    """Which pods may be evicted."""
    pvc = args.pod_protections and args.pod_protections.config
    classes = pvc.pods_with_pvc.protected_storage_classes if pvc and pvc.pods_with_pvc else ()
    return policies.Evictor(
        protections=_protections(args),
        protected_storage_classes=tuple(storage.name for storage in classes),
        node_fit=args.node_fit,
        min_replicas=args.min_replicas,
        min_pod_age_seconds=duration(args.min_pod_age or "0"),
        priority_threshold=args.priority_threshold,
        label_selector=_selector(args.label_selector),
        namespace_label_selector=_selector(args.namespace_label_selector),
        replacing_owners=frozenset((owner.group, owner.kind) for owner in args.replacing_owners),
        no_eviction_policy=args.no_eviction_policy,
        move_held_claims=args.move_held_claims,
    )


def _protections(args: DefaultEvictorArgs) -> frozenset[policies.Protection]:
    """The protections in force, from either style of the file."""
    given = args.pod_protections or PodProtections()
    old = (protection for name, protection in DEPRECATED_SWITCHES.items() if getattr(args, name))
    switched = (*given.default_disabled, *given.extra_enabled, *old)
    return policies.DEFAULT_PROTECTIONS ^ frozenset(map(policies.Protection, switched))


def _selector(given: SelectorModel | None) -> LabelSelector | None:
    return from_plain(given.model_dump(by_alias=True), LabelSelector) if given else None
