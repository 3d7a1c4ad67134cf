"""The scale subresource, of workloads and of custom kinds that define one."""

from __future__ import annotations

from typing import Any

from kube_in_process import errors
from kube_in_process.errors import Subject
from kube_in_process.kinds.metadata import validate_meta
from kube_in_process.kinds.strategy import ScalePaths
from kube_in_process.objects import Object
from kube_in_process.storage.store import decode, encode
from kube_in_process.text import jsonpath
from kube_in_process.text.label_text import selector_text
from kube_in_process.verbs import admitting, writing
from kube_in_process.verbs.incoming import check_name
from kube_in_process.verbs.reading import Target, stored
from kube_in_process.verbs.state import ServerState
from kube_in_process.verbs.writing import Write

_WORKLOADS = ScalePaths(".spec.replicas", ".status.replicas")


def get_scale(state: ServerState, target: Target) -> Object:
    """The autoscaling/v1 Scale of an object. Raises StatusError 404."""
    return _scale_of(_paths(state, target), stored(state, target))


def put_scale(write: Write, scale: Object) -> Object:
    """Set the replicas through /scale.

    Raises:
        StatusError: 400, 404, 409, 422.
    """
    paths = _paths(write.state, write.target)
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    meta = scale.get("metadata") or {}
    if not write.target.kind.custom:
        _check_address(write, meta)
    old = stored(write.state, write.target)
    if not write.target.kind.custom:
        _check(write, meta, old, replicas)
    before = _scale_of(paths, old)
    before["spec"] = {"replicas": _number(paths.spec, old)}
    asked = {**before, "spec": {"replicas": replicas}}
    scale = admitting.admitted_body(write, asked, before)
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    new = decode(encode(old))
    new["metadata"]["resourceVersion"] = meta.get("resourceVersion", "")
    jsonpath.put(paths.spec, new, replicas)
    return _scale_of(paths, writing.modify(write, old, new))


def _paths(state: ServerState, target: Target) -> ScalePaths:
    paths = state.strategies.of(target.kind).scale if target.kind.custom else _WORKLOADS
    if paths is None:
        raise errors.unknown_resource()
    return paths


def _check_address(write: Write, meta: Object) -> None:
    if meta.get("namespace") and meta["namespace"] != write.target.namespace:
        raise errors.bad_request(errors.OTHER_NAMESPACE)
    check_name(write.target, meta)


def _check(write: Write, meta: Object, old: Object, replicas: int) -> None:
    if meta.get("uid") and meta["uid"] != old["metadata"]["uid"]:
        put = write.verb == "update"
        why = (
            writing.other_uid(write, meta["uid"], old["metadata"]["uid"])
            if put
            else errors.MODIFIED_MEANWHILE
        )
        raise errors.conflict(write.target.subject, why)
    field_errors = validate_meta(meta, write.strategy)
    if replicas < 0:
        text = "must be greater than or equal to 0"
        field_errors.append(errors.invalid_value("spec.replicas", replicas, text))
    if field_errors:
        raise errors.invalid(Subject("autoscaling", "Scale", write.target.name), field_errors)


def _scale_of(paths: ScalePaths, obj: Object) -> Object:
    meta = obj["metadata"]
    shown = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    replicas = _number(paths.spec, obj)
    scale: Object = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: meta[key] for key in shown if key in meta},
        "spec": {"replicas": replicas} if replicas else {},
        "status": {"replicas": _number(paths.status, obj)},
    }
    selector = _selector(paths, obj)
    if selector:
        scale["status"]["selector"] = selector
    return scale


def _selector(paths: ScalePaths, obj: Object) -> Any:
    if paths is _WORKLOADS:
        selector = obj["spec"].get("selector") or {}
        plain = obj["kind"] == "ReplicationController"
        return selector_text({"matchLabels": selector} if plain else selector)
    values = jsonpath.find(paths.selector, obj) if paths.selector else []
    return values[0] if values else None


def _number(path: str, obj: Object) -> int:
    values = jsonpath.find(path, obj)
    return int(values[0]) if values and isinstance(values[0], int) else 0
