"""Validation of ResourceClaims and their templates, as in resource.k8s.io/v1."""

from __future__ import annotations

import ipaddress
from types import NoneType

from kube_in_process import errors
from kube_in_process.errors import FieldError, Subject
from kube_in_process.kinds.authorization import Attributes
from kube_in_process.kinds.defaults.claims import default_claim_spec
from kube_in_process.kinds.metadata import validate_only_template_metadata
from kube_in_process.kinds.strategy import WriteContext
from kube_in_process.kinds.validation.betas import Converted
from kube_in_process.kinds.validation.conditions import condition_errors
from kube_in_process.kinds.validation.device_health import binding_errors
from kube_in_process.kinds.validation.device_names import (
    device_name,
    driver_name,
    fully_qualified_name,
    pool_name,
    request_reference,
    request_references,
)
from kube_in_process.kinds.validation.devices import opaque, selectors
from kube_in_process.kinds.validation.go_text import (
    STRUCTS,
    go_text,
)
from kube_in_process.kinds.validation.node_selectors import node_selector
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.storage.raw_json import same
from kube_in_process.text import names

REQUESTS_LIMIT = 32
RESERVED_FOR_LIMIT = 256
_ONE_OF = "exactly one of `exactly` or `firstAvailable` is required"
_GROUP, _VERSION = "resource.k8s.io", "v1"


class ClaimStrategy(Converted):
    """spec is immutable; the status has rules for reservations."""

    def default(self, obj: Object, features: Features) -> None:
        default_claim_spec(obj.setdefault("spec", {}))
        status = obj.setdefault("status", {})
        for key in ("reservedFor", "devices", "allocation"):
            if key in status and not status[key]:
                del status[key]
        for device in status.get("devices") or []:
            device["conditions"] = device.get("conditions") or None

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        obj["status"] = {}
        _drop_gated(obj, {}, context.features)

    def prepare_update(self, new: Object, old: Object, context: WriteContext) -> None:
        super().prepare_update(new, old, context)
        _drop_gated(new, old, context.features)
        if context.subresource == "status":
            _drop_deallocated(new["status"], old["status"])

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        return validate_claim_spec(obj["spec"], "spec", context.features)

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        if context.subresource == "status":
            return [*_permission(new, old, context), *validate_status(new, old, context.features)]
        shown = go_text(new["spec"], STRUCTS["claim_spec"])
        if context.features.version >= (1, 35):
            return _changed_spec(new["spec"], old["spec"], shown, [])
        wrong = validate_claim_spec(new["spec"], "spec", context.features)
        return [*_changed_spec(new["spec"], old["spec"], shown, wrong), *wrong]


def _drop_deallocated(status: Object, before: Object) -> None:
    """Remove the drivers' statuses of devices that are not allocated any more."""
    gone = _allocated(before) - _allocated(status)
    if gone and status.get("devices"):
        status["devices"] = [
            device for device in status["devices"] if _device_of(device) not in gone
        ]
        if not status["devices"]:
            del status["devices"]


def _allocated(status: Object) -> set[tuple[str, ...]]:
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or []
    return {_device_of(result) for result in results}


def _device_of(entry: Object) -> tuple[str, ...]:
    return tuple(entry.get(key, "") for key in ("driver", "pool", "device", "shareID"))


class ClaimTemplateStrategy(Converted):
    """A template's spec has a claim's metadata and spec. It is immutable."""

    path = ("spec", "spec", "devices", "requests")

    def default(self, obj: Object, features: Features) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("metadata", {})
        default_claim_spec(spec.setdefault("spec", {}))
        if not features.api_reserved_for:
            spec["spec"].pop("reservedFor", None)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        meta = obj["spec"].get("metadata") or {}
        wrong = validate_only_template_metadata(meta, "spec.metadata")
        return [*wrong, *validate_claim_spec(obj["spec"]["spec"], "spec.spec", context.features)]

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        wrong = self.validate(new, context)
        again = wrong if context.features.version < (1, 35) else []
        shown = _template_text(new["spec"])
        return [*_changed_spec(new["spec"], old["spec"], shown, wrong), *again]


def _template_text(spec: Object) -> str:
    """The spec as Go prints it. The metadata has its JSON names."""
    shown = [f'"{key}":{errors.quoted(value)}' for key, value in spec["metadata"].items()]
    inside = go_text(spec["spec"], STRUCTS["claim_spec"])
    return f"{{{','.join([*shown, f'{chr(34)}Spec{chr(34)}:{inside}'])}}}"


