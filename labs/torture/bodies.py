"""The objects that the users of a schedule create, in its namespace, with its devices."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kube_in_process.components.kubelet.kubelet import EXIT_CODE, RUN_SECONDS
from kube_in_process.real.client import Version
from kube_in_process.real.servers.features import features_of
from kube_in_process.real.servers.nodes import Fleet

from tests.e2e import manifests

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
        """Workloads of two kinds may have one name."""
        return f"{self.kind.lower()}-{self.name}-{self.claim}"

    @property
    def version(self) -> Version:
        return (API[self.kind], self.kind)

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
        body = manifests.claim(name, self.fleet.device_class)
        self._flatten(body["spec"])
        return self._made(self.fleet.claims, body)

    def claim_template(self) -> Body:
        body = manifests.claim_template(TEMPLATE, self.fleet.device_class)
        self._flatten(body["spec"]["spec"])
        return self._made((self.fleet.resource_api, "ResourceClaimTemplate"), body)

    def _flatten(self, spec: Body) -> None:
        """v1beta1 has the fields of ``exactly`` in the request itself."""
        if self.fleet.resource_api.endswith("v1beta1"):
            [request] = spec["devices"]["requests"]
            request |= request.pop("exactly")

    def _made(self, kind: Version, body: Body) -> Body:
        """The object of a scenario as one of this namespace."""
        body["metadata"]["namespace"] = self.namespace
        return {"apiVersion": kind[0], "kind": kind[1], **body}

    def reservation(self, app: App, *, template: bool) -> Body:
        spec = {
            "retentionPolicy": app.policy,
            "idleTimeoutSeconds": 1,
            "forceDeletedPodGraceSeconds": self.grace,
            "reallocateTimeoutSeconds": REALLOCATE,
        }
        if template:
            spec["resourceClaimTemplateName"] = TEMPLATE
        body = manifests.reservation(app.reservation, app.kind, app.name, app.claim, **spec)
        return self._made(RESERVATION, body)

    @property
    def groups(self) -> Version:
        """The version in which a cluster with PodGroups serves them."""
        served = features_of(self.fleet.version, pod_groups=True).served
        return (next(each for each in served if each.startswith("scheduling.k8s.io")), "PodGroup")

    def pod_group(self, name: str, claim: str) -> Body:
        return self._made(self.groups, manifests.pod_group(name, claim))

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
        notes: dict[str, str] = {}
        if app.annotated:
            notes = {"reserve": "*", "retention_policy": app.policy, "idle_timeout_seconds": "1"}
        if app.kind == "Job":
            body = manifests.job(app.name, max(pods, 1), app.claim, None, **notes)
            body["spec"] |= {"backoffLimit": 1, **app.job}
            seconds = {RUN_SECONDS: app.seconds, EXIT_CODE: app.exit_code}
            body["spec"]["template"]["metadata"]["annotations"] = seconds
        else:
            make = manifests.stateful_set if app.kind == "StatefulSet" else manifests.deployment
            body = make(app.name, pods, app.claim, **notes)
        self._furnish(app, body["spec"]["template"]["spec"])
        return self._made(app.version, body)

    def pod_spec(self, app: App) -> Body:
        """The spec of a pod of the workload."""
        spec: Body = self.workload(app, 1)["spec"]["template"]["spec"]
        return spec

    def _furnish(self, app: App, spec: Body) -> None:
        """Let pods ask for a claim of their own if they share none, and for these nodes alone."""
        if not app.claim:
            spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": TEMPLATE}]
        # With PodGroups, 1.36 may bind pods of a group to nodes without the devices.
        spec["affinity"] = {"nodeAffinity": self._own_nodes()}
        spec["terminationGracePeriodSeconds"] = 5
        if app.group:
            spec["schedulingGroup"] = {"podGroupName": app.group}

    def _own_nodes(self) -> Body:
        names = {"key": "kubernetes.io/hostname", "operator": "In"}
        term = {"matchExpressions": [{**names, "values": list(self.fleet.names)}]}
        return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
