"""Subresources that are not a part of the object itself: scale and pods/binding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from claimctl.embedded import errors
from claimctl.embedded.errors import StatusError, Subject
from claimctl.embedded.kinds.metadata import timestamp, validate_meta
from claimctl.embedded.storage.store import decode, encode
from claimctl.embedded.text.label_text import selector_text
from claimctl.embedded.verbs import writing
from claimctl.embedded.verbs.reading import Target, stored
from claimctl.embedded.verbs.state import ServerState
from claimctl.embedded.verbs.writing import Write

Object = dict[str, Any]
_SCALE = Subject("autoscaling", "Scale")


def scale_of(obj: Object) -> Object:
    """The autoscaling/v1 Scale of a workload."""
    meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    shown = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    scale: Object = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: meta[key] for key in shown if key in meta},
        "spec": {"replicas": spec["replicas"]} if spec.get("replicas") else {},
        "status": {"replicas": status.get("replicas", 0)},
    }
    selector = selector_text(spec.get("selector") or {})
    if selector:
        scale["status"]["selector"] = selector
    return scale


def get_scale(state: ServerState, target: Target) -> Object:
    """Raises StatusError 404."""
    return scale_of(stored(state, target))


def put_scale(write: Write, scale: Object) -> Object:
    """Set spec.replicas through /scale.

    Raises:
        StatusError: 400, 404, 409, 422.
    """
    target = write.target
    meta = scale.get("metadata") or {}
    if meta.get("namespace") and meta["namespace"] != target.namespace:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    writing.check_name(target, meta)
    old = stored(write.state, target)
    if meta.get("uid") and meta["uid"] != old["metadata"]["uid"]:
        raise errors.conflict(target.subject, errors.MODIFIED_MEANWHILE)
    new = decode(encode(old))
    new["metadata"]["resourceVersion"] = meta.get("resourceVersion", "")
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    found = validate_meta(meta, write.strategy)
    if replicas < 0:
        text = "must be greater than or equal to 0"
        found.append(errors.invalid_value("spec.replicas", replicas, text))
    if found:
        raise errors.invalid(Subject("autoscaling", "Scale", target.name), found)
    new["spec"]["replicas"] = replicas
    return scale_of(writing.modify(write, old, new))


def bind(write: Write, binding: Object) -> Object:
    """Give a pod its node (POST pods/NAME/binding); the answer is a Status.

    Raises:
        StatusError: 400, 404, 409, 422.
    """
    target = write.target
    node = (binding.get("target") or {}).get("name", "")
    _check_node(binding.get("target") or {})
    old = stored(write.state, target)
    _check_binding(write, old, binding)
    new = decode(encode(old))
    new["spec"]["nodeName"] = node
    for key, value in ((binding.get("metadata") or {}).get("annotations") or {}).items():
        new["metadata"].setdefault("annotations", {})[key] = value
    status = new.setdefault("status", {})
    status.pop("nominatedNodeName", None)
    _scheduled(write, status)
    new["metadata"]["resourceVersion"] = (binding.get("metadata") or {}).get("resourceVersion", "")
    writing.modify(write, old, new)
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _scheduled(write: Write, status: Object) -> None:
    condition = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(write.state.clock.now()),
    }
    conditions = list(status.get("conditions") or [])
    places = [index for index, each in enumerate(conditions) if each["type"] == "PodScheduled"]
    if places:
        conditions[places[0]] = condition
    else:
        conditions.append(condition)
    status["conditions"] = conditions


def bind_collection(write: Write, binding: Object) -> Object:
    """POST bindings: the pod is named in the body."""
    name = (binding.get("metadata") or {}).get("name", "")
    pods = write.state.kinds.named("pods")
    target = Target(pods, write.target.namespace, name, "binding", write.target.version)
    return bind(replace(write, target=target), binding)


_TARGETS = ("Node", "<empty>")


def _check_node(target: Object) -> None:
    """An invalid target is an error 500 on real servers, not a 422."""
    kind = target.get("kind") or ""
    found = []
    if kind not in ("", "Node"):
        found.append(errors.not_supported("target.kind", kind, _TARGETS))
    if not target.get("name"):
        found.append(errors.required("target.name"))
    if found:
        text = ", ".join(str(each) for each in found)
        raise StatusError(500, "", text if len(found) == 1 else f"[{text}]")


def _check_binding(write: Write, pod: Object, binding: Object) -> None:
    meta, subject = pod["metadata"], write.target.subject
    uid = (binding.get("metadata") or {}).get("uid")
    if uid and uid != meta["uid"]:
        raise errors.conflict(subject, writing.other_uid(write, uid, pod))
    named = Subject("", "pods/binding", write.target.name)
    if meta.get("deletionTimestamp"):
        why = f"pod {meta['name']} is being deleted, cannot be assigned to a host"
        raise errors.conflict(named, why)
    assigned = pod["spec"].get("nodeName")
    if assigned:
        why = f'pod {meta["name"]} is already assigned to node "{assigned}"'
        raise errors.conflict(named, why)
    if pod["spec"].get("schedulingGates"):
        why = f"pod {meta['name']} has non-empty .spec.schedulingGates"
        raise errors.conflict(named, why)
