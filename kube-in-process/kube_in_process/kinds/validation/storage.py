"""Validation of the kinds of storage.k8s.io."""

from __future__ import annotations

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.validation.amounts import not_negative
from kube_in_process.kinds.validation.go_text import STRUCTS, go_text
from kube_in_process.kinds.validation.label_selectors import label_selector
from kube_in_process.kinds.validation.ordinary import immutable
from kube_in_process.kinds.validation.persistent_volumes import (
    csi_driver_name,
    inline_volume_errors,
    negative_quantity,
)
from kube_in_process.objects import Object
from kube_in_process.text import names

_RECLAIM = ("Delete", "Retain")
_BINDING = ("Immediate", "WaitForFirstConsumer")
_FS_GROUP = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLE = ("Persistent", "Ephemeral")
_MOST_PARAMETERS, _LARGEST_PARAMETERS = 512, 256 * 1024
_LONGEST_NODE_ID, _LONGEST_MESSAGE = 256, 1024
_SHORTEST_TOKEN, _LONGEST_TOKEN = 600, 1 << 32


def storage_class_rules(obj: Object) -> list[FieldError]:
    field_errors = _provisioner(obj.get("provisioner") or "", "provisioner")
    field_errors += _parameters(obj.get("parameters") or {})
    if (reclaim := obj.get("reclaimPolicy")) and reclaim not in _RECLAIM:
        field_errors.append(errors.not_supported("reclaimPolicy", reclaim, _RECLAIM))
    binding = obj.get("volumeBindingMode")
    if binding not in _BINDING:
        field_errors.append(errors.not_supported("volumeBindingMode", binding, _BINDING))
    for index, term in enumerate(obj.get("allowedTopologies") or []):
        field_errors += _topology(term, f"allowedTopologies[{index}].matchLabelExpressions")
    return field_errors


def storage_class_changes(new: Object, old: Object) -> list[FieldError]:
    fixed = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
    return immutable(new, old, fixed)


def _provisioner(name: str, path: str) -> list[FieldError]:
    if not name:
        return [errors.required(path)]
    return errors.invalid_name(path, name.lower(), names.qualified_name)


def _parameters(parameters: Object) -> list[FieldError]:
    path = "parameters"
    if len(parameters) > _MOST_PARAMETERS:
        return [errors.too_long(path, _MOST_PARAMETERS)]
    field_errors: list[FieldError] = []
    if "" in parameters:
        field_errors.append(errors.invalid_value(path, "", "field can not be empty."))
    if sum(len(key) + len(value) for key, value in parameters.items()) > _LARGEST_PARAMETERS:
        field_errors.append(errors.too_long(path, _LARGEST_PARAMETERS))
    return field_errors


def _topology(term: Object, path: str) -> list[FieldError]:
    field_errors: list[FieldError] = []
    keys: list[str] = []
    for index, expression in enumerate(term.get("matchLabelExpressions") or []):
        place, key, values = (
            f"{path}[{index}]",
            expression.get("key") or "",
            expression.get("values") or [],
        )
        if not values:
            field_errors.append(errors.required(f"{place}.values"))
        field_errors += [
            errors.duplicate(f"{place}.values[{at}]", value)
            for at, value in enumerate(values)
            if value in values[:at]
        ]
        field_errors += errors.invalid_name(f"{place}.key", key, names.qualified_name)
        if key in keys:
            field_errors.append(errors.duplicate(f"{place}.key", key))
        keys.append(key)
    return field_errors


def attributes_class_rules(obj: Object) -> list[FieldError]:
    """The errors of a VolumeAttributesClass."""
    parameters = obj.get("parameters") or {}
    field_errors = [
        *_provisioner(obj.get("driverName") or "", "driverName"),
        *_parameters(parameters),
    ]
    if not parameters:
        text = "must contain at least one key/value pair"
        field_errors.append(errors.required("parameters", text))
    return field_errors


def attributes_class_changes(new: Object, old: Object) -> list[FieldError]:
    fixed = [
        errors.forbidden_field(key, f"updates to {key} are forbidden.")
        for key in ("driverName", "parameters")
        if (new.get(key) or None) != (old.get(key) or None)
    ]
    return [*fixed, *attributes_class_rules(new)]


def driver_rules(obj: Object) -> list[FieldError]:
    """The errors of a CSIDriver."""
    spec = obj["spec"]
    policy = spec.get("fsGroupPolicy")
    field_errors: list[FieldError] = []
    if policy is not None and policy not in _FS_GROUP:
        field_errors.append(errors.not_supported("spec.fsGroupPolicy", policy, _FS_GROUP))
    requests = spec.get("tokenRequests") or []
    field_errors += _token_requests(requests)
    field_errors += [
        errors.not_supported("spec.volumeLifecycleModes", mode, _LIFECYCLE)
        for mode in spec.get("volumeLifecycleModes") or []
        if mode not in _LIFECYCLE
    ]
    path = "spec.nodeAllocatableUpdatePeriodSeconds"
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < 10:
        text = "must be greater than or equal to 10 seconds"
        field_errors.append(errors.invalid_value(path, period, text))
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets is not None and not requests:
        text = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        path = "spec.serviceAccountTokenInSecrets"
        field_errors.append(errors.invalid_value(path, in_secrets, text))
    return field_errors


