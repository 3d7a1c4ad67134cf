"""Which strategy each built-in kind has."""

from __future__ import annotations

from claimctl.embedded.strategy import Strategies, Strategy
from claimctl.embedded.validation.claims import ClaimStrategy, TemplateStrategy
from claimctl.embedded.validation.jobs import CronJobStrategy, JobStrategy
from claimctl.embedded.validation.namespaces import NamespaceStrategy
from claimctl.embedded.validation.pods import PodStrategy
from claimctl.embedded.validation.workloads import (
    DAEMONSETS,
    DEPLOYMENTS,
    REPLICASETS,
    STATEFULSETS,
)

_BUILTIN: dict[tuple[str, str], Strategy] = {
    ("", "namespaces"): NamespaceStrategy(),
    ("", "pods"): PodStrategy(),
    ("apps", "daemonsets"): DAEMONSETS,
    ("apps", "deployments"): DEPLOYMENTS,
    ("apps", "replicasets"): REPLICASETS,
    ("apps", "statefulsets"): STATEFULSETS,
    ("batch", "cronjobs"): CronJobStrategy(),
    ("batch", "jobs"): JobStrategy(),
    ("resource.k8s.io", "resourceclaims"): ClaimStrategy(),
    ("resource.k8s.io", "resourceclaimtemplates"): TemplateStrategy(),
}


def builtin_strategies() -> Strategies:
    """A registry that holds the strategies of the built-in kinds."""
    strategies = Strategies()
    for (group, plural), strategy in _BUILTIN.items():
        strategies.register(group, plural, strategy)
    return strategies
