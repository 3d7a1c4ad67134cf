"""POST pods/NAME/binding, and POST bindings: give a pod its node."""

from __future__ import annotations

from msgspec.structs import replace

from kube_in_process import errors
from kube_in_process.errors import StatusError, Subject
from kube_in_process.kinds.namespaces import admit_namespace
from kube_in_process.objects import Object
from kube_in_process.storage.store import decode, encode
from kube_in_process.text.times import timestamp
from kube_in_process.verbs import writing
from kube_in_process.verbs.reading import Target, stored
from kube_in_process.verbs.writing import Write


def bind(write: Write, binding: Object) -> Object:
    """Give a pod its node (POST pods/NAME/binding); the answer is a Status.

    Raises:
        StatusError: 400, 404, 409, 422.
    """
    _check_namespace(write, binding)
    if _name(binding) != write.target.name:
        raise errors.bad_request("name in URL does not match name in Binding object")
    return _bind(write, binding)


def _name(binding: Object) -> str:
    return (binding.get("metadata") or {}).get("name") or ""


def _check_namespace(write: Write, binding: Object) -> None:
    target, given = write.target, (binding.get("metadata") or {}).get("namespace")
    if given and given != target.namespace:
        raise errors.bad_request(errors.OTHER_NAMESPACE)
    admit_namespace(write.state.store, target.kind, target.namespace, target.name or _name(binding))


def _bind(write: Write, binding: Object) -> Object:
    target = write.target
    node = (binding.get("target") or {}).get("name", "")
    _check_node(binding.get("target") or {})
    if not target.name:
        raise errors.bad_request("Name parameter required.")
    old = stored(write.state, target)
    _check_binding(write, old, binding)
    new = decode(encode(old))
    new["spec"]["nodeName"] = node
    for key, value in ((binding.get("metadata") or {}).get("annotations") or {}).items():
        new["metadata"].setdefault("annotations", {})[key] = value
    status = new.setdefault("status", {})
    if write.state.features.version >= _CLEARS_NOMINATION_SINCE:
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
    places = [
        index for index, condition in enumerate(conditions) if condition["type"] == "PodScheduled"
    ]
    if places:
        conditions[places[0]] = condition
    else:
        conditions.append(condition)
    status["conditions"] = conditions


def bind_collection(write: Write, binding: Object) -> Object:
    """POST bindings: the body names the pod."""
    _check_namespace(write, binding)
    pods, given = write.state.kinds.named("pods"), write.target
    target = Target(pods, given.namespace, _name(binding), "binding", given.version)
    return _bind(replace(write, target=target), binding)


_CLEARS_NOMINATION_SINCE = (1, 35)
"""From this version on, a bound pod has no nominated node any more."""
_TARGETS = ("Node", "<empty>")


def _check_node(target: Object) -> None:
    """On real servers an invalid target is an error 500, not a 422."""
    kind = target.get("kind") or ""
    field_errors = []
    if kind not in ("", "Node"):
        field_errors.append(errors.not_supported("target.kind", kind, _TARGETS))
    if not target.get("name"):
        field_errors.append(errors.required("target.name"))
    if field_errors:
        text = ", ".join(str(error) for error in field_errors)
        raise StatusError(500, "", text if len(field_errors) == 1 else f"[{text}]")


def _check_binding(write: Write, pod: Object, binding: Object) -> None:
    meta, subject = pod["metadata"], write.target.subject
    uid = (binding.get("metadata") or {}).get("uid")
    if uid and uid != meta["uid"]:
        raise errors.conflict(subject, writing.other_uid(write, uid, meta["uid"]))
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