def _drop_gated(new: Object, old: Object, features: Features) -> None:
    """Remove fields of a disabled gate, unless the old object has them."""
    allocation = new["status"].get("allocation") or {}
    before = old.get("status", {}).get("allocation") or {}
    if not features.binding_conditions and "allocationTimestamp" not in before:
        allocation.pop("allocationTimestamp", None)
        for result in (allocation.get("devices") or {}).get("results") or ():
            for key in ("bindingConditions", "bindingFailureConditions"):
                result.pop(key, None)
    if features.api_reserved_for:
        return
    if "reservedFor" not in old.get("spec", {}):
        new["spec"].pop("reservedFor", None)
    if "reservedForAnyPod" not in before:
        allocation.pop("reservedForAnyPod", None)


def validate_claim_spec(spec: Object, path: str, features: Features) -> list[FieldError]:
    """The errors of the spec of a claim."""
    field_errors: list[FieldError] = []
    devices = spec["devices"]
    base = f"{path}.devices"
    requests = devices.get("requests") or []
    if len(requests) > REQUESTS_LIMIT:
        field_errors.append(errors.too_many(f"{base}.requests", len(requests), REQUESTS_LIMIT))
    else:
        field_errors += _requests(requests, f"{base}.requests", features)
    known = _request_names(requests)
    for index, constraint in enumerate(devices.get("constraints") or []):
        field_errors += _constraint(constraint, known, f"{base}.constraints[{index}]", features)
    for index, config in enumerate(devices.get("config") or []):
        where = f"{base}.config[{index}]"
        field_errors += request_references(config.get("requests") or [], known, f"{where}.requests")
        field_errors += opaque(config, where, features)
    if spec.get("reservedFor") is not None:
        field_errors += _reference(spec["reservedFor"], f"{path}.reservedFor")
    return field_errors


def _changed_spec(
    new: Object, old: Object, shown: str, wrong: list[FieldError]
) -> list[FieldError]:
    """A spec is immutable. Its other errors are reported, too."""
    fixed = [] if same(new, old) else [errors.invalid_text("spec", shown, "field is immutable")]
    return [*wrong, *fixed]


def _request_names(requests: list[Object]) -> set[str]:
    known: set[str] = set()
    for request in requests:
        name = request.get("name", "")
        known.add(name)
        known |= {f"{name}/{sub.get('name', '')}" for sub in request.get("firstAvailable") or []}
    return known


def _requests(requests: list[Object], base: str, features: Features) -> list[FieldError]:
    field_errors: list[FieldError] = []
    seen: set[str] = set()
    for index, request in enumerate(requests):
        path = f"{base}[{index}]"
        name = request.get("name", "")
        field_errors += device_name(name, f"{path}.name")
        field_errors += _alternatives(request, path)
        if name in seen:
            where = path if features.version >= (1, 35) else f"{path}.name"
            field_errors.append(errors.duplicate(where, name))
        seen.add(name)
    return field_errors


def _alternatives(request: Object, path: str) -> list[FieldError]:
    exactly, several = request.get("exactly"), request.get("firstAvailable")
    if exactly is not None and several:
        text = f"{_ONE_OF}, but multiple fields are set"
        return [errors.invalid_text(path, "null", text)]
    if exactly is None and not several:
        return [errors.required(path, _ONE_OF)]
    if exactly is not None:
        return _request(exactly, f"{path}.exactly")
    field_errors: list[FieldError] = []
    for index, alternative in enumerate(several or []):
        below = f"{path}.firstAvailable[{index}]"
        field_errors += device_name(alternative.get("name", ""), f"{below}.name")
        field_errors += _request(alternative, below)
    return field_errors


def _request(request: Object, path: str) -> list[FieldError]:
    field_errors: list[FieldError] = []
    class_name = request.get("deviceClassName", "")
    if not class_name:
        field_errors.append(errors.required(f"{path}.deviceClassName"))
    else:
        field_errors += errors.invalid_name(f"{path}.deviceClassName", class_name, names.subdomain)
    return [*field_errors, *selectors(request.get("selectors") or [], path), *_mode(request, path)]


