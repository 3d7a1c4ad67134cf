"""Writes through pods/resize: what may change, and what the server refuses.

The rules and texts are those of recordings of real servers (``17-pod-resize``).
"""

from __future__ import annotations

from collections.abc import Iterator

from kube_in_process import errors
from kube_in_process.errors import FieldError, StatusError, Subject
from kube_in_process.kinds.defaults.pods import qos_class
from kube_in_process.kinds.pod_requests import amounts, summed
from kube_in_process.kinds.strategy import WriteContext, restore
from kube_in_process.kinds.validation.pod_specs import validate_pod_spec
from kube_in_process.objects import Object
from kube_in_process.storage.store import Address

_MORE_SINCE = (1, 36)
"""From this version on, sizes of init containers and of whole pods may change, and the server asks
the node."""
_LISTS = ("containers", "initContainers")
_SIZES = ("resources", "resizePolicy")
_RESIZABLE = ("cpu", "memory")
_KEPT = ("labels", "annotations", "finalizers", "ownerReferences")


def keep_all_but_sizes(new: Object, old: Object) -> None:
    """Take everything from the old pod but the sizes of its containers."""
    spec = new["spec"]
    same_length = all(len(spec.get(key) or ()) == len(old["spec"].get(key) or ()) for key in _LISTS)
    if not same_length:
        # validation refuses it
        return
    kept = {key: _merged(spec, old["spec"], key) for key in _LISTS if old["spec"].get(key)}
    level = spec.get("resources")
    new["spec"] = {**old["spec"], **kept}
    if level is not None:
        new["spec"]["resources"] = level
    restore(new, old, "status")
    for key in _KEPT:
        restore(new["metadata"], old["metadata"], key)


def _merged(spec: Object, old: Object, key: str) -> list[Object]:
    """The old containers with new sizes; the new ones if they have other names."""
    pairs = list(zip(spec[key], old[key], strict=True))
    if any(container.get("name") != before["name"] for container, before in pairs):
        containers: list[Object] = spec[key]
        return containers
    return [_resized(container, before) for container, before in pairs]


def _resized(container: Object, before: Object) -> Object:
    resized = dict(before)
    for key in _SIZES:
        restore(resized, container, key)
    return resized


def drop_unserved(new: Object, old: Object, version: tuple[int, int]) -> None:
    """Before sizes of whole pods could change, a pod without them got none."""
    if version < _MORE_SINCE and "resources" not in old["spec"]:
        new["spec"].pop("resources", None)


def validate_resize(new: Object, old: Object, context: WriteContext) -> list[FieldError]:
    """The errors of a change of sizes."""
    newer = context.features.version >= _MORE_SINCE
    if why := _never(old, newer=newer):
        # the path of these errors is empty in the server's code
        return [errors.forbidden_field("[]", why)]
    spec, before = new["spec"], old["spec"]
    field_errors = validate_pod_spec(spec, "spec")
    quality = old["status"].get("qosClass", "")
    if qos_class(spec) != quality:
        text = "Pod QOS Class may not change as a result of resizing"
        field_errors.append(errors.invalid_value("spec", quality, text))
    if found_here := list(_other_containers(spec, before)):
        return [*field_errors, *found_here]
    field_errors += _removed(spec, before, newer=newer)
    return field_errors or list(_frozen(spec, before, newer=newer))


def _never(pod: Object, *, newer: bool) -> str:
    """Why a pod cannot be resized at all, or ''."""
    if "kubernetes.io/config.mirror" in (pod["metadata"].get("annotations") or {}):
        return "static pods cannot be resized"
    if (pod["spec"].get("os") or {}).get("name") == "windows":
        return "windows pods cannot be resized"
    if pod["spec"].get("resources") and not newer:
        return "pods with pod-level resources cannot be resized"
    return ""


def _other_containers(spec: Object, old: Object) -> Iterator[FieldError]:
    for key in _LISTS:
        given, before = spec.get(key) or [], old.get(key) or []
        if len(given) != len(before):
            text = f"{key} may not be added or removed on resize"
            yield errors.forbidden_field(f"spec.{key}", text)
            continue
        for index, (container, was) in enumerate(zip(given, before, strict=True)):
            if container.get("name") != was["name"]:
                text = f"{key} may not be renamed or reordered on resize"
                yield errors.forbidden_field(f"spec.{key}[{index}].name", text)


def _removed(spec: Object, old: Object, *, newer: bool) -> list[FieldError]:
    """Requests and limits may change, and may not be removed."""
    field_errors: list[FieldError] = []
    for key in _LISTS:
        pairs = zip(spec.get(key) or (), old.get(key) or (), strict=True)
        for index, (container, was) in enumerate(pairs):
            if key == "initContainers" and not newer and was.get("restartPolicy") != "Always":
                continue
            path = f"spec.{key}[{index}].resources"
            field_errors += _less(container, was, path, "resource")
    return [*field_errors, *_less(spec, old, "spec.resources", "pod-level resource")]


