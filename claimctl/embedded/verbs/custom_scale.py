"""The scale subresource of custom kinds, through the paths in their definition."""

from __future__ import annotations

from typing import Any

from claimctl.embedded import errors
from claimctl.embedded.kinds.strategy import ScalePaths
from claimctl.embedded.storage.store import decode, encode
from claimctl.embedded.text import jsonpath
from claimctl.embedded.verbs import writing
from claimctl.embedded.verbs.reading import Target, stored
from claimctl.embedded.verbs.state import ServerState
from claimctl.embedded.verbs.writing import Write

Object = dict[str, Any]


def get_scale(state: ServerState, target: Target) -> Object:
    """The autoscaling/v1 Scale of a custom object. Raises StatusError 404."""
    return _scale_of(_paths(state, target), stored(state, target))


def put_scale(write: Write, scale: Object) -> Object:
    """Set the replicas through /scale. Raises StatusError 404, 409, 422."""
    target = write.target
    paths = _paths(write.state, target)
    old = stored(write.state, target)
    new = decode(encode(old))
    new["metadata"]["resourceVersion"] = (scale.get("metadata") or {}).get("resourceVersion", "")
    jsonpath.put(paths.spec, new, (scale.get("spec") or {}).get("replicas", 0))
    return _scale_of(paths, writing.modify(write, old, new))


def _paths(state: ServerState, target: Target) -> ScalePaths:
    paths = state.strategies.of(target.kind).scale
    if paths is None:
        raise errors.unknown_resource()
    return paths


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
    selector = jsonpath.find(paths.selector, obj) if paths.selector else []
    if selector:
        scale["status"]["selector"] = selector[0]
    return scale


def _number(path: str, obj: Object) -> int:
    values = jsonpath.find(path, obj)
    return int(values[0]) if values and isinstance(values[0], int) else 0