def _mode(request: Object, path: str) -> list[FieldError]:
    mode, count = request.get("allocationMode"), request.get("count", 0)
    if mode == "All" and count:
        text = "must not be specified when allocationMode is 'All'"
        return [errors.invalid_value(f"{path}.count", count, text)]
    if mode == "ExactCount" and count <= 0:
        return [errors.invalid_value(f"{path}.count", count, "must be greater than zero")]
    if mode not in ("All", "ExactCount"):
        supported = ("All", "ExactCount")
        return [errors.not_supported(f"{path}.allocationMode", mode, supported)]
    return []


def _constraint(
    constraint: Object, known: set[str], path: str, features: Features
) -> list[FieldError]:
    field_errors = request_references(constraint.get("requests") or [], known, f"{path}.requests")
    attribute = constraint.get("matchAttribute")
    if attribute is None and features.version >= (1, 35):
        text = 'exactly one of "matchAttribute" or "distinctAttribute" is required'
        return [*field_errors, errors.required(path, f"{text}, but multiple fields are set")]
    if attribute is None:
        return [*field_errors, errors.required(f"{path}.matchAttribute")]
    return [*field_errors, *fully_qualified_name(attribute, f"{path}.matchAttribute", features)]


def _reference(reference: Object, path: str) -> list[FieldError]:
    wanted = ("resource", "name", "uid")
    return [errors.required(f"{path}.{key}") for key in wanted if not reference.get(key)]


def validate_status(new: Object, old: Object, features: Features) -> list[FieldError]:
    """The errors of a change of a claim's status."""
    status, before = new["status"], old["status"]
    allocation, references = status.get("allocation"), status.get("reservedFor") or []
    field_errors = _status_devices(status, features)
    if len(references) > RESERVED_FOR_LIMIT:
        field_errors.append(
            errors.too_many("status.reservedFor", len(references), RESERVED_FOR_LIMIT)
        )
    else:
        field_errors += _references(references, features)
    field_errors += _reservations(status, before, bool(new["metadata"].get("deletionTimestamp")))
    if allocation and not before.get("allocation"):
        field_errors += _allocation(allocation, new["spec"], features)
    if allocation and before.get("allocation") and not same(allocation, before["allocation"]):
        shown = go_text(allocation, STRUCTS["allocation"])
        field_errors.append(errors.invalid_text("status.allocation", shown, "field is immutable"))
    return field_errors


def _status_devices(status: Object, features: Features) -> list[FieldError]:
    """The errors of drivers' device statuses: the claim must have each device."""
    has = _allocated(status)
    field_errors: list[FieldError] = []
    seen: set[tuple[str, ...]] = set()
    for index, device in enumerate(status.get("devices") or []):
        path, name = f"status.devices[{index}]", device.get("device", "")
        field_errors += driver_name(device.get("driver", ""), f"{path}.driver", features)
        field_errors += pool_name(device.get("pool", ""), f"{path}.pool")
        field_errors += errors.invalid_name(f"{path}.device", name, names.label)
        field_errors += _addresses(device.get("networkData") or {}, f"{path}.networkData")
        shown = go_text(device, STRUCTS["status_device"])
        if _device_of(device) not in has:
            text = "must be an allocated device in the claim"
            field_errors.append(errors.invalid_text(path, shown, text))
        if _device_of(device) in seen:
            where = path if features.version >= (1, 35) else f"{path}.deviceID"
            field_errors.append(
                FieldError("FieldValueDuplicate", where, f"Duplicate value: {shown}")
            )
        seen.add(_device_of(device))
        if not isinstance(device.get("data"), (dict, NoneType)):
            text = "must be a valid JSON object"
            field_errors.append(errors.invalid_value(f"{path}.data", "<value omitted>", text))
        field_errors += condition_errors(device.get("conditions") or [], f"{path}.conditions")
    return field_errors


def _addresses(data: Object, path: str) -> list[FieldError]:
    """The errors of the addresses of a device's network interface, in CIDR form."""
    field_errors: list[FieldError] = []
    for index, text in enumerate(data.get("ips") or []):
        where = f"{path}.ips[{index}]"
        try:
            canonical = str(ipaddress.ip_interface(text)) if "/" in text else ""
        except ValueError:
            canonical = ""
        if not canonical:
            field_errors.append(errors.invalid_value(where, text, _NO_ADDRESS))
        elif canonical != text:
            why = f'must be in canonical form ("{canonical}")'
            field_errors.append(errors.invalid_value(where, text, why))
        if text in data["ips"][:index]:
            field_errors.append(errors.duplicate(where, text))
    return field_errors


_NO_ADDRESS = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"


