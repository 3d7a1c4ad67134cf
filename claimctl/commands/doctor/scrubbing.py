"""What of an object goes into a report: nothing that may be secret. Pure.

Pods and workloads are reduced to the fields that concern claims: no commands, arguments,
environment variables or volumes. Of annotations only those of claimctl and of DRA stay, and the
parameters of drivers are hidden.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

HIDDEN = "<hidden>"
_META = (
    *("name", "generateName", "namespace", "uid", "resourceVersion", "generation"),
    *("creationTimestamp", "deletionTimestamp", "labels", "finalizers", "ownerReferences"),
)
_ANNOTATIONS = ("claimctl.io/", "resource.kubernetes.io/", "kube-in-process/")
_POD_SPEC = (
    *("nodeName", "resourceClaims", "schedulingGroup", "workloadRef", "schedulerName"),
    *("schedulingGates", "tolerations", "terminationGracePeriodSeconds", "restartPolicy"),
)
_POD_STATUS = (
    *("phase", "conditions", "reason", "message", "startTime", "nominatedNodeName"),
    *("resourceClaimStatuses", "extendedResourceClaimStatus"),
)
_WORKLOAD_SPEC = (
    *("replicas", "parallelism", "completions", "suspend", "backoffLimit", "selector", "strategy"),
    *("paused", "podManagementPolicy", "updateStrategy"),
)
_NODE_STATUS = ("conditions", "nodeInfo")
_CONTAINER = ("name", "ready", "restartCount", "state", "started")


def scrubbed(body: Mapping[str, Any], plural: str) -> Json:
    """The part of an object that a report shows."""
    match plural:
        case "pods":
            status = body.get("status") or {}
            containers = [_pick(part, _CONTAINER) for part in status.get("containerStatuses") or ()]
            shown = {**_pick(status, _POD_STATUS), "containerStatuses": containers}
            return _with(body, spec=_pod_spec(body), status=shown)
        case "deployments" | "statefulsets" | "jobs" | "replicasets":
            return _with(body, spec=_workload_spec(body), status=body.get("status") or {})
        case "nodes":
            return _with(body, status=_pick(body.get("status") or {}, _NODE_STATUS))
    known = ("apiVersion", "kind", "metadata")
    rest = {key: _inside(value) for key, value in body.items() if key not in known}
    whole = _with(body, **rest)
    managed = (body.get("metadata") or {}).get("managedFields")
    if plural == "resourceclaims" and managed:
        whole["metadata"]["managedFields"] = managed
    return whole


def _with(body: Mapping[str, Any], **parts: Any) -> Json:
    head = {key: body[key] for key in ("apiVersion", "kind") if key in body}
    return {**head, "metadata": _metadata(body), **parts}


def _metadata(body: Mapping[str, Any]) -> Json:
    given = body.get("metadata") or {}
    annotations = {
        key: value
        for key, value in (given.get("annotations") or {}).items()
        if key.startswith(_ANNOTATIONS)
    }
    return {**_pick(given, _META), **({"annotations": annotations} if annotations else {})}


def _pick(given: Mapping[str, Any], keys: tuple[str, ...]) -> Json:
    return {key: given[key] for key in keys if key in given}


def _pod_spec(body: Mapping[str, Any]) -> Json:
    spec = body.get("spec") or {}
    claims = [
        {"name": container.get("name"), "claims": (container.get("resources") or {}).get("claims")}
        for container in spec.get("containers") or ()
    ]
    return {**_pick(spec, _POD_SPEC), "containers": claims}


def _workload_spec(body: Mapping[str, Any]) -> Json:
    spec = body.get("spec") or {}
    template = spec.get("template") or {}
    shown = {"metadata": _metadata(template), "spec": _pod_spec(template)}
    return {**_pick(spec, _WORKLOAD_SPEC), "template": shown}


def _inside(value: Any) -> Any:
    """The value with the opaque parameters and data of drivers hidden, and every metadata inside
    reduced like that of the object: a claim template has one in its spec."""
    if isinstance(value, list):
        return [_inside(part) for part in value]
    if not isinstance(value, dict):
        return value
    opaque = isinstance(value.get("driver"), str)
    shown = {
        key: HIDDEN if opaque and key in ("parameters", "data") else _inside(part)
        for key, part in value.items()
    }
    if isinstance(shown.get("metadata"), dict):
        shown["metadata"] = _metadata(shown)
    return shown
