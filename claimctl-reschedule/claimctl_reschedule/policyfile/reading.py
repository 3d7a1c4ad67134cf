"""Reads a policy file of either version. Every fault in it is reported, each with its path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from claimctl_reschedule.plan import policy as policies
from claimctl_reschedule.policyfile import checks, text
from claimctl_reschedule.policyfile.problems import (
    Path,
    PolicyError,
    Unsupported,
    at,
    names,
    parse,
    raise_problems,
)
from claimctl_reschedule.policyfile.v1alpha1 import V1ALPHA1, from_strategies
from claimctl_reschedule.policyfile.v1alpha2 import (
    ARGS,
    EVICTOR,
    KIND,
    POINTS,
    STRATEGIES,
    V1ALPHA2,
    CheckedPolicy,
    DefaultEvictorArgs,
    DeschedulerPolicy,
    PluginConfig,
    PluginSet,
    ProfileModel,
    evictor_of,
)

_SETS = ("presort", "sort", "deschedule", "balance", "filter", "preevictionfilter")
_METRICS = ("metricsCollector", "metricsProviders")
_NOT_MEASURED = "claimctl counts requests, not real use"
_NEED_THRESHOLDS = {
    policies.LowNodeUtilization.name: "thresholds and targetThresholds",
    policies.HighNodeUtilization.name: "thresholds",
}
_TYPE_META = ("apiVersion", "kind")
"""Args may say of which type they are, as all objects of Kubernetes."""
_PLACES = {name: "belongs below args" for model in ARGS.values() for name in names(model)}
"""For fields of args that stand where no such field is known, mostly beside ``args``."""


def read(path: FilePath, *, skip_unsupported: bool = False) -> CheckedPolicy:
    """Read and check a policy file, or raise PolicyError with the places of all faults in it.
    ``skip_unsupported``: leave out what claimctl does not have, instead of refusing the file."""
    return check(text.mapping(text.read(path)), skip_unsupported=skip_unsupported)


def check(document: Mapping[str, Any], *, skip_unsupported: bool = False) -> CheckedPolicy:
    """Check a parsed policy document (see ``read``)."""
    if (kind := document.get("kind")) != KIND:
        raise PolicyError(at(("kind",), f"{kind!r} is not known: {KIND} is expected"))
    readers = {V1ALPHA2: _from_profiles, V1ALPHA1: from_strategies}
    version = document.get("apiVersion")
    if not isinstance(version, str) or version not in readers:
        known = " or ".join(readers)
        raise PolicyError(at(("apiVersion",), f"{version!r} is not known: {known} is expected"))
    unsupported = Unsupported(skip_unsupported)
    policy = readers[version](document, unsupported)
    unsupported.refuse()
    return policy


def _from_profiles(document: Mapping[str, Any], unsupported: Unsupported) -> CheckedPolicy:
    policy = parse(DeschedulerPolicy, document, (), _PLACES)
    for key in _METRICS:
        if document.get(key):
            unsupported.add((key,), _NOT_MEASURED)
    readings = [
        _Reading(profile, ("profiles", index), unsupported)
        for index, profile in enumerate(policy.profiles)
    ]
    profiles = tuple(reading.profile() for reading in readings)
    # a strategy with a memory of its own belongs into one profile
    placing = [
        index
        for index, profile in enumerate(profiles)
        if any(isinstance(strategy, policies.UnplaceablePods) for strategy in profile.deschedule)
    ]
    text = f"{policies.UnplaceablePods.name} is enabled in another profile already"
    places = (("profiles", index, "plugins", "deschedule") for index in placing[1:])
    raise_problems(at(place, text) for place in places)
    at_once = (reading.evictor.max_unavailable_per_workload for reading in readings)
    return CheckedPolicy(
        policies.Policy(
            profiles=profiles,
            node_selector=checks.nodes_of(policy.node_selector),
            limits=policies.RunLimits(
                policy.max_no_of_pods_to_evict_per_node,
                policy.max_no_of_pods_to_evict_per_namespace,
                policy.max_no_of_pods_to_evict_total,
            ),
            max_unavailable_per_workload=min(at_once, default=1),
            grace_period_seconds=policy.grace_period_seconds,
            eviction_failure_event=policy.eviction_failure_event_notification,
        ),
        skipped=unsupported.skipped,
        notes=() if profiles else ("the policy has no profile, so nothing is done",),
    )


@dataclass(slots=True)
class _Reading:
    """One profile of the file, which stands at ``path``."""

    given: ProfileModel
    path: Path
    unsupported: Unsupported
    problems: list[str] = field(default_factory=list)
    evictor: DefaultEvictorArgs = field(default_factory=DefaultEvictorArgs)

    def profile(self) -> policies.Profile:
        """The checked profile; raises PolicyError if something in it is wrong."""
        args = self._all_args()
        enabled = {point: self._enabled(point) for point in _SETS}
        if _NEED_THRESHOLDS.keys() <= set(enabled["balance"]):
            text = f"{' and '.join(_NEED_THRESHOLDS)} contradict each other: take one of them"
            self.problems.append(at((*self.path, "plugins", "balance", "enabled"), text))
        raise_problems(self.problems)
        if isinstance(evictor := args.get(EVICTOR), DefaultEvictorArgs):
            self.evictor = evictor

        def strategy(name: str) -> policies.Strategy:
            given = args.get(name)
            return given if isinstance(given, STRATEGIES[name]) else STRATEGIES[name]()

        deschedule, balance = (
            tuple(map(strategy, enabled[point])) for point in ("deschedule", "balance")
        )
        return policies.Profile(self.given.name, evictor_of(self.evictor), deschedule, balance)

    def _all_args(self) -> dict[str, policies.PolicyModel]:
        args: dict[str, policies.PolicyModel] = {}
        for index, config in enumerate(self.given.plugin_config):
            path = (*self.path, "pluginConfig", index)
            if config.name in args:
                self.problems.append(at((*path, "name"), f"{config.name} is configured twice"))
            elif config.name not in ARGS:
                self.unsupported.plugin((*path, "name"), config.name)
            else:
                self._add_args(args, config, (*path, "args"))
        return args

    def _add_args(
        self, known: dict[str, policies.PolicyModel], config: PluginConfig, path: Path
    ) -> None:
        given = {key: value for key, value in config.args.items() if key not in _TYPE_META}
        if given.pop("metricsUtilization", None):
            self.unsupported.add((*path, "metricsUtilization"), _NOT_MEASURED)
        try:
            args = parse(ARGS[config.name], given, path, {})
        except PolicyError as error:
            self.problems += error.problems
            return
        self.problems += checks.problems(args, path)
        known[config.name] = args

    def _enabled(self, point: str) -> list[str]:
        """The plugins that are enabled at an extension point."""
        plugins: PluginSet = getattr(self.given.plugins, point)
        path = (*self.path, "plugins", point)
        for index, name in enumerate(plugins.disabled):
            if name == EVICTOR:
                text = f"{EVICTOR} has the protections of pods: it cannot be disabled"
                self.problems.append(at((*path, "disabled", index), text))
        enabled: list[str] = []
        for index, name in enumerate(plugins.enabled):
            where = (*path, "enabled", index)
            if name not in ARGS:
                self.unsupported.plugin(where, name)
            elif point not in POINTS[name]:
                places = " or ".join(f"plugins.{place}" for place in POINTS[name])
                self.problems.append(at(where, f"{name} belongs below {places}"))
            elif name in plugins.enabled[:index] or name in plugins.disabled:
                self.problems.append(at(where, f"{name} is named twice"))
            else:
                enabled.append(name)
                configured = {config.name for config in self.given.plugin_config}
                if name in _NEED_THRESHOLDS and name not in configured:
                    text = f"{name} needs {_NEED_THRESHOLDS[name]} in pluginConfig"
                    self.problems.append(at(where, text))
        return enabled
