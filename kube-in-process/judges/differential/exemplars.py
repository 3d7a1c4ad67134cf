"""Valid objects of every kind that the requests concern: a rich and a small one for each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Exemplar:
    """Objects of one kind. ``bodies`` have no names; ``statuses`` are written through /status."""

    group: str
    version: str
    plural: str
    kind: str
    bodies: tuple[Object, ...]
    namespaced: bool = True
    statuses: tuple[Object, ...] = ()
    subresources: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    """Field selectors to try."""
    weight: int = 3
    extra: Object = field(default_factory=dict)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"

    def collection(self, namespace: str) -> str:
        middle = f"/namespaces/{namespace}" if self.namespaced else ""
        return f"{self.root}{middle}/{self.plural}"


CONTAINER: Object = {"name": "main", "image": "example.com/image:1"}
RICH_CONTAINER: Object = {
    "name": "main",
    "image": "example.com/image",
    "command": ["run"],
    "args": ["--fast"],
    "env": [{"name": "A", "value": "b"}, {"name": "B", "value": "c"}],
    "ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 443, "protocol": "UDP"}],
    "resources": {
        "requests": {"cpu": "100m", "memory": "64Mi"},
        "limits": {"cpu": "1", "memory": "128Mi"},
        "claims": [{"name": "gpu"}],
    },
}
POD_SPECS: tuple[Object, ...] = (
    {"containers": [CONTAINER]},
    {
        "containers": [RICH_CONTAINER, {"name": "side", "image": "x:latest"}],
        "initContainers": [{"name": "first", "image": "x"}],
        "resourceClaims": [
            {"name": "gpu", "resourceClaimName": "slice"},
            {"name": "own", "resourceClaimTemplateName": "each"},
        ],
        "tolerations": [
            {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "node", "value": "x", "effect": "NoExecute", "tolerationSeconds": 30},
        ],
        "nodeSelector": {"disk": "fast"},
        "terminationGracePeriodSeconds": 5,
        "restartPolicy": "Always",
        "schedulingGates": [{"name": "example.com/wait"}],
    },
)
TEMPLATE: Object = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [CONTAINER]}}
RICH_TEMPLATE: Object = {
    "metadata": {"labels": {"app": "a", "tier": "b"}, "annotations": {"note": "x"}},
    "spec": {
        "containers": [RICH_CONTAINER],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "slice"}],
    },
}
SELECTOR: Object = {"matchLabels": {"app": "a"}}
CONDITION: Object = {
    "type": "Ready",
    "status": "True",
    "reason": "Fine",
    "message": "it is",
    "lastTransitionTime": "2026-01-02T03:04:05Z",
}


def _request(version: str, name: str, **exact: Any) -> Object:
    content = {"deviceClassName": "gpu.example.com", **exact}
    return {"name": name, **content} if version == "v1beta1" else {"name": name, "exactly": content}


def _claim_specs(version: str) -> tuple[Object, ...]:
    cel = {"cel": {"expression": 'device.driver == "gpu.example.com"'}}
    rich: Object = {
        "devices": {
            "requests": [
                _request(version, "one", count=2, allocationMode="ExactCount"),
                _request(version, "all", allocationMode="All", selectors=[cel]),
            ],
            "constraints": [{"requests": ["one"], "matchAttribute": "gpu.example.com/model"}],
            "config": [
                {
                    "requests": ["all"],
                    "opaque": {"driver": "gpu.example.com", "parameters": {"kind": "x", "a": 1}},
                }
            ],
        }
    }
    return ({"devices": {"requests": [_request(version, "one")]}}, rich)


def _allocation(admin: Object) -> Object:
    result = {"request": "one", "driver": "gpu.example.com", "pool": "p", "device": "d0", **admin}
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-0"]}]},
    ]
    return {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": terms},
    }


def _claim_statuses(version: str) -> tuple[Object, ...]:
    reference = {"resource": "pods", "name": "a", "uid": "pod-uid-1"}
    other = {"resource": "deployments", "apiGroup": "apps", "name": "b", "uid": "uid-2"}
    allocation = _allocation({"adminAccess": False} if version == "v1beta1" else {})
    device = {
        "driver": "gpu.example.com",
        "pool": "p",
        "device": "d0",
        "conditions": [CONDITION],
        "data": {"a": 1},
        "networkData": {"interfaceName": "eth0", "ips": ["10.0.0.1/24"]},
    }
    return (
        {"allocation": allocation},
        {"allocation": allocation, "reservedFor": [reference]},
        {"allocation": allocation, "reservedFor": [reference, other]},
        {"allocation": allocation, "reservedFor": [other], "devices": [device]},
    )


def _slices(version: str) -> tuple[Object, ...]:
    attributes = {"model": {"string": "a100"}, "index": {"int": 3}, "ok": {"bool": True}}
    capacity = {"memory": {"value": "40Gi"}}
    content = {"attributes": attributes, "capacity": capacity}
    device = {"name": "d0", "basic": content} if version == "v1beta1" else {"name": "d0", **content}
    plain = {"name": "d1", "basic": {}} if version == "v1beta1" else {"name": "d1"}
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    base = {"driver": "gpu.example.com", "pool": pool}
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
    return (
        {"spec": {**base, "nodeName": "node-0", "devices": [device, plain]}},
        {"spec": {**base, "allNodes": True, "devices": [plain]}},
        {"spec": {**base, "nodeSelector": {"nodeSelectorTerms": terms}, "devices": [device]}},
        {"spec": {**base, "nodeName": "node-0"}},
    )


def _dra(version: str) -> tuple[Exemplar, ...]:
    group = "resource.k8s.io"
    cel = {"cel": {"expression": 'device.driver == "gpu.example.com"'}}
    opaque = {"opaque": {"driver": "gpu.example.com", "parameters": {"a": 1}}}
    specs = _claim_specs(version)
    labelled = {"labels": {"made": "yes"}, "annotations": {"for": "you"}}
    return (
        Exemplar(
            *(group, version, "deviceclasses", "DeviceClass"),
            ({"spec": {"selectors": [cel]}}, {"spec": {}}, {"spec": {"config": [opaque]}}),
            namespaced=False,
        ),
        Exemplar(
            *(group, version, "resourceclaims", "ResourceClaim"),
            tuple({"spec": spec} for spec in specs),
            statuses=_claim_statuses(version),
            subresources=("status",),
            weight=9,
        ),
        Exemplar(
            *(group, version, "resourceclaimtemplates", "ResourceClaimTemplate"),
            (
                {"spec": {"spec": specs[0]}},
                {"spec": {"metadata": labelled, "spec": specs[1]}},
            ),
            weight=4,
        ),
        Exemplar(
            *(group, version, "resourceslices", "ResourceSlice"),
            _slices(version),
            namespaced=False,
            fields=("spec.driver", "spec.nodeName", "spec.pool.name"),
            weight=5,
        ),
    )


_POD_STATUS: tuple[Object, ...] = (
    {
        "phase": "Running",
        "conditions": [CONDITION],
        "containerStatuses": [
            {
                "name": "main",
                "ready": True,
                "restartCount": 0,
                "image": "x",
                "imageID": "",
                "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}},
            }
        ],
    },
    {"phase": "Succeeded"},
    {"resourceClaimStatuses": [{"name": "own", "resourceClaimName": "made"}]},
    {"nominatedNodeName": "node-0", "podIP": "10.0.0.1", "hostIP": "10.0.0.2"},
)
_EVENT_TIME = "2026-01-02T03:04:05.000006Z"


def _core() -> tuple[Exemplar, ...]:
    regarding = {"kind": "Pod", "name": "a", "namespace": "<ns>", "apiVersion": "v1"}
    return (
        Exemplar(
            *("", "v1", "pods", "Pod"),
            tuple({"spec": spec} for spec in POD_SPECS),
            statuses=_POD_STATUS,
            subresources=("status", "binding", "eviction", "ephemeralcontainers", "resize"),
            fields=("spec.nodeName", "status.phase", "spec.restartPolicy", "spec.schedulerName"),
            weight=9,
        ),
        Exemplar(
            *("", "v1", "configmaps", "ConfigMap"),
            (
                {"data": {"k": "v"}},
                {"data": {"k": "v"}, "binaryData": {"b": "aGVsbG8="}, "immutable": True},
                {},
            ),
        ),
        Exemplar(
            *("", "v1", "serviceaccounts", "ServiceAccount"),
            ({}, {"automountServiceAccountToken": False, "imagePullSecrets": [{"name": "s"}]}),
            subresources=("token",),
            weight=2,
        ),
        Exemplar(
            *("", "v1", "secrets", "Secret"),
            ({"data": {"k": "dmFsdWU="}}, {"stringData": {"k": "v"}, "type": "example.com/x"}),
            fields=("type",),
            weight=2,
        ),
        Exemplar(
            *("", "v1", "events", "Event"),
            (
                {
                    "involvedObject": regarding,
                    "reason": "Started",
                    "message": "it runs",
                    "type": "Normal",
                    "source": {"component": "x"},
                    "firstTimestamp": "2026-01-02T03:04:05Z",
                    "lastTimestamp": "2026-01-02T03:04:05Z",
                    "count": 1,
                },
                {
                    "involvedObject": regarding,
                    "reason": "Started",
                    "type": "Warning",
                    "eventTime": _EVENT_TIME,
                    "reportingComponent": "example.com/x",
                    "reportingInstance": "x-0",
                    "action": "Run",
                },
            ),
            fields=("involvedObject.name", "involvedObject.kind", "reason", "type", "source"),
        ),
        Exemplar(
            *("events.k8s.io", "v1", "events", "Event"),
            (
                {
                    "regarding": regarding,
                    "eventTime": _EVENT_TIME,
                    "reportingController": "example.com/x",
                    "reportingInstance": "x-0",
                    "action": "Run",
                    "reason": "Started",
                    "type": "Normal",
                    "note": "it runs",
                },
            ),
            fields=("regarding.name", "reason", "type", "reportingController"),
        ),
        Exemplar(
            *("", "v1", "nodes", "Node"),
            (
                {},
                {
                    "spec": {
                        "unschedulable": True,
                        "taints": [{"key": "gpu", "value": "x", "effect": "NoSchedule"}],
                    },
                    "status": {"capacity": {"cpu": "4", "pods": "110"}, "conditions": [CONDITION]},
                },
            ),
            namespaced=False,
            statuses=(
                {"conditions": [CONDITION], "capacity": {"cpu": "4"}},
                {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]},
            ),
            subresources=("status",),
            fields=("spec.unschedulable",),
            weight=2,
        ),
        Exemplar(
            *("", "v1", "namespaces", "Namespace"),
            ({}, {"spec": {"finalizers": ["kubernetes"]}}),
            namespaced=False,
            statuses=({"phase": "Active"}, {"phase": "Terminating", "conditions": [CONDITION]}),
            subresources=("status", "finalize"),
            fields=("status.phase",),
            weight=2,
        ),
    )


def _workloads() -> tuple[Exemplar, ...]:
    scaled = ("status", "scale")
    return (
        Exemplar(
            *("apps", "v1", "deployments", "Deployment"),
            (
                {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
                {
                    "spec": {
                        "replicas": 3,
                        "selector": SELECTOR,
                        "template": RICH_TEMPLATE,
                        "strategy": {
                            "type": "RollingUpdate",
                            "rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 1},
                        },
                        "minReadySeconds": 1,
                        "revisionHistoryLimit": 2,
                        "paused": True,
                        "progressDeadlineSeconds": 60,
                    }
                },
                {
                    "spec": {
                        "selector": {
                            "matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]
                        },
                        "template": TEMPLATE,
                        "strategy": {"type": "Recreate"},
                    }
                },
            ),
            statuses=(
                {"replicas": 2, "readyReplicas": 1, "observedGeneration": 1},
                {"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1, "readyReplicas": 1},
            ),
            subresources=scaled,
            weight=6,
        ),
        Exemplar(
            *("apps", "v1", "replicasets", "ReplicaSet"),
            (
                {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
                {"spec": {"replicas": 2, "selector": SELECTOR, "template": RICH_TEMPLATE}},
            ),
            statuses=({"replicas": 2, "readyReplicas": 1, "fullyLabeledReplicas": 2},),
            subresources=scaled,
            fields=("status.replicas",),
        ),
        Exemplar(
            *("apps", "v1", "statefulsets", "StatefulSet"),
            (
                {"spec": {"selector": SELECTOR, "template": TEMPLATE, "serviceName": "s"}},
                {
                    "spec": {
                        "replicas": 2,
                        "selector": SELECTOR,
                        "template": RICH_TEMPLATE,
                        "serviceName": "s",
                        "podManagementPolicy": "Parallel",
                        "updateStrategy": {
                            "type": "RollingUpdate",
                            "rollingUpdate": {"partition": 1},
                        },
                        "ordinals": {"start": 1},
                        "persistentVolumeClaimRetentionPolicy": {
                            "whenDeleted": "Delete",
                            "whenScaled": "Retain",
                        },
                        "minReadySeconds": 2,
                    }
                },
                {
                    "spec": {
                        "selector": SELECTOR,
                        "template": TEMPLATE,
                        "updateStrategy": {"type": "OnDelete"},
                    }
                },
            ),
            statuses=({"replicas": 1, "readyReplicas": 1, "currentRevision": "x"},),
            subresources=scaled,
            weight=4,
        ),
        Exemplar(
            *("apps", "v1", "daemonsets", "DaemonSet"),
            ({"spec": {"selector": SELECTOR, "template": TEMPLATE}},),
            statuses=(
                {
                    "currentNumberScheduled": 1,
                    "numberMisscheduled": 0,
                    "desiredNumberScheduled": 1,
                    "numberReady": 1,
                },
            ),
            subresources=("status",),
            weight=1,
        ),
        Exemplar(
            *("batch", "v1", "jobs", "Job"),
            _jobs(),
            statuses=(
                {"active": 1, "startTime": "2026-01-02T03:04:05Z"},
                {"active": 2, "ready": 1, "startTime": "2026-01-02T03:04:05Z"},
            ),
            subresources=("status",),
            fields=("status.successful",),
            weight=6,
        ),
        Exemplar(
            *("batch", "v1", "cronjobs", "CronJob"),
            (
                {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": _jobs()[0]["spec"]}}},
                {
                    "spec": {
                        "schedule": "0 3 * * 1",
                        "suspend": True,
                        "concurrencyPolicy": "Forbid",
                        "jobTemplate": {"spec": _jobs()[0]["spec"]},
                    }
                },
            ),
            subresources=("status",),
            weight=1,
        ),
        Exemplar(
            *("apps", "v1", "controllerrevisions", "ControllerRevision"),
            ({"revision": 1, "data": {"spec": {"a": 1}}}, {"revision": 2}),
            weight=1,
        ),
    )


def _jobs() -> tuple[Object, ...]:
    def template(policy: str) -> Object:
        return {"spec": {"containers": [CONTAINER], "restartPolicy": policy}}

    return (
        {"spec": {"template": template("Never")}},
        {
            "spec": {
                "parallelism": 2,
                "completions": 4,
                "completionMode": "Indexed",
                "backoffLimitPerIndex": 1,
                "maxFailedIndexes": 2,
                "suspend": True,
                "template": template("Never"),
                "ttlSecondsAfterFinished": 60,
                "activeDeadlineSeconds": 100,
            }
        },
        {
            "spec": {
                "backoffLimit": 2,
                "podReplacementPolicy": "Failed",
                "podFailurePolicy": {
                    "rules": [
                        {
                            "action": "FailJob",
                            "onExitCodes": {"operator": "In", "values": [3, 4]},
                        }
                    ]
                },
                "template": template("Never"),
            }
        },
        {"spec": {"completions": 1, "template": template("OnFailure")}},
    )


def _others() -> tuple[Exemplar, ...]:
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
    url = {"nonResourceURLs": ["/healthz"], "verbs": ["get"]}
    rbac = "rbac.authorization.k8s.io"
    account = {"kind": "ServiceAccount", "name": "a", "namespace": "<ns>"}
    user = {"kind": "User", "name": "ann", "apiGroup": rbac}
    cluster_role = {"apiGroup": rbac, "kind": "ClusterRole", "name": "view"}
    return (
        Exemplar(
            *("coordination.k8s.io", "v1", "leases", "Lease"),
            (
                {"spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}},
                {
                    "spec": {
                        "holderIdentity": "a",
                        "leaseDurationSeconds": 15,
                        "acquireTime": _EVENT_TIME,
                        "renewTime": _EVENT_TIME,
                        "leaseTransitions": 2,
                    }
                },
                {},
            ),
        ),
        Exemplar(
            *("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
            (
                {"spec": {"selector": SELECTOR, "minAvailable": 1}},
                {"spec": {"selector": SELECTOR, "maxUnavailable": "30%"}},
                {"spec": {"selector": {}, "unhealthyPodEvictionPolicy": "AlwaysAllow"}},
            ),
            statuses=(
                {
                    "disruptionsAllowed": 1,
                    "currentHealthy": 2,
                    "desiredHealthy": 1,
                    "expectedPods": 2,
                    "observedGeneration": 1,
                },
            ),
            subresources=("status",),
        ),
        Exemplar(rbac, "v1", "roles", "Role", ({"rules": [rule]}, {"rules": []}, {}), weight=2),
        Exemplar(
            *(rbac, "v1", "clusterroles", "ClusterRole"),
            (
                {"rules": [rule, url]},
                {
                    "rules": [],
                    "aggregationRule": {"clusterRoleSelectors": [SELECTOR]},
                },
            ),
            namespaced=False,
            weight=2,
        ),
        Exemplar(
            *(rbac, "v1", "rolebindings", "RoleBinding"),
            (
                {"roleRef": cluster_role, "subjects": [account, user]},
                {"roleRef": {"apiGroup": rbac, "kind": "Role", "name": "r"}},
            ),
            weight=2,
        ),
        Exemplar(
            *(rbac, "v1", "clusterrolebindings", "ClusterRoleBinding"),
            ({"roleRef": cluster_role, "subjects": [account]},),
            namespaced=False,
            weight=1,
        ),
        Exemplar(
            *("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass"),
            ({"value": 100}, {"value": -5, "preemptionPolicy": "Never", "description": "low"}),
            namespaced=False,
            weight=1,
        ),
    )


def _ours() -> tuple[Exemplar, ...]:
    workload = {"apiGroup": "apps", "kind": "Deployment", "name": "train"}
    return (
        Exemplar(
            *("claimctl.io", "v1alpha1", "claimreservations", "ClaimReservation"),
            (
                {"spec": {"resourceClaimName": "slice", "workloadRef": workload}},
                {
                    "spec": {
                        "resourceClaimName": "slice",
                        "resourceClaimTemplateName": "each",
                        "workloadRef": workload,
                    }
                },
            ),
            subresources=("status",),
            weight=3,
        ),
        Exemplar(
            *("claimctl.io", "v1alpha1", "downgradeplans", "DowngradePlan"),
            ({"spec": {}},),
            namespaced=False,
            subresources=("status",),
            weight=1,
        ),
    )


def _groups() -> tuple[Exemplar, ...]:
    group, version = "scheduling.k8s.io", "v1alpha2"
    basic: Object = {"basic": {}}
    gang: Object = {"gang": {"minCount": 2}}
    claims = [
        {"name": "gpu", "resourceClaimName": "slice"},
        {"name": "own", "resourceClaimTemplateName": "each"},
    ]
    return (
        Exemplar(
            *(group, version, "podgroups", "PodGroup"),
            (
                {"spec": {"schedulingPolicy": basic}},
                {"spec": {"schedulingPolicy": gang, "resourceClaims": claims}},
            ),
            statuses=(
                {"conditions": [CONDITION]},
                {"resourceClaimStatuses": [{"name": "own", "resourceClaimName": "made"}]},
            ),
            subresources=("status",),
            weight=5,
        ),
        Exemplar(
            *(group, version, "workloads", "Workload"),
            (
                {"spec": {"podGroupTemplates": [{"name": "g", "schedulingPolicy": basic}]}},
                {
                    "spec": {
                        "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "j"},
                        "podGroupTemplates": [
                            {"name": "g", "schedulingPolicy": gang, "resourceClaims": claims}
                        ],
                    }
                },
            ),
            weight=2,
        ),
    )


def exemplars(version: tuple[int, int], *, pod_groups: bool) -> tuple[Exemplar, ...]:
    """The exemplars for the kinds that a server of ``version`` serves."""
    dra = ("v1",) if version >= (1, 34) else ("v1beta1",)
    if version == (1, 33):
        dra = ("v1beta2",)
    exemplars_of_dra = [exemplar for served in dra for exemplar in _dra(served)]
    groups = _groups() if pod_groups else ()
    return (*exemplars_of_dra, *_core(), *_workloads(), *_others(), *_ours(), *groups)
