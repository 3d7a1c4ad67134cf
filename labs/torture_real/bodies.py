"""The objects that the users of a schedule create, in its namespace, with its devices."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kube_in_process.components.kubelet.kubelet import EXIT_CODE, RUN_SECONDS
from kube_in_process.real.servers.nodes import Fleet

Body = dict[str, Any]
API = {"Deployment": "apps/v1", "StatefulSet": "apps/v1", "Job": "batch/v1"}
RESERVATION = ("claimctl.io/v1alpha1", "ClaimReservation")
TAINT_RULE = ("resource.k8s.io/v1beta2", "DeviceTaintRule")
TEMPLATE = "template"
REALLOCATE = 5
"""reallocateTimeoutSeconds of every ClaimReservation."""
_DEVICES_OF_ITS_OWN = 3
"""The devices of a fleet that are left beside shared claims and a rollout."""


@dataclass(frozen=True, slots=True)
class App:
    """One workload of a schedule."""

    kind: str
    name: str
    claim: str
    """The claim that its pods name; "" for a claim generated for each pod."""
    group: str = ""
    """The PodGroup of its pods."""
    policy: str = "WhileRunning"
    annotated: bool = False
    """Whether the annotation reserves the claim, not a ClaimReservation of the user."""
    job: Body = field(default_factory=dict)
    """Further fields of a Job's spec."""
    seconds: str = "5"
    exit_code: str = "0"

    @property
    def reservation(self) -> str:
        return f"{self.name}-{self.claim}"

    def at_most(self, pods: int) -> int:
        """How many of the pods can run: a pod with its own claim takes a device, and a rollout
        has one pod more."""
        return pods if self.claim else min(pods, _DEVICES_OF_ITS_OWN)


@dataclass(frozen=True, slots=True)
class Bodies:
    """Manifests for one namespace and its fleet of nodes."""

    namespace: str
    fleet: Fleet
    grace: int
    """forceDeletedPodGraceSeconds of every ClaimReservation."""

    def claim(self, name: str) -> Body:
        return self._headed("ResourceClaim", name) | {"spec": self._devices()}

    def claim_template(self) -> Body:
        return self._headed("ResourceClaimTemplate", TEMPLATE) | {"spec": {"spec": self._devices()}}

    def _headed(self, kind: str, name: str) -> Body:
        meta = {"name": name, "namespace": self.namespace}
        return {"apiVersion": self.fleet.resource_api, "kind": kind, "metadata": meta}

    def _devices(self) -> Body:
        wanted = {"deviceClassName": self.fleet.device_class}
        flat = self.fleet.resource_api.endswith("v1beta1")
        request = {"name": "gpu", **wanted} if flat else {"name": "gpu", "exactly": wanted}
        return {"devices": {"requests": [request]}}

    def reservation(self, app: App, *, template: bool) -> Body:
        spec = {
            "resourceClaimName": app.claim,
            "workloadRef": {
                "apiGroup": API[app.kind].partition("/")[0],
                "kind": app.kind,
                "name": app.name,
            },
            "retentionPolicy": app.policy,
            "idleTimeoutSeconds": 1,
            "forceDeletedPodGraceSeconds": self.grace,
            "reallocateTimeoutSeconds": REALLOCATE,
        }
        if template:
            spec["resourceClaimTemplateName"] = TEMPLATE
        return {
            "apiVersion": RESERVATION[0],
            "kind": RESERVATION[1],
            "metadata": {"name": app.reservation, "namespace": self.namespace},
            "spec": spec,
        }

    def pod_group(self, name: str, claim: str, api_version: str) -> Body:
        shared = [{"name": "gpu", "resourceClaimName": claim}]
        return {
            "apiVersion": api_version,
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"schedulingPolicy": {"basic": {}}, "resourceClaims": shared},
        }

    def taint_rule(self, device: Body) -> Body:
        """A rule whose taint evicts the pods of an allocated device."""
        chosen = {key: device[key] for key in ("driver", "pool", "device")}
        return {
            "apiVersion": TAINT_RULE[0],
            "kind": TAINT_RULE[1],
            "metadata": {"name": f"{device['pool']}-{device['device']}"},
            "spec": {
                "deviceSelector": chosen,
                "taint": {"key": "broken", "effect": "NoExecute"},
            },
        }

    def workload(self, app: App, pods: int) -> Body:
        meta: Body = {"name": app.name, "namespace": self.namespace}
        if app.annotated:
            meta["annotations"] = {
                "claimctl.io/reserve": "*",
                "claimctl.io/retention-policy": app.policy,
                "claimctl.io/idle-timeout-seconds": "1",
            }
        return {
            "apiVersion": API[app.kind],
            "kind": app.kind,
            "metadata": meta,
            "spec": self._spec(app, pods),
        }

    def _spec(self, app: App, pods: int) -> Body:
        template = self.pod(app)
        if app.kind == "Job":
            template["spec"]["restartPolicy"] = "Never"
            count = {"parallelism": max(pods, 1), "completions": max(pods, 1)}
            return {**count, "backoffLimit": 1, **app.job, "template": template}
        spec = {
            "replicas": pods,
            "selector": {"matchLabels": {"app": app.name}},
            "template": template,
        }
        if app.kind == "StatefulSet":
            spec |= {"serviceName": app.name, "podManagementPolicy": "Parallel"}
        return spec

    def pod(self, app: App) -> Body:
        """The pod template of the workload."""
        source = {"resourceClaimName": app.claim}
        if not app.claim:
            source = {"resourceClaimTemplateName": TEMPLATE}
        meta: Body = {"labels": {"app": app.name}}
        if app.kind == "Job":
            meta["annotations"] = {RUN_SECONDS: app.seconds, EXIT_CODE: app.exit_code}
        container = {"name": "main", "image": "train", "resources": {"claims": [{"name": "gpu"}]}}
        spec: Body = {"containers": [container], "resourceClaims": [{"name": "gpu", **source}]}
        # With PodGroups, 1.36 may bind pods of a group to nodes without the devices.
        spec["affinity"] = {"nodeAffinity": self._own_nodes()}
        spec["terminationGracePeriodSeconds"] = 5
        if app.group:
            spec["schedulingGroup"] = {"podGroupName": app.group}
        return {"metadata": meta, "spec": spec}

    def _own_nodes(self) -> Body:
        names = {"key": "kubernetes.io/hostname", "operator": "In"}
        term = {"matchExpressions": [{**names, "values": list(self.fleet.names)}]}
        return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