def _less(new: Object, old: Object, path: str, what: str) -> list[FieldError]:
    field_errors: list[FieldError] = []
    for key in ("requests", "limits"):
        given = (new.get("resources") or {}).get(key) or {}
        if ((old.get("resources") or {}).get(key) or {}).keys() - given.keys():
            field_errors.append(
                errors.forbidden_field(f"{path}.{key}", f"{what} {key} cannot be removed")
            )
    return field_errors


def _frozen(spec: Object, old: Object, *, newer: bool) -> Iterator[FieldError]:
    """Nothing but cpu and memory may change. Claims of a container count as a change."""
    if not newer and not all(map(_unchanged_or_sidecar, *_inits(spec, old))):
        text = "resources for non-sidecar init containers are immutable"
        yield errors.forbidden_field("spec", text)
        return
    if not all(map(_only_sizes, spec["containers"], old["containers"])):
        yield errors.forbidden_field("spec", "only cpu and memory resources are mutable")
    for index, (container, was) in enumerate(zip(*_inits(spec, old), strict=True)):
        if _only_sizes(container, was):
            continue
        text = "only cpu and memory resources for sidecar containers are mutable"
        if newer:
            text = text.replace("for sidecar", "for init or sidecar")
        yield errors.forbidden_field(f"spec.initContainers[{index}]" if newer else "spec", text)
    if not _only_sizes({"resources": spec.get("resources")}, {"resources": old.get("resources")}):
        text = "only cpu and memory resources are mutable at pod-level"
        yield errors.forbidden_field("spec", text)


def _inits(spec: Object, old: Object) -> tuple[list[Object], list[Object]]:
    return spec.get("initContainers") or [], old.get("initContainers") or []


def _unchanged_or_sidecar(container: Object, was: Object) -> bool:
    return container == was or was.get("restartPolicy") == "Always"


def _only_sizes(container: Object, was: Object) -> bool:
    resources, before = container.get("resources") or {}, was.get("resources") or {}
    if resources.get("claims") or before.get("claims"):
        return False
    same_policy = container.get("resizePolicy") == was.get("resizePolicy")
    return same_policy and _fixed(resources) == _fixed(before)


def _fixed(resources: Object) -> Object:
    return {
        key: {name: n for name, n in (resources.get(key) or {}).items() if name not in _RESIZABLE}
        for key in ("requests", "limits")
    }


# admission


def admit_resize(new: Object, old: Object, context: WriteContext) -> None:
    """Ask the node of the pod, as admission plugins do from 1.36 on.

    Raises:
        StatusError: 403.
    """
    node_name = old["spec"].get("nodeName", "")
    same = new["spec"] == old["spec"]
    if context.features.version < _MORE_SINCE or not node_name or same:
        return
    subject = Subject("", "pods", old["metadata"]["name"])
    node = context.store.get(Address("", "nodes", "", node_name))
    if node is None:
        raise errors.forbidden(subject, f'node "{node_name}" not found')
    system = (node["metadata"].get("labels") or {}).get("kubernetes.io/os", "linux")
    if system != "linux":
        why = f'pod resize is only supported on linux nodes, node "{node_name}" is "{system}"'
        raise _refused(subject, why, "UnsupportedPlatform")
    _admit_size(new["spec"], node, subject)
    _admit_features(new["spec"], old["spec"], node, subject)


def _admit_size(spec: Object, node: Object, subject: Subject) -> None:
    there = amounts((node.get("status") or {}).get("allocatable"))
    asked = summed(spec)
    lacking = [
        f"{name}, requested: {asked[name]}, allocatable: {there.get(name, 0)}"
        for name in _RESIZABLE
        if asked.get(name, 0) > there.get(name, 0)
    ]
    if lacking:
        why = f"node didn't have enough allocatable resources: {'; '.join(lacking)}"
        raise _refused(subject, why, "NodeCapacity")


def _refused(subject: Subject, why: str, cause: str) -> StatusError:
    refused = errors.forbidden(subject, why)
    refused.details = {**(refused.details or {}), "causes": [{"reason": cause}]}
    return refused


def _admit_features(spec: Object, old: Object, node: Object, subject: Subject) -> None:
    """Sizes of init containers and of whole pods need a kubelet that declares the feature."""
    declared = (node.get("status") or {}).get("declaredFeatures") or ()
    needed = []
    if not all(map(_unchanged_or_sidecar, *_inits(spec, old))):
        needed.append("InPlacePodVerticalScalingInitContainers")
    if spec.get("resources") != old.get("resources"):
        needed.append("InPlacePodLevelResourcesVerticalScaling")
    missing = [feature for feature in needed if feature not in declared]
    if missing:
        why = (
            f"pod update requires features {', '.join(missing)} which are not available on node "
            f'"{node["metadata"]["name"]}"'
        )
        raise errors.forbidden(subject, why)
