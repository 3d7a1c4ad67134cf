"""The same words as in a trace, for the objects of an embedded cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kube_in_process.storage.store import Revision

from .trace import Fields, TraceEvent

KINDS = {
    "pods": "Pod",
    "resourceclaims": "ResourceClaim",
    "deployments": "Deployment",
    "replicasets": "ReplicaSet",
    "statefulsets": "StatefulSet",
    "jobs": "Job",
    "podgroups": "PodGroup",
}
REVISION = "deployment.kubernetes.io/revision"
GENERATED = ("Deployment", "ReplicaSet", "StatefulSet", "Job", "Pod")


def events(history: Iterable[Revision], namespace: str) -> Iterator[TraceEvent]:
    for revision in history:
        kind = KINDS.get(revision.plural)
        if kind is not None and revision.namespace == namespace:
            fields = shortened(kind, revision.object())
            yield TraceEvent(revision.at, kind, revision.type, revision.name, fields)


def shortened(kind: str, obj: dict[str, Any]) -> Fields:
    """The fields that a trace shows of an object."""
    meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    fields: Fields = {}
    if kind in GENERATED:
        fields["generation"] = meta.get("generation")
    if meta.get("finalizers"):
        fields["finalizers"] = meta["finalizers"]
    if "deletionTimestamp" in meta:
        fields["deleting"] = {"gracePeriodSeconds": meta.get("deletionGracePeriodSeconds")}
    if meta.get("ownerReferences"):
        fields["owners"] = [_owner(owner) for owner in meta["ownerReferences"]]
    conditions = {
        condition["type"]: _condition(condition) for condition in status.get("conditions") or ()
    }
    if conditions:
        fields["conditions"] = conditions
    return {**fields, **OWN[kind](meta, spec, status)}


def _owner(reference: Fields) -> str:
    blocking = " blockOwnerDeletion" if reference.get("blockOwnerDeletion") else ""
    return f"{reference['kind']}/{reference['name']}{blocking}"


def _condition(condition: Fields) -> str:
    reason = condition.get("reason")
    return f"{condition['status']}/{reason}" if reason else str(condition["status"])


def _pod(meta: Fields, spec: Fields, status: Fields) -> Fields:
    fields: Fields = {"node": spec.get("nodeName"), "phase": status.get("phase")}
    if status.get("nominatedNodeName"):
        fields["nominatedNodeName"] = status["nominatedNodeName"]
    index = (meta.get("labels") or {}).get("apps.kubernetes.io/pod-index")
    return {**fields, "pod-index": index} if index is not None else fields


def _claim(_meta: Fields, _spec: Fields, status: Fields) -> Fields:
    allocation = status.get("allocation")
    fields: Fields = {"allocation": None, "reservedFor": []}
    if allocation is not None:
        results = allocation["devices"]["results"]
        fields["allocation"] = [
            "/".join((result["driver"], result["pool"], result["device"])) for result in results
        ]
        if "allocationTimestamp" in allocation:
            fields["allocationTimestamp"] = "<time>"
    fields["reservedFor"] = [
        "/".join(part for part in (entry.get("apiGroup"), entry["resource"], entry["name"]) if part)
        for entry in status.get("reservedFor") or ()
    ]
    return fields


def _scaled(meta: Fields, spec: Fields, status: Fields) -> Fields:
    shown = {key: value for key, value in status.items() if key != "conditions"}
    fields: Fields = {"replicas": spec["replicas"], "status": shown}
    revision = (meta.get("annotations") or {}).get(REVISION)
    return {**fields, "revision": revision} if revision and not _is_set(meta) else fields


def _is_set(meta: Fields) -> bool:
    """Traces show the revision of Deployments only."""
    return bool(meta.get("ownerReferences")) or "pod-template-hash" in (meta.get("labels") or {})


def _job(_meta: Fields, spec: Fields, status: Fields) -> Fields:
    shown = {key: value for key, value in status.items() if key != "conditions"}
    for key in ("startTime", "completionTime"):
        if key in shown:
            shown[key] = "<time>"
    return {"suspend": spec.get("suspend", False), "status": shown}


def _group(_meta: Fields, _spec: Fields, _status: Fields) -> Fields:
    return {}


OWN = {
    "Pod": _pod,
    "ResourceClaim": _claim,
    "Deployment": _scaled,
    "ReplicaSet": _scaled,
    "StatefulSet": _scaled,
    "Job": _job,
    "PodGroup": _group,
}
