"""The strategies of the built-in kinds."""

from __future__ import annotations

from kube_in_process.kinds.defaults import network
from kube_in_process.kinds.defaults import storage as storage_defaults
from kube_in_process.kinds.strategy import Strategies, Strategy
from kube_in_process.kinds.validation import (
    endpoints,
    ingresses,
    networking,
    storage,
    workloads,
)
from kube_in_process.kinds.validation.addresses import canonical_ip
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
)
from kube_in_process.kinds.validation.data import ConfigMapStrategy, SecretStrategy
from kube_in_process.kinds.validation.device_taint_rules import TaintRuleStrategy
from kube_in_process.kinds.validation.devices import ClassStrategy, SliceStrategy
from kube_in_process.kinds.validation.events import NEW_GROUP, EventStrategy
from kube_in_process.kinds.validation.groups import PodGroupStrategy, SchedulingWorkloadStrategy
from kube_in_process.kinds.validation.jobs import CronJobStrategy, JobStrategy
from kube_in_process.kinds.validation.lifecycle import EvictionStrategy
from kube_in_process.kinds.validation.namespaces import NamespaceStrategy
from kube_in_process.kinds.validation.ordinary import OrdinaryStrategy
from kube_in_process.kinds.validation.persistent_volumes import VolumeStrategy
from kube_in_process.kinds.validation.pods import PodStrategy
from kube_in_process.kinds.validation.policy import BudgetStrategy
from kube_in_process.kinds.validation.rbac import BindingStrategy, RuledStrategy
from kube_in_process.kinds.validation.services import ServiceStrategy
from kube_in_process.kinds.validation.volume_claims import VolumeClaimStrategy
from kube_in_process.kinds.validation.webhooks import WebhookStrategy

_ADMISSION = "admissionregistration.k8s.io"
_NETWORKING = "networking.k8s.io"
_RBAC = "rbac.authorization.k8s.io"
_SCHEDULING = "scheduling.k8s.io"
_STORAGE = "storage.k8s.io"
_BUILTIN: dict[tuple[str, str], Strategy] = {
    ("", "configmaps"): ConfigMapStrategy(),
    ("", "endpoints"): OrdinaryStrategy(
        endpoints.endpoints_rules,
        network.default_endpoints,
        endpoints.endpoints_changes,
        ruled_again=False,
    ),
    ("", "events"): EventStrategy(old_api=True),
    ("", "namespaces"): NamespaceStrategy(),
    ("", "nodes"): NodeStrategy(),
    ("", "persistentvolumeclaims"): VolumeClaimStrategy(),
    ("", "persistentvolumes"): VolumeStrategy(),
    ("", "pods"): PodStrategy(),
    ("", "podtemplates"): workloads.PodTemplateStrategy(),
    ("", "replicationcontrollers"): workloads.REPLICATION_CONTROLLERS,
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
    ("discovery.k8s.io", "endpointslices"): OrdinaryStrategy(
        endpoints.slice_rules,
        network.default_slice,
        endpoints.slice_changes,
        ruled_again=False,
    ),
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
    (_NETWORKING, "ingressclasses"): OrdinaryStrategy(
        networking.class_rules, network.default_class, networking.class_changes, ruled_again=False
    ),
    (_NETWORKING, "ingresses"): OrdinaryStrategy(
        ingresses.ingress_rules,
        changes=ingresses.ingress_changes,
        ruled_again=False,
        status_rules=ingresses.ingress_status_rules,
        begins={"loadBalancer": {}},
    ),
    (_NETWORKING, "ipaddresses"): OrdinaryStrategy(
        networking.address_rules,
        changes=networking.address_changes,
        ruled_again=False,
        name_check=canonical_ip,
    ),
    (_NETWORKING, "networkpolicies"): OrdinaryStrategy(
        networking.policy_rules,
        network.default_policy,
        networking.policy_changes,
        ruled_again=False,
    ),
    (_NETWORKING, "servicecidrs"): OrdinaryStrategy(
        networking.service_cidr_rules,
        changes=networking.service_cidr_changes,
        ruled_again=False,
        begins={},
    ),
    (_RBAC, "clusterrolebindings"): BindingStrategy(),
    (_RBAC, "clusterroles"): RuledStrategy(),
    (_RBAC, "rolebindings"): BindingStrategy(),
    (_RBAC, "roles"): RuledStrategy(),
    (_SCHEDULING, "podgroups"): PodGroupStrategy(),
    (_SCHEDULING, "priorityclasses"): PriorityClassStrategy(),
    (_SCHEDULING, "workloads"): SchedulingWorkloadStrategy(),
    (_STORAGE, "csidrivers"): OrdinaryStrategy(
        storage.driver_rules, storage_defaults.default_driver, storage.driver_changes
    ),
    (_STORAGE, "csinodes"): OrdinaryStrategy(storage.node_rules, changes=storage.node_changes),
    (_STORAGE, "csistoragecapacities"): OrdinaryStrategy(
        storage.capacity_rules, changes=storage.capacity_changes
    ),
    (_STORAGE, "storageclasses"): OrdinaryStrategy(
        storage.storage_class_rules,
        storage_defaults.default_storage_class,
        storage.storage_class_changes,
        ruled_again=False,
    ),
    (_STORAGE, "volumeattachments"): OrdinaryStrategy(
        storage.attachment_rules,
        changes=storage.attachment_changes,
        status_rules=storage.attachment_status_rules,
        begins={"attached": False},
    ),
    (_STORAGE, "volumeattributesclasses"): OrdinaryStrategy(
        storage.attributes_class_rules,
        changes=storage.attributes_class_changes,
        ruled_again=False,
    ),
}


def builtin_strategies() -> Strategies:
    """A registry with the strategies of the built-in kinds."""
    strategies = Strategies()
    for (group, plural), strategy in _BUILTIN.items():
        strategies.register(group, plural, strategy)
    return strategies
