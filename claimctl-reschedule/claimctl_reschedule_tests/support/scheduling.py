"""Builders of the objects on which planning decides."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict, Unpack

from claimctl.wire.base import from_plain
from claimctl.wire.meta import ObjectHeader
from claimctl_reschedule.plan.observed import Observed
from claimctl_reschedule.plan.plan import Plan
from claimctl_reschedule.shapes.scheduling import PodDisruptionBudget, SchedulingNode, SchedulingPod

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
GI = 1024**3


class NodeParts(TypedDict, total=False):
    """``taints`` are pairs of key and effect; ``more`` are further allocatable resources."""

    labels: dict[str, str]
    taints: tuple[tuple[str, str], ...]
    unschedulable: bool
    ready: bool
    more: dict[str, str]


def node(
    name: str, cpu: str = "8", memory: str = "32Gi", pods: int = 110, **parts: Unpack[NodeParts]
) -> SchedulingNode:
    ready = "True" if parts.get("ready", True) else "False"
    labels = {"kubernetes.io/hostname": name} | parts.get("labels", {})
    allocatable = {"cpu": cpu, "memory": memory, "pods": str(pods)} | parts.get("more", {})
    return from_plain(
        {
            "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
            "spec": {
                "unschedulable": parts.get("unschedulable", False),
                "taints": [{"key": k, "effect": effect} for k, effect in parts.get("taints", ())],
            },
            "status": {
                "allocatable": allocatable,
                "conditions": [{"type": "Ready", "status": ready}],
            },
        },
        SchedulingNode,
    )


def owner_of(name: str, kind: str = "ReplicaSet") -> dict[str, Any]:
    versions = {"Job": "batch/v1", "Node": "v1", "ReplicationController": "v1"}
    version = versions.get(kind, "apps/v1")
    uid = f"uid-{kind}-{name}"
    return {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}


class PodParts(TypedDict, total=False):
    """``age`` is in seconds before ``NOW``; ``spec`` and ``status`` replace whole fields."""

    kind: str
    namespace: str
    requests: dict[str, str]
    labels: dict[str, str]
    annotations: dict[str, str]
    priority: int
    qos: str
    phase: str
    ready: bool
    age: float
    deleting: bool
    image: str
    spec: dict[str, Any]
    status: dict[str, Any]


def pod(
    name: str,
    on: str = "",
    owner: str | None = "web",
    cpu: str | None = "100m",
    **parts: Unpack[PodParts],
) -> SchedulingPod:
    """A pod on the node ``on`` with one container. Without an owner it is a bare pod."""
    namespace = parts.get("namespace", "team")
    created = NOW - timedelta(seconds=parts.get("age", 3600.0))
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{namespace}-{name}",
        "labels": parts.get("labels", {"app": owner or name}),
        "annotations": parts.get("annotations", {}),
        "creationTimestamp": created.isoformat(),
        "ownerReferences": [owner_of(owner, parts.get("kind", "ReplicaSet"))] if owner else [],
    }
    if parts.get("deleting"):
        metadata["deletionTimestamp"] = NOW.isoformat()
    requests = ({"cpu": cpu} if cpu else {}) | parts.get("requests", {})
    container = {
        "name": "c",
        "image": parts.get("image", "web:1"),
        "resources": {"requests": requests},
    }
    spec = {"nodeName": on, "priority": parts.get("priority", 0), "containers": [container]}
    ready = "True" if parts.get("ready", True) else "False"
    status = {
        "phase": parts.get("phase", "Running"),
        "qosClass": parts.get("qos", "Burstable"),
        "conditions": [{"type": "Ready", "status": ready}],
    }
    document = {
        "metadata": metadata,
        "spec": spec | parts.get("spec", {}),
        "status": status | parts.get("status", {}),
    }
    return from_plain(document, SchedulingPod)


class BudgetParts(TypedDict, total=False):
    """``healthy`` are the pods that are healthy now, and those that should be."""

    namespace: str
    generation: int
    observed: int
    healthy: tuple[int, int]
    policy: str


def budget(
    name: str, allowed: int, selector: dict[str, Any] | None, **parts: Unpack[BudgetParts]
) -> PodDisruptionBudget:
    healthy, desired = parts.get("healthy", (3, 2))
    spec: dict[str, Any] = {"selector": selector}
    if "policy" in parts:
        spec["unhealthyPodEvictionPolicy"] = parts["policy"]
    metadata = {"name": name, "namespace": parts.get("namespace", "team")}
    status = {
        "observedGeneration": parts.get("observed", 1),
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
    }
    document = {
        "metadata": metadata | {"generation": parts.get("generation", 1)},
        "spec": spec,
        "status": status,
    }
    return from_plain(document, PodDisruptionBudget)


def namespace(name: str, **labels: str) -> ObjectHeader:
    return from_plain({"metadata": {"name": name, "labels": labels}}, ObjectHeader)


def observed(
    *objects: SchedulingNode | SchedulingPod | PodDisruptionBudget, **more: Any
) -> Observed:
    """What a run has read: nodes, pods and budgets in any order, and other fields by name."""
    return Observed(
        now=NOW,
        cluster_uid="cluster",
        nodes=tuple(body for body in objects if isinstance(body, SchedulingNode)),
        pods=tuple(body for body in objects if isinstance(body, SchedulingPod)),
        budgets=tuple(body for body in objects if isinstance(body, PodDisruptionBudget)),
        **more,
    )


def moves(plan: Plan) -> dict[str, tuple[str, str]]:
    """The source and destination of each moved pod, by name."""
    return {move.pod.name: (move.pod.node, move.destination) for move in plan.moves}


def reasons(plan: Plan) -> dict[str, str]:
    """The reason of each skipped pod, by name."""
    return {skip.pod.name: str(skip.reason) for skip in plan.skipped}
