"""The strategies of the built-in kinds."""

from __future__ import annotations

from kube_in_process.kinds.strategy import Strategies, Strategy
from kube_in_process.kinds.validation import workloads
from kube_in_process.kinds.validation.admission_policies import (
    MutatingPolicyStrategy,
    PolicyBindingStrategy,
    ValidatingPolicyStrategy,
)
from kube_in_process.kinds.validation.claims import ClaimStrategy, ClaimTemplateStrategy
from kube_in_process.kinds.validation.coordination import LeaseStrategy
from kube_in_process.kinds.validation.core import (
    NodeStrategy,
    PriorityClassStrategy,
    RevisionStrategy,
    ServiceStrategy,
)
from kube_in_process.kinds.validation.data import ConfigMapStrategy, SecretStrategy
from kube_in_process.kinds.validation.device_taint_rules import TaintRuleStrategy
from kube_in_process.kinds.validation.devices import ClassStrategy, SliceStrategy
from kube_in_process.kinds.validation.events import NEW_GROUP, EventStrategy
from kube_in_process.kinds.validation.groups import PodGroupStrategy, SchedulingWorkloadStrategy
from kube_in_process.kinds.validation.jobs import CronJobStrategy, JobStrategy
from kube_in_process.kinds.validation.lifecycle import EvictionStrategy
from kube_in_process.kinds.validation.namespaces import NamespaceStrategy
from kube_in_process.kinds.validation.pods import PodStrategy
from kube_in_process.kinds.validation.policy import BudgetStrategy
from kube_in_process.kinds.validation.rbac import BindingStrategy, RuledStrategy
from kube_in_process.kinds.validation.webhooks import WebhookStrategy

_ADMISSION = "admissionregistration.k8s.io"
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
    ("lifecycle.k8s.io", "evictionrequests"): EvictionStrategy(("target", "requester")),
    ("lifecycle.k8s.io", "evictions"): EvictionStrategy(),
    ("policy", "poddisruptionbudgets"): BudgetStrategy(),
    ("resource.k8s.io", "deviceclasses"): ClassStrategy(),
    ("resource.k8s.io", "devicetaintrules"): TaintRuleStrategy(),
    ("resource.k8s.io", "resourceclaims"): ClaimStrategy(),
    ("resource.k8s.io", "resourceclaimtemplates"): ClaimTemplateStrategy(),
    ("resource.k8s.io", "resourceslices"): SliceStrategy(),
    (_ADMISSION, "mutatingadmissionpolicies"): MutatingPolicyStrategy(),
    (_ADMISSION, "mutatingadmissionpolicybindings"): PolicyBindingStrategy(actions=False),
    (_ADMISSION, "mutatingwebhookconfigurations"): WebhookStrategy(mutating=True),
    (_ADMISSION, "validatingadmissionpolicies"): ValidatingPolicyStrategy(),
    (_ADMISSION, "validatingadmissionpolicybindings"): PolicyBindingStrategy(actions=True),
    (_ADMISSION, "validatingwebhookconfigurations"): WebhookStrategy(mutating=False),
    (NEW_GROUP, "events"): EventStrategy(old_api=False),
    (_RBAC, "clusterrolebindings"): BindingStrategy(),
    (_RBAC, "clusterroles"): RuledStrategy(),
    (_RBAC, "rolebindings"): BindingStrategy(),
    (_RBAC, "roles"): RuledStrategy(),
    (_SCHEDULING, "podgroups"): PodGroupStrategy(),
    (_SCHEDULING, "priorityclasses"): PriorityClassStrategy(),
    (_SCHEDULING, "workloads"): SchedulingWorkloadStrategy(),
}


def builtin_strategies() -> Strategies:
    """A registry with the strategies of the built-in kinds."""
    strategies = Strategies()
    for (group, plural), strategy in _BUILTIN.items():
        strategies.register(group, plural, strategy)
    return strategies
