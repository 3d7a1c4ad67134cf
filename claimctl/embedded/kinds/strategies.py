"""The strategies of the built-in kinds."""

from __future__ import annotations

from claimctl.embedded.kinds.strategy import Strategies, Strategy
from claimctl.embedded.kinds.validation import workloads
from claimctl.embedded.kinds.validation.claims import ClaimStrategy, TemplateStrategy
from claimctl.embedded.kinds.validation.coordination import LeaseStrategy
from claimctl.embedded.kinds.validation.core import (
    ConfigMapStrategy,
    NodeStrategy,
    PriorityClassStrategy,
    RevisionStrategy,
    SecretStrategy,
    ServiceStrategy,
)
from claimctl.embedded.kinds.validation.device_taint_rules import TaintRuleStrategy
from claimctl.embedded.kinds.validation.devices import ClassStrategy, SliceStrategy
from claimctl.embedded.kinds.validation.events import NEW_GROUP, EventStrategy
from claimctl.embedded.kinds.validation.groups import PodGroupStrategy, WorkloadStrategy
from claimctl.embedded.kinds.validation.jobs import CronJobStrategy, JobStrategy
from claimctl.embedded.kinds.validation.namespaces import NamespaceStrategy
from claimctl.embedded.kinds.validation.pods import PodStrategy
from claimctl.embedded.kinds.validation.policy import BudgetStrategy
from claimctl.embedded.kinds.validation.rbac import BindingStrategy, RuledStrategy

_RBAC = "rbac.authorization.k8s.io"
_SCHEDULING = "scheduling.k8s.io"
_BUILTIN: dict[tuple[str, str], Strategy] = {
    ("", "configmaps"): ConfigMapStrategy(),
    ("", "events"): EventStrategy(old_api=True),
    ("", "namespaces"): NamespaceStrategy(),
    ("", "nodes"): NodeStrategy(),
    ("", "pods"): PodStrategy(),
    ("", "secrets"): SecretStrategy(),
    ("", "services"): ServiceStrategy(),
    ("apps", "controllerrevisions"): RevisionStrategy(),
    ("apps", "daemonsets"): workloads.DAEMONSETS,
    ("apps", "deployments"): workloads.DEPLOYMENTS,
    ("apps", "replicasets"): workloads.REPLICASETS,
    ("apps", "statefulsets"): workloads.STATEFULSETS,
    ("batch", "cronjobs"): CronJobStrategy(),
    ("batch", "jobs"): JobStrategy(),
    ("coordination.k8s.io", "leases"): LeaseStrategy(),
    ("policy", "poddisruptionbudgets"): BudgetStrategy(),
    ("resource.k8s.io", "deviceclasses"): ClassStrategy(),
    ("resource.k8s.io", "devicetaintrules"): TaintRuleStrategy(),
    ("resource.k8s.io", "resourceclaims"): ClaimStrategy(),
    ("resource.k8s.io", "resourceclaimtemplates"): TemplateStrategy(),
    ("resource.k8s.io", "resourceslices"): SliceStrategy(),
    (NEW_GROUP, "events"): EventStrategy(old_api=False),
    (_RBAC, "clusterrolebindings"): BindingStrategy(),
    (_RBAC, "clusterroles"): RuledStrategy(),
    (_RBAC, "rolebindings"): BindingStrategy(),
    (_RBAC, "roles"): RuledStrategy(),
    (_SCHEDULING, "podgroups"): PodGroupStrategy(),
    (_SCHEDULING, "priorityclasses"): PriorityClassStrategy(),
    (_SCHEDULING, "workloads"): WorkloadStrategy(),
}


def builtin_strategies() -> Strategies:
    """A registry with the strategies of the built-in kinds."""
    strategies = Strategies()
    for (group, plural), strategy in _BUILTIN.items():
        strategies.register(group, plural, strategy)
    return strategies
