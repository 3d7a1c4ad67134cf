"""Translates a policy file of 2018: strategies become plugins of one profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from claimctl.reschedule.policyfile import checks
from claimctl.reschedule.policyfile.model import CheckedPolicy, CheckedProfile, Plugin
from claimctl.reschedule.policyfile.problems import Path, at, parsed, raised
from claimctl.reschedule.policyfile.unsupported import Unsupported
from claimctl.reschedule.policyfile.v1alpha1 import (
    ON_BY_DEFAULT,
    DeschedulerPolicyV1Alpha1,
    Strategy,
    StrategyParams,
)
from claimctl.reschedule.policyfile.v1alpha2 import (
    ARGS,
    DefaultEvictorArgs,
    LowNodeUtilizationArgs,
    PolicyModel,
)

PROFILE = "strategies"
_OWN = ("UnplaceablePods", "CriticalPods", "DeferredResizes")
"""claimctl's own plugins: they are on only where the file names them."""
_THRESHOLDS = ("params", "nodeResourceUtilizationThresholds")


def from_strategies(document: Mapping[str, Any], unsupported: Unsupported) -> CheckedPolicy:
    """Read and check the file.

    Raises:
        PolicyError: something in it is wrong.
    """
    policy = parsed(DeschedulerPolicyV1Alpha1, document, (), {})
    notes: list[str] = []
    plugins: dict[str, Plugin] = {}
    for name in _in_order(policy, unsupported):
        path = ("strategies", name)
        args = _args(name, policy.strategies.get(name, Strategy()), path)
        if isinstance(args, LowNodeUtilizationArgs) and not args.model_fields_set:
            notes.append(at((*path, *_THRESHOLDS), "has no thresholds, so the strategy is idle"))
            continue
        plugins[name] = Plugin(name, args)
    return CheckedPolicy(
        profiles=(
            CheckedProfile(
                PROFILE,
                DefaultEvictorArgs(),
                deschedule=tuple(plugins[name] for name in _OWN if name in plugins),
                balance=tuple(plugins[name] for name in ON_BY_DEFAULT if name in plugins),
            ),
        ),
        skipped=unsupported.skipped,
        notes=tuple(notes),
    )


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
        else:
            unsupported.plugin(("strategies", name), name)


def _args(name: str, strategy: Strategy, path: Path) -> PolicyModel:
    params = parsed(StrategyParams, strategy.params or {}, (*path, "params"), {})
    given = params.node_resource_utilization_thresholds
    if name != "LowNodeUtilization" and given is not None:
        raised([at((*path, *_THRESHOLDS), f"{name} has no such parameter")])
    if name != "LowNodeUtilization" or given is None:
        return ARGS[name]()
    args = LowNodeUtilizationArgs(
        thresholds=given.thresholds,
        target_thresholds=given.target_thresholds,
        number_of_nodes=given.number_of_nodes,
    )
    raised(checks.utilization(args, (*path, *_THRESHOLDS)))
    return args