def _token_requests(requests: list[Object]) -> list[FieldError]:
    field_errors: list[FieldError] = []
    audiences: list[str] = []
    for index, request in enumerate(requests):
        path, audience = f"spec.tokenRequests[{index}]", request.get("audience") or ""
        if audience in audiences:
            field_errors.append(errors.duplicate(f"{path}.audience", audience))
            continue
        audiences.append(audience)
        seconds, where = request.get("expirationSeconds"), f"{path}.expirationSeconds"
        if seconds is not None and seconds < _SHORTEST_TOKEN:
            text = "may not specify a duration less than 10 minutes"
            field_errors.append(errors.invalid_value(where, seconds, text))
        if seconds is not None and seconds > _LONGEST_TOKEN:
            text = "may not specify a duration larger than 2^32 seconds"
            field_errors.append(errors.invalid_value(where, seconds, text))
    return field_errors


def driver_changes(new: Object, old: Object) -> list[FieldError]:
    field_errors: list[FieldError] = []
    for key, shown in (
        ("attachRequired", "attachedRequired"),
        ("volumeLifecycleModes", "volumeLifecycleModes"),
    ):
        if new["spec"].get(key) != old["spec"].get(key):
            value = new["spec"].get(key)
            field_errors.append(errors.invalid_value(f"spec.{shown}", value, "field is immutable"))
    return field_errors


def node_rules(obj: Object) -> list[FieldError]:
    """The errors of a CSINode."""
    field_errors: list[FieldError] = []
    seen: set[str] = set()
    for index, driver in enumerate((obj.get("spec") or {}).get("drivers") or []):
        path, name = f"spec.drivers[{index}]", driver.get("name") or ""
        field_errors += csi_driver_name(name, f"{path}.name")
        field_errors += _node_id(driver.get("nodeID") or "", f"{path}.nodeID")
        limits = driver.get("allocatable") or {}
        field_errors += not_negative(limits, ("count",), f"{path}.allocatable")
        if name in seen:
            field_errors.append(errors.duplicate(f"{path}.name", name))
        seen.add(name)
        keys = driver.get("topologyKeys") or []
        for at, key in enumerate(keys):
            if not key:
                field_errors.append(errors.required(path))
            if key in keys[:at]:
                field_errors.append(errors.duplicate(path, key))
            field_errors += errors.invalid_name(path, key, names.qualified_name)
    return field_errors


def _node_id(value: str, path: str) -> list[FieldError]:
    if not value:
        return [errors.required(path)]
    text = f"must be {_LONGEST_NODE_ID} characters or less"
    return [errors.invalid_value(path, value, text)] if len(value) > _LONGEST_NODE_ID else []


def node_changes(new: Object, old: Object) -> list[FieldError]:
    """Of a driver that stays, only what it can attach may change."""
    before = {driver["name"]: driver for driver in old["spec"].get("drivers") or []}
    field_errors: list[FieldError] = []
    for driver in new["spec"].get("drivers") or []:
        known = before.get(driver.get("name"))
        if known is None:
            continue
        now = {**driver, "allocatable": None}
        if now != {**known, "allocatable": None}:
            shown = go_text(now, STRUCTS["node_driver"])
            field_errors.append(errors.invalid_text("spec.drivers", shown, "field is immutable"))
    return field_errors


def attachment_rules(obj: Object) -> list[FieldError]:
    """The errors of a VolumeAttachment."""
    spec = obj["spec"]
    source, path = spec.get("source") or {}, "spec.source"
    volume, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    one_of = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    field_errors = csi_driver_name(spec.get("attacher") or "", "spec.attacher")
    if volume is None and inline is None:
        field_errors.append(errors.required(path, one_of))
    elif volume is not None and inline is not None:
        field_errors.append(errors.forbidden_field(path, one_of))
    elif volume == "":
        text = "must specify non empty persistentVolumeName"
        field_errors.append(errors.required(f"{path}.persistentVolumeName", text))
    elif inline is not None:
        field_errors += inline_volume_errors(inline, f"{path}.inlineVolumeSpec")
    field_errors += errors.invalid_name(
        "spec.nodeName", spec.get("nodeName") or "", names.subdomain
    )
    field_errors += attachment_status_rules(obj)
    if volume is not None:
        field_errors += errors.invalid_name(f"{path}.persistentVolumeName", volume, names.subdomain)
    return field_errors


def attachment_changes(new: Object, old: Object) -> list[FieldError]:
    if new["spec"] == old["spec"]:
        return []
    shown = go_text(new["spec"], STRUCTS["attachment_spec"])
    return [errors.invalid_text("spec", shown, "field is immutable")]


def attachment_status_rules(obj: Object) -> list[FieldError]:
    status = obj.get("status") or {}
    field_errors: list[FieldError] = []
    for key in ("attachError", "detachError"):
        problem, path = status.get(key) or {}, f"status.{key}"
        if len((problem.get("message") or "").encode()) > _LONGEST_MESSAGE:
            field_errors.append(errors.too_long(f"{path}.message", _LARGEST_PARAMETERS))
        code = problem.get("errorCode")
        if code is not None and code < 0:
            text = "must be between 0 and 2147483647, inclusive"
            field_errors.append(errors.invalid_value(f"{path}.errorCode", code, text))
    return field_errors


def capacity_rules(obj: Object) -> list[FieldError]:
    """The errors of a CSIStorageCapacity."""
    field_errors: list[FieldError] = []
    if obj.get("nodeTopology") is not None:
        field_errors += label_selector(obj["nodeTopology"], "nodeTopology")
    name = obj.get("storageClassName") or ""
    field_errors += errors.invalid_name("storageClassName", name, names.subdomain)
    return [*field_errors, *negative_quantity(obj.get("capacity"), "capacity")]


def capacity_changes(new: Object, old: Object) -> list[FieldError]:
    return immutable(new, old, ("nodeTopology", "storageClassName"))
