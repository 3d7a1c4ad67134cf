"""DeschedulerPolicy (descheduler/v1alpha1), the policy file of 2018: strategies become plugins of
one profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from claimctl_reschedule.plan import policy as policies
from claimctl_reschedule.plan.policy import LowNodeUtilization, Number, PolicyModel, Thresholds
from claimctl_reschedule.policyfile import checks
from claimctl_reschedule.policyfile.problems import Path, Unsupported, at, parse, raise_problems
from claimctl_reschedule.policyfile.v1alpha2 import (
    STRATEGIES,
    V1ALPHA2,
    CheckedPolicy,
    DefaultEvictorArgs,
    evictor_of,
)

V1ALPHA1 = "descheduler/v1alpha1"
ON_BY_DEFAULT = ("RemoveDuplicates", "LowNodeUtilization")
"""The strategies of 2018 that claimctl has. They are on unless the file switches them off."""
PROFILE = "strategies"
_OWN = ("UnplaceablePods", "CriticalPods", "DeferredResizes", "LeaveBadNodes")
"""claimctl's own plugins: they are on only where the file names them."""
_THRESHOLDS = ("params", "nodeResourceUtilizationThresholds")


class UtilizationThresholds(PolicyModel):
    thresholds: Thresholds = Field(default_factory=dict)
    target_thresholds: Thresholds = Field(default_factory=dict)
    number_of_nodes: Number = 0


class StrategyParams(PolicyModel):
    node_resource_utilization_thresholds: UtilizationThresholds | None = None


class Strategy(PolicyModel):
    """``params`` is read only for the strategies that claimctl has."""

    enabled: bool = True
    """'All strategies are enabled by default', says the description of 2018."""
    weight: Number = 0
    """Read and not used, as by the descheduler."""
    params: dict[str, Any] | None = None


class DeschedulerPolicyV1Alpha1(PolicyModel):
    """The whole file."""

    api_version: Literal["descheduler/v1alpha1"]
    kind: Literal["DeschedulerPolicy"]
    strategies: dict[str, Strategy] = Field(default_factory=dict)
    node_selector: str | None = None
    evict_failed_bare_pods: bool = False
    evict_local_storage_pods: bool = False
    evict_system_critical_pods: bool = False
    ignore_pvc_pods: bool = False
    max_no_of_pods_to_evict_per_node: Number | None = None
    max_no_of_pods_to_evict_per_namespace: Number | None = None

    @property
    def evictor(self) -> policies.Evictor:
        """The switches, which today's file has in the args of DefaultEvictor."""
        names = set(type(self).model_fields) & set(DefaultEvictorArgs.model_fields)
        switches = {name: getattr(self, name) for name in names - {"node_selector"}}
        return evictor_of(DefaultEvictorArgs(**switches))


def from_strategies(document: Mapping[str, Any], unsupported: Unsupported) -> CheckedPolicy:
    """Read and check the file; raises PolicyError if something in it is wrong."""
    policy = parse(DeschedulerPolicyV1Alpha1, document, (), {})
    notes: list[str] = []
    strategies: dict[str, policies.Strategy] = {}
    for name in _in_order(policy, unsupported):
        path = ("strategies", name)
        args = _args(name, policy.strategies.get(name, Strategy()), path)
        if isinstance(args, LowNodeUtilization) and not args.model_fields_set:
            notes.append(at((*path, *_THRESHOLDS), "has no thresholds, so the strategy is idle"))
            continue
        strategies[name] = args
    profile = policies.Profile(
        PROFILE,
        evictor=policy.evictor,
        deschedule=tuple(strategies[name] for name in _OWN if name in strategies),
        balance=tuple(strategies[name] for name in ON_BY_DEFAULT if name in strategies),
    )
    limits = policies.RunLimits(
        policy.max_no_of_pods_to_evict_per_node, policy.max_no_of_pods_to_evict_per_namespace
    )
    selector = checks.nodes_of(policy.node_selector)
    checked = policies.Policy((profile,), node_selector=selector, limits=limits)
    return CheckedPolicy(checked, unsupported.skipped, tuple(notes))


def _in_order(policy: DeschedulerPolicyV1Alpha1, unsupported: Unsupported) -> Iterator[str]:
    """The strategies that are on."""
    for name in ON_BY_DEFAULT:
        if name not in policy.strategies or policy.strategies[name].enabled:
            yield name
    for name, strategy in policy.strategies.items():
        if name in ON_BY_DEFAULT or not strategy.enabled:
            continue
        if name in _OWN:
            yield name
        elif name in STRATEGIES:
            unsupported.add(("strategies", name), f"only {V1ALPHA2} has it here")
        else:
            unsupported.plugin(("strategies", name), name)


def _args(name: str, strategy: Strategy, path: Path) -> policies.Strategy:
    params = parse(StrategyParams, strategy.params or {}, (*path, "params"), {})
    given = params.node_resource_utilization_thresholds
    if name != "LowNodeUtilization" and given is not None:
        raise_problems([at((*path, *_THRESHOLDS), f"{name} has no such parameter")])
    if name != "LowNodeUtilization" or given is None:
        return STRATEGIES[name]()
    args = LowNodeUtilization.model_validate(given.model_dump())
    raise_problems(checks.utilization(args, (*path, *_THRESHOLDS)))
    return args
