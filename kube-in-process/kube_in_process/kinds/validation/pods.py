"""Pods: admission, validation of changes, and grace periods."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import ClassVar

from kube_in_process import errors
from kube_in_process.errors import FieldError, Subject
from kube_in_process.kinds.builtin import RESIZE_SINCE
from kube_in_process.kinds.defaults.pods import admit_tolerations, default_pod, qos_class
from kube_in_process.kinds.strategy import Strategy, WriteContext, restore
from kube_in_process.kinds.validation.pod_resize import (
    admit_resize,
    drop_unserved,
    keep_all_but_sizes,
    validate_resize,
)
from kube_in_process.kinds.validation.pod_specs import validate_pod_spec
from kube_in_process.kinds.validation.pod_warnings import pod_warnings
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.storage.requests import DeleteOptions
from kube_in_process.storage.store import Address, decode, encode
from kube_in_process.text import names
from kube_in_process.text.times import timestamp

_IMMUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)
_TERMINAL = ("Succeeded", "Failed")
_GENERATION_SINCE = (1, 33)
"""The version from which pods have a generation."""
_PRIORITIES = {"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}


class PodStrategy(Strategy):
    """A pod is stored once more as deleting before it is removed, even if that happens at once."""

    marks_before_removal = True
    selectable_fields: ClassVar[Mapping[str, str]] = {
        "spec.nodeName": "",
        "spec.restartPolicy": "",
        "spec.schedulerName": "",
        "spec.serviceAccountName": "",
        "spec.hostNetwork": "false",
        "status.phase": "",
        "status.podIP": "",
        "status.nominatedNodeName": "",
    }

    def default(self, obj: Object, features: Features) -> None:
        default_pod(obj)

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        if context.features.version >= _GENERATION_SINCE:
            obj["metadata"]["generation"] = 1
        spec = obj["spec"]
        if not context.features.api_pod_groups:
            spec.pop("schedulingGroup", None)
        if context.features.version < RESIZE_SINCE:
            for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
                container.pop("resizePolicy", None)
        if spec[_GRACE] < 0:
            spec[_GRACE] = 1
        obj["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
        if spec.get("schedulingGates"):
            moment = timestamp(context.clock.now())
            obj["status"] = {"phase": "Pending", "conditions": [_gated(moment)], **obj["status"]}

    def admit(self, obj: Object, context: WriteContext) -> None:
        spec = obj["spec"]
        admit_tolerations(spec)
        name = obj["metadata"].get("name", "")
        _admit_priority(spec, name, context)
        if spec.get("runtimeClassName"):
            why = f'pod rejected: RuntimeClass "{spec["runtimeClassName"]}" not found'
            raise errors.forbidden(Subject("", "pods", name), why)

    def prepare_update(self, new: Object, old: Object, context: WriteContext) -> None:
        if context.subresource == "binding":
            return
        if context.subresource == "status":
            new["spec"] = old["spec"]
            restore(new["metadata"], old["metadata"], "ownerReferences")
            new["status"].setdefault("qosClass", old["status"].get("qosClass", "BestEffort"))
            return
        if context.subresource == "resize":
            keep_all_but_sizes(new, old)
            drop_unserved(new, old, context.features.version)
            _count_generation(new, old)
            return
        # an update without a priority keeps the old one, as admission does
        if new["spec"].get("priorityClassName") == old["spec"].get("priorityClassName"):
            for key in ("priority", "preemptionPolicy"):
                if key in old["spec"]:
                    new["spec"].setdefault(key, old["spec"][key])
        # as at create, so that an applied list without them removes nothing
        admit_tolerations(new["spec"])
        super().prepare_update(new, old, context)
        if context.features.version < _GENERATION_SINCE:
            new["metadata"].pop("generation", None)

    def warn(self, obj: Object, context: WriteContext) -> None:
        context.warnings.extend(pod_warnings(obj))

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        field_errors = validate_pod_spec(obj["spec"], "spec")
        if obj["spec"].get("ephemeralContainers"):
            text = "cannot be set on create"
            field_errors.append(errors.forbidden_field("spec.ephemeralContainers", text))
        return field_errors

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        if context.subresource == "status":
            status = new["status"]
            claims = _claim_statuses(new, context.features)
            return [
                *_addresses(status),
                *claims,
                *_nominated(status),
                *_conditions(status),
                *_observed(status),
            ]
        if context.subresource == "resize":
            return validate_resize(new, old, context)
        if context.subresource == "binding" or new["spec"] == old["spec"]:
            return []
        field_errors = validate_pod_spec(new["spec"], "spec")
        counted = _counted(new["spec"], old["spec"])
        if counted:
            return [*field_errors, *counted]
        changed = [*_gates(new["spec"], old["spec"]), *_tolerated(new["spec"], old["spec"])]
        return [*field_errors, *changed, *_frozen(new["spec"], old["spec"])]

    def admit_update(self, new: Object, old: Object, context: WriteContext) -> None:
        if context.subresource == "resize":
            admit_resize(new, old, context)

    def grace_period(self, obj: Object, options: DeleteOptions) -> int:
        """A pod that has no node, or has ended, is removed at once."""
        spec, status = obj["spec"], obj.get("status") or {}
        if not spec.get("nodeName") or status.get("phase") in _TERMINAL:
            return 0
        asked = options.grace_period_seconds
        period = int(spec.get("terminationGracePeriodSeconds", 30)) if asked is None else asked
        return 1 if period < 0 else period


def _count_generation(new: Object, old: Object) -> None:
    if new["spec"] != old["spec"]:
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def _gated(moment: str) -> Object:
    return {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": moment,
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }


def _admit_priority(spec: Object, name: str, context: WriteContext) -> None:
    """Set the priority and preemption policy of the class, as the plugin Priority does."""
    class_name = spec.get("priorityClassName", "") or _usual_class(context)
    value, policy = _PRIORITIES.get(class_name, 0), "PreemptLowerPriority"
    if class_name:
        spec["priorityClassName"] = class_name
    if class_name and class_name not in _PRIORITIES:
        address = Address("scheduling.k8s.io", "priorityclasses", "", class_name)
        stored = context.store.get(address)
        if stored is None:
            why = f"no PriorityClass with name {class_name} was found"
            raise errors.forbidden(Subject("", "pods", name), why)
        value = stored.get("value", 0)
        policy = stored.get("preemptionPolicy", policy)
    _agree(f"integer value of priority ({spec.get('priority')})", spec, "priority", value, name)
    given = f"string value of PreemptionPolicy ({spec.get('preemptionPolicy')})"
    _agree(given, spec, "preemptionPolicy", policy, name)


def _usual_class(context: WriteContext) -> str:
    """The name of the class that is the default of the cluster, or ''."""
    every = context.store.list("scheduling.k8s.io", "priorityclasses")
    usual = [priority_class for priority_class in every if priority_class.get("globalDefault")]
    least = min(usual, key=lambda priority_class: priority_class.get("value", 0), default=None)
    return "" if least is None else str(least["metadata"]["name"])


def _agree(given: str, spec: Object, key: str, wanted: object, name: str) -> None:
    """A pod may repeat what its class says, and may not say anything else."""
    if spec.get(key) not in (None, wanted):
        why = (
            f"the {given} must not be provided in pod spec; priority admission controller computed "
            f"{wanted} from the given PriorityClass name"
        )
        raise errors.forbidden(Subject("", "pods", name), why)
    spec[key] = wanted


def _claim_statuses(pod: Object, features: Features) -> list[FieldError]:
    """Before 1.35, an error of the name of a claim has the path of the name of its entry."""
    known = {claim["name"] for claim in pod["spec"].get("resourceClaims") or []}
    text = "must match the name of an entry in `spec.resourceClaims`"
    field_errors: list[FieldError] = []
    seen: set[str] = set()
    for index, status in enumerate(pod["status"].get("resourceClaimStatuses") or []):
        path, name = f"status.resourceClaimStatuses[{index}]", status.get("name", "")
        if name not in known:
            field_errors.append(errors.invalid_value(f"{path}.name", name, text))
        if name in seen:
            field_errors.append(errors.duplicate(f"{path}.name", name))
        seen.add(name)
        claim = status.get("resourceClaimName")
        wrong = names.subdomain(claim) if claim is not None else []
        key = "resourceClaimName" if features.version >= (1, 35) else "name"
        field_errors += [errors.invalid_value(f"{path}.{key}", claim, t) for t in wrong]
    return field_errors


def _addresses(status: Object) -> list[FieldError]:
    """The addresses of a pod must be IP addresses."""
    text = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
    field_errors: list[FieldError] = []
    for index, pod_ip in enumerate(status.get("podIPs") or []):
        value = pod_ip.get("ip") or ""
        try:
            ip_address(value)
        except ValueError:
            field_errors.append(errors.invalid_value(f"status.podIPs[{index}]", value, text))
    return field_errors


_CONDITIONS = ("PodScheduled", "Ready", "Initialized")


def _conditions(status: Object) -> list[FieldError]:
    """The type of a condition that Kubernetes does not have must be a qualified name."""
    field_errors: list[FieldError] = []
    for index, condition in enumerate(status.get("conditions") or []):
        name = condition.get("type") or ""
        if name not in _CONDITIONS:
            path = f"status.conditions[{index}].Type"
            field_errors += errors.invalid_name(path, name, names.qualified_name)
    return field_errors


def _observed(status: Object) -> list[FieldError]:
    seen = status.get("observedGeneration", 0)
    if seen >= 0:
        return []
    text = "must be a non-negative integer"
    return [errors.invalid_value("status.observedGeneration", seen, text)]


def _nominated(status: Object) -> list[FieldError]:
    name = status.get("nominatedNodeName")
    return errors.invalid_name("status.nominatedNodeName", name, names.subdomain) if name else []


def _counted(new: Object, old: Object) -> list[FieldError]:
    text = "pod updates may not add or remove containers"
    for key in ("containers", "initContainers"):
        if len(new.get(key) or []) != len(old.get(key) or []):
            return [errors.forbidden_field(f"spec.{key}", text)]
    return []


def _tolerated(new: Object, old: Object) -> list[FieldError]:
    """Tolerations may be added, and their tolerationSeconds may change."""
    kept = [_timeless(toleration) for toleration in new.get("tolerations") or []]
    if all(_timeless(toleration) in kept for toleration in old.get("tolerations") or []):
        return []
    text = "existing toleration can not be modified except its tolerationSeconds"
    return [errors.forbidden_field("spec.tolerations", text)]


def _timeless(toleration: Object) -> Object:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _gates(new: Object, old: Object) -> list[FieldError]:
    kept = [gate["name"] for gate in old.get("schedulingGates") or []]
    field_errors: list[FieldError] = []
    for index, gate in enumerate(new.get("schedulingGates") or []):
        if gate.get("name") not in kept:
            text = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            field_errors.append(errors.forbidden_field(f"spec.schedulingGates[{index}].name", text))
    return field_errors


def _frozen(new: Object, old: Object) -> list[FieldError]:
    """Take the fields that may change from the old spec. Nothing else may differ."""
    spec = decode(encode(new))
    for key in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        restore(spec, old, key)
    if old.get("terminationGracePeriodSeconds", 0) < 0 and spec.get(_GRACE) == 1:
        restore(spec, old, _GRACE)
    for key in ("containers", "initContainers"):
        for container, before in zip(spec.get(key) or (), old.get(key) or (), strict=False):
            container["image"] = before.get("image")
    field_errors = _selected(spec, old) if old.get("schedulingGates") else []
    return (
        field_errors if spec == old else [*field_errors, errors.forbidden_field("spec", _IMMUTABLE)]
    )


_GRACE = "terminationGracePeriodSeconds"


def _selected(spec: Object, old: Object) -> list[FieldError]:
    """A pod with scheduling gates may get more labels in its node selector."""
    selector, before = spec.get("nodeSelector") or {}, old.get("nodeSelector") or {}
    restore(spec, old, "nodeSelector")
    if before.items() <= selector.items():
        return []
    text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
    return [errors.invalid_value("spec.nodeSelector", selector, text)]
