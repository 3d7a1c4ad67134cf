"""Small kinds of the core group and others that differ from an ordinary kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.defaults.workloads import default_conditions
from kube_in_process.kinds.strategy import Strategy, WriteContext
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.storage.store import encode
from kube_in_process.text import names

_NODE_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)


class NodeStrategy(Strategy):
    """A node's labels may be written through its status, as kubelets do."""

    status_keeps = ()
    selectable_fields: ClassVar[Mapping[str, str]] = {"spec.unschedulable": "false"}

    def default(self, obj: Object, features: Features) -> None:
        obj.setdefault("spec", {})
        status = obj.setdefault("status", {})
        if status.get("capacity") and not status.get("allocatable"):
            status["allocatable"] = dict(status["capacity"])
        default_conditions(status, ("lastHeartbeatTime", "lastTransitionTime"))
        status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})
        info = status.setdefault("nodeInfo", {})
        for key in _NODE_INFO:
            info.setdefault(key, "")

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        """Unlike other kinds, nodes may be created with their status."""

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        return [*_taints(obj["spec"].get("taints") or []), *_pod_counts(obj["status"])]

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        field_errors = [*_taints(new["spec"].get("taints") or []), *_pod_counts(new["status"])]
        addresses = new["status"].get("addresses") or []
        for index, address in enumerate(addresses):
            if address in addresses[:index]:
                field_errors.append(errors.duplicate(f"status.addresses[{index}]", address))
        return field_errors

    def admit(self, obj: Object, context: WriteContext) -> None:
        """A new node is not ready until the node lifecycle controller removes the taint."""
        taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
        taints = obj["spec"].get("taints") or []
        if not context.internal and taint not in taints:
            obj["spec"]["taints"] = [*taints, taint]


_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def _taints(taints: list[Object]) -> list[FieldError]:
    """The errors of taints. Like the server, name their place ``metadata.taints``."""
    field_errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        path, key = f"metadata.taints[{index}]", taint.get("key") or ""
        value, effect = taint.get("value") or "", taint.get("effect") or ""
        field_errors += errors.invalid_name(f"{path}.key", key, names.qualified_name)
        field_errors += errors.invalid_name(f"{path}.value", value, names.label_value)
        field_errors += errors.invalid_choice(f"{path}.effect", effect, _EFFECTS)
        if (key, effect) in seen:
            text = f"Duplicate value: {errors.quoted(taint)}: taints must be unique by key and"
            field_errors.append(FieldError("FieldValueDuplicate", path, f"{text} effect pair"))
        seen.add((key, effect))
    return field_errors


def _pod_counts(status: Object) -> list[FieldError]:
    return [
        errors.invalid_value(f"status.{kind}.pods", status[kind]["pods"], "must be an integer")
        for kind in ("capacity", "allocatable")
        if str((status.get(kind) or {}).get("pods", "")).endswith("m")
    ]


class RevisionStrategy(Strategy):
    """The data of a revision never changes."""

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        field_errors: list[FieldError] = []
        if obj.get("data") is None:
            field_errors.append(errors.required("data", "data is mandatory"))
        elif not isinstance(obj["data"], dict):
            field_errors.append(errors.required("data", "data must be a valid JSON object"))
        if (obj.get("revision") or 0) < 0:
            text = "must be greater than or equal to 0"
            field_errors.append(errors.invalid_value("revision", obj["revision"], text))
        return field_errors

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        field_errors = self.validate({**new, "data": old["data"]}, context)
        if encode(new.get("data")) != encode(old.get("data")):
            field_errors.append(errors.invalid_value("data", new.get("data"), "field is immutable"))
        return field_errors


_PREEMPTION = ("PreemptLowerPriority", "Never")
_HIGHEST = 1_000_000_000
_SYSTEM_CLASSES = ("system-cluster-critical", "system-node-critical")


class PriorityClassStrategy(Strategy):
    revalidates = False

    def default(self, obj: Object, features: Features) -> None:
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")
        obj.setdefault("value", 0)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        field_errors: list[FieldError] = []
        name = obj["metadata"].get("name") or ""
        if name.startswith("system-") and name not in _SYSTEM_CLASSES:
            reserved = "priority class names with 'system-' prefix are reserved for system use only"
            text = f"{reserved}. error: {name} is not a known system priority class"
            field_errors.append(errors.forbidden_field("metadata.name", text))
        if obj["value"] > _HIGHEST and not name.startswith("system-"):
            text = f"maximum allowed value of a user defined priority is {_HIGHEST}"
            field_errors.append(errors.forbidden_field("value", text))
        if obj["preemptionPolicy"] not in _PREEMPTION:
            path = "preemptionPolicy"
            field_errors.append(errors.not_supported(path, obj[path], _PREEMPTION))
        return field_errors

    def spec_changed(self, new: Object, old: Object) -> bool:
        return False

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        field_errors: list[FieldError] = []
        if new["value"] != old["value"]:
            field_errors.append(errors.forbidden_field("value", "may not be changed in an update."))
        if new["preemptionPolicy"] != old["preemptionPolicy"]:
            path, text = "preemptionPolicy", "field is immutable"
            field_errors.append(errors.invalid_value(path, new[path], text))
        return field_errors
