"""Builders of ResourceSlices, claims and pods for the planning of moves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from claimctl.wire.base import from_plain
from claimctl.wire.device_classes import DeviceClass
from claimctl.wire.reservations import ClaimReservation
from claimctl_reschedule.plan.observed import ActingController, Observed
from claimctl_reschedule.shapes.devices import (
    ClaimTemplate,
    DeviceTaintRule,
    SchedulingClaim,
    SchedulingSlice,
)
from claimctl_reschedule.shapes.scheduling import SchedulingNode, SchedulingPod, SchedulingPodGroup
from tests.support.builders import NOW, after

DRIVER, CLASS = "gpu.example.com", "gpu"
Json = dict[str, Any]


def device(name: str, *, taints: Iterable[Json] = (), **fields: Any) -> Json:
    """A device. ``model`` and ``index`` are attributes, ``memory`` is a capacity."""
    attributes = {
        key: {"int": value} if isinstance(value, int) else {"string": value}
        for key in ("model", "index", "numa")
        if (value := fields.pop(key, None)) is not None
    }
    made: Json = {"name": name, **fields}
    if memory := made.pop("memory", None):
        made["capacity"] = {"memory": {"value": memory}}
    if attributes:
        made["attributes"] = attributes
    if taints:
        made["taints"] = list(taints)
    return made


TAINT = {"key": "broken", "value": "yes", "effect": "NoSchedule"}


def slice_(
    *devices: Json | str,
    node: str = "node-0",
    pool: str | None = None,
    generation: int = 1,
    count: int = 1,
    name: str | None = None,
    **spec: Any,
) -> SchedulingSlice:
    of_many = spec.keys() & {"allNodes", "nodeSelector", "perDeviceNodeSelection"}
    pool = pool or node
    body = {
        "metadata": {"name": name or f"{pool}-{generation}"},
        "spec": {
            "driver": DRIVER,
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
            "devices": [device(given) if isinstance(given, str) else given for given in devices],
            **({} if of_many else {"nodeName": node}),
            **spec,
        },
    }
    return from_plain(body, SchedulingSlice)


def taint_rule(selector: Json | None, **taint: str) -> DeviceTaintRule:
    spec = {"taint": {**TAINT, **taint}, "deviceSelector": selector}
    return from_plain({"metadata": {"name": "rule"}, "spec": spec}, DeviceTaintRule)


def device_class(name: str = CLASS, *selectors: str) -> DeviceClass:
    chosen = selectors or (f'device.driver == "{DRIVER}"',)
    body = {
        "metadata": {"name": name},
        "spec": {"selectors": [cel(expression) for expression in chosen]},
    }
    return from_plain(body, DeviceClass)


def cel(expression: str) -> Json:
    return {"cel": {"expression": expression}}


def request(name: str = "gpu", *selectors: str, **fields: Any) -> Json:
    exactly = {
        "deviceClassName": CLASS,
        "selectors": [cel(selector) for selector in selectors],
        **fields,
    }
    return {"name": name, "exactly": exactly}


def claim(  # noqa: PLR0913 - each says one thing about a claim
    name: str = "slice",
    *devices: str,
    node: str = "node-0",
    requests: Iterable[Json] = (),
    constraints: Iterable[Json] = (),
    listed: Iterable[Json] = (),
    owner: str = "",
    allocated: bool | None = None,
    everywhere: bool = False,
    **status: Any,
) -> SchedulingClaim:
    """A claim; with devices of the pool ``node`` it is allocated on that node."""
    meta: Json = {"name": name, "namespace": "ml", "uid": f"uid-{name}"}
    if owner:
        meta["ownerReferences"] = [
            {"kind": "Pod", "name": owner, "uid": f"uid-{owner}", "controller": True}
        ]
    selector = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    results = [
        {"request": "gpu", "driver": DRIVER, "pool": node, "device": device} for device in devices
    ]
    allocation: Json = {"devices": {"results": results}, **status}
    if not everywhere:
        allocation["nodeSelector"] = {"nodeSelectorTerms": [selector]}
    body: Json = {
        "metadata": meta,
        "spec": {
            "devices": {
                "requests": list(requests) or [request()],
                "constraints": list(constraints),
            }
        },
        "status": {"reservedFor": list(listed)},
    }
    if devices if allocated is None else allocated:
        body["status"]["allocation"] = allocation
    return from_plain(body, SchedulingClaim)


def entry(pod: str) -> Json:
    return {"resource": "pods", "name": pod, "uid": f"uid-{pod}"}


HOLD = {"apiGroup": "apps", "resource": "deployments", "name": "train", "uid": "uid-train"}
GROUP = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "uid-g"}


def pod(  # noqa: PLR0913 - each says one thing about a pod
    name: str,
    *claims: str,
    node: str = "node-0",
    generated: str = "",
    group: str = "",
    owner: str = "ReplicaSet",
    workload: str = "set",
    phase: str = "",
    priority: int = 0,
    **fields: Any,
) -> SchedulingPod:
    """A pod that names claims, or has one that was generated for it."""
    spec: Json = {
        "nodeName": node,
        "schedulerName": "default-scheduler",
        "priority": priority,
        "resourceClaims": [{"name": claim, "resourceClaimName": claim} for claim in claims],
        **fields.pop("spec", {}),
    }
    status: Json = {
        "phase": phase or ("Running" if node else "Pending"),
        **fields.pop("status", {}),
    }
    if generated:
        spec["resourceClaims"].append({"name": "own", "resourceClaimTemplateName": "template"})
        status["resourceClaimStatuses"] = [{"name": "own", "resourceClaimName": generated}]
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    meta: Json = {"name": name, "namespace": "ml", "uid": f"uid-{name}", **fields}
    if owner:
        meta["ownerReferences"] = [
            {
                "apiVersion": "batch/v1" if owner == "Job" else "apps/v1",
                "kind": owner,
                "name": workload,
                "uid": f"uid-{workload}",
                "controller": True,
            }
        ]
    return from_plain({"metadata": meta, "spec": spec, "status": status}, SchedulingPod)


def node(
    name: str = "node-0", *, cpu: str = "", conditions: Sequence[Json] = (), **spec: Any
) -> SchedulingNode:
    meta = {"name": name, "uid": f"uid-{name}", "labels": {"kubernetes.io/hostname": name}}
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "110"} if cpu else {}
    status = {"allocatable": allocatable, "conditions": list(conditions)}
    body = {"metadata": meta, "spec": spec, "status": status}
    return from_plain(body, SchedulingNode)


def template(*requests: Json, name: str = "template") -> ClaimTemplate:
    body = {
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"spec": {"devices": {"requests": list(requests) or [request()]}}},
    }
    return from_plain(body, ClaimTemplate)


def reservation(
    claim: str = "slice", *, name: str = "", timeout: int | None = 60, **status: Any
) -> ClaimReservation:
    body = {
        "metadata": {"name": name or claim, "namespace": "ml", "uid": f"uid-of-{name or claim}"},
        "spec": {
            "resourceClaimName": claim,
            "workloadRef": {"apiGroup": "apps", "kind": "Deployment", "name": "train"},
            "reallocateTimeoutSeconds": timeout,
        },
        "status": {"claimUID": f"uid-{claim}", "reservedFor": HOLD, **status},
    }
    return from_plain(body, ClaimReservation)


def pod_group(name: str = "g", **spec: Any) -> SchedulingPodGroup:
    body = {"metadata": {"name": name, "namespace": "ml", "uid": f"uid-{name}"}, "spec": spec}
    return from_plain(body, SchedulingPodGroup)


def observed(**fields: Any) -> Observed:
    """Three nodes, one class for all devices of ``DRIVER``, and a controller that acts for long."""
    nodes = tuple(node(f"node-{number}") for number in range(3))
    usual = {"now": NOW, "nodes": nodes, "device_classes": (device_class(),)}
    return Observed(**{**usual, "controller": ActingController(after(-3600), "acts"), **fields})