def _references(references: list[Object], features: Features) -> list[FieldError]:
    field_errors: list[FieldError] = []
    seen: set[str] = set()
    for index, reference in enumerate(references):
        path = f"status.reservedFor[{index}]"
        field_errors += _reference(reference, path)
        uid = reference.get("uid", "")
        if uid in seen:
            where = path if features.version >= (1, 35) else f"{path}.uid"
            field_errors.append(errors.duplicate(where, uid))
        seen.add(uid)
    return field_errors


def _reservations(status: Object, before: Object, deleting: bool) -> list[FieldError]:
    references = status.get("reservedFor") or []
    path = "status.reservedFor"
    if references and not status.get("allocation"):
        text = "may not be specified when `allocated` is not set"
        return [errors.forbidden_field(path, text)]
    old = before.get("reservedFor") or []
    if deleting and any(reference not in old for reference in references):
        text = (
            "new entries may not be added while `deallocationRequested` or `deletionTimestamp` "
            "are set"
        )
        return [errors.forbidden_field(path, text)]
    return []


def _allocation(allocation: Object, spec: Object, features: Features) -> list[FieldError]:
    field_errors: list[FieldError] = []
    known = _request_names(spec["devices"].get("requests") or [])
    results = (allocation.get("devices") or {}).get("results") or []
    for index, result in enumerate(results):
        where = f"status.allocation.devices.results[{index}]"
        field_errors += _result(result, known, where, features)
    if allocation.get("nodeSelector") is not None:
        field_errors += node_selector(allocation["nodeSelector"], "status.allocation.nodeSelector")
    return field_errors


def _result(result: Object, known: set[str], path: str, features: Features) -> list[FieldError]:
    request, device = result.get("request", ""), result.get("device", "")
    field_errors = request_reference(request, known, f"{path}.request")
    field_errors += driver_name(result.get("driver", ""), f"{path}.driver", features)
    field_errors += pool_name(result.get("pool", ""), f"{path}.pool")
    field_errors += errors.invalid_name(f"{path}.device", device, names.label)
    return [*field_errors, *binding_errors(result, path)]


def _permission(new: Object, old: Object, context: WriteContext) -> list[FieldError]:
    """From 1.36 on, a write to the status needs more permissions than resourceclaims/status."""
    if context.internal or not context.features.binding_permission:
        return []
    verb = "update" if context.verb == "update" else "patch"
    status, before = new["status"], old["status"]
    field_errors: list[FieldError] = []
    if any(status.get(key) != before.get(key) for key in ("allocation", "reservedFor")):
        field_errors += _binding_permission(context, verb)
    if status.get("devices") != before.get("devices"):
        field_errors += _driver_permission(context, new, _drivers(status, before), verb)
    return field_errors


def _binding_permission(context: WriteContext, verb: str) -> list[FieldError]:
    asked = Attributes(context.actor, verb, _GROUP, _VERSION, "resourceclaims", "binding")
    if context.authorizer.allowed(asked):
        return []
    subject = Subject(_GROUP, "resourceclaims")
    text = (
        "changing status.allocation or status.reservedFor requires "
        f'resource="resourceclaims/binding", verb="{verb}" permission: {subject.resource} is '
        f'forbidden: User "{context.actor.user}" cannot {verb} resource '
        f'"resourceclaims/binding" in API group "{_GROUP}" at the cluster scope'
    )
    return [errors.forbidden_field("status.allocation", text)]


def _drivers(status: Object, before: Object) -> list[str]:
    old, new = before.get("devices") or [], status.get("devices") or []
    changed = [device for device in new if device not in old] + [
        device for device in old if device not in new
    ]
    return sorted({str(device.get("driver", "")) for device in changed})


def _driver_permission(
    context: WriteContext, claim: Object, drivers: list[str], verb: str
) -> list[FieldError]:
    namespace = claim["metadata"]["namespace"]
    asked = f"arbitrary-node:{verb}"
    for driver in drivers:
        attributes = Attributes(
            context.actor, asked, _GROUP, _VERSION, "resourceclaims", "driver", namespace, driver
        )
        if not context.authorizer.allowed(attributes):
            text = (
                f'changing status.devices requires resource="resourceclaims/driver", '
                f'verb="[{asked}]" permission: resourceclaims.{_GROUP} "{driver}" is forbidden: '
                f'User "{context.actor.user}" cannot {asked} resource "resourceclaims/driver" in '
                f'API group "{_GROUP}" in the namespace "{namespace}"'
            )
            return [errors.forbidden_field("status.devices", text)]
    return []
