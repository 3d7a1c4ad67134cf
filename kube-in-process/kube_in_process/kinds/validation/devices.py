"""Validation of DeviceClasses and ResourceSlices, and of configuration in claims and classes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.kind import Kind
from kube_in_process.kinds.metadata import validate_again
from kube_in_process.kinds.strategy import WriteContext
from kube_in_process.kinds.validation.betas import Converted, flattened, unflattened
from kube_in_process.kinds.validation.device_health import binding_errors, taint_errors
from kube_in_process.kinds.validation.device_names import (
    device_name,
    driver_name,
    driver_warnings,
    pool_name,
    qualified_name,
)
from kube_in_process.kinds.validation.device_selectors import selector_problem
from kube_in_process.kinds.validation.node_selectors import node_selector
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.storage.raw_json import same
from kube_in_process.text import names
from kube_in_process.text.times import timestamp

_DEVICES_LIMIT = 128
_VALUE_LIMIT = 64
_ONE_NODE = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection`"
_GATED = ("bindsToNode", "bindingConditions", "bindingFailureConditions")
_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?\Z"
)


def selectors(given: list[Object], path: str) -> list[FieldError]:
    """The errors of CEL expressions that select devices."""
    wrong: list[FieldError] = []
    for index, selector in enumerate(given):
        below = f"{path}.selectors[{index}].cel"
        if selector.get("cel") is None:
            wrong.append(errors.required(below))
            continue
        expression = selector["cel"].get("expression", "")
        if problem := selector_problem(expression):
            wrong.append(errors.invalid_value(f"{below}.expression", expression, problem))
    return wrong


def opaque(config: Object, path: str, features: Features) -> list[FieldError]:
    """The errors of a device's configuration. Only its driver knows the parameters."""
    opaque = config.get("opaque")
    if opaque is None:
        return [errors.required(f"{path}.opaque")]
    wrong = driver_name(opaque.get("driver", ""), f"{path}.opaque.driver", features)
    where = f"{path}.opaque.parameters"
    parameters = opaque.get("parameters")
    if parameters is None:
        return [*wrong, errors.required(where)]
    if not isinstance(parameters, dict):
        text = "must be a valid JSON object"
        wrong.append(errors.invalid_value(where, "<value omitted>", text))
    return wrong


class ClassStrategy(Converted):
    """A class may change. Allocated claims do not change with it."""

    path = ()
    revalidates = False
    name_check = staticmethod(names.long_name)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        spec = obj["spec"]
        field_errors = selectors(spec.get("selectors") or [], "spec")
        for index, config in enumerate(spec.get("config") or []):
            field_errors += opaque(config, f"spec.config[{index}]", context.features)
        return field_errors

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        field_errors = self.validate(new, context)
        repeated = any(error.path.endswith("cel.expression") for error in field_errors)
        if context.features.version < (1, 36):
            field_errors = [*validate_again(new["metadata"], self), *field_errors]
        return [*field_errors, *field_errors] if repeated else field_errors

    def spec_changed(self, new: Object, old: Object) -> bool:
        return not same(new["spec"], old["spec"])


class SliceStrategy(Converted):
    """A ResourceSlice. Its driver, pool and node cannot change."""

    path = ("spec", "devices")
    revalidates = False
    selectable_fields: ClassVar[Mapping[str, str]] = {"spec.driver": "", "spec.nodeName": ""}

    def to_stored(self, item: Object) -> Object:
        return flattened(item)

    def from_stored(self, item: Object) -> Object:
        return unflattened(item)

    def spec_changed(self, new: Object, old: Object) -> bool:
        return not same(new["spec"], old["spec"])

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        super().prepare_create(obj, context)
        _prepare_devices(obj["spec"], context)

    def prepare_update(self, new: Object, old: Object, context: WriteContext) -> None:
        _prepare_devices(new["spec"], context)
        super().prepare_update(new, old, context)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        return _slice(obj["spec"], None, context.features)

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        return _slice(new["spec"], old["spec"], context.features)

    def warn(self, obj: Object, context: WriteContext) -> None:
        driver = obj["spec"].get("driver", "")
        context.warnings.extend(driver_warnings(driver, "spec.driver", context.features))

    def warn_of_change(self, new: Object, old: Object, context: WriteContext) -> None:
        self.warn(new, context)

    def inward(self, obj: Object, kind: Kind, version: str) -> Object:
        obj = super().inward(obj, kind, version)
        spec = obj.get("spec")
        if version == "v1beta1" and isinstance(spec, dict) and spec.get("nodeName") == "":
            del spec["nodeName"]
        return obj


def _prepare_devices(spec: Object, context: WriteContext) -> None:
    """Set the time of taints of devices, and remove the fields of disabled gates."""
    for device in spec.get("devices") or ():
        if not context.features.device_taints:
            device.pop("taints", None)
        if not context.features.binding_conditions:
            for key in _GATED:
                device.pop(key, None)
        for taint in device.get("taints") or ():
            taint.setdefault("timeAdded", timestamp(context.clock.now()))


def _slice(spec: Object, old: Object | None, features: Features) -> list[FieldError]:
    field_errors = driver_name(spec.get("driver", ""), "spec.driver", features)
    pool = spec.get("pool") or {}
    field_errors += pool_name(pool.get("name", ""), "spec.pool.name")
    if pool.get("resourceSliceCount", 0) <= 0:
        text, where = "must be greater than zero", "spec.pool.resourceSliceCount"
        field_errors.append(errors.invalid_value(where, pool.get("resourceSliceCount", 0), text))
    if pool.get("generation", 0) < 0:
        text = "must be greater than or equal to zero"
        field_errors.append(errors.invalid_value("spec.pool.generation", pool["generation"], text))
    if old is not None:
        field_errors += _fixed(spec, old)
    field_errors += _nodes(spec)
    devices = spec.get("devices") or []
    if len(devices) > _DEVICES_LIMIT:
        return [*field_errors, errors.too_many("spec.devices", len(devices), _DEVICES_LIMIT)]
    return [*field_errors, *_devices(devices, features)]


def _fixed(spec: Object, old: Object) -> list[FieldError]:
    pairs = (
        ("spec.pool.name", spec["pool"].get("name", ""), old["pool"].get("name", "")),
        ("spec.driver", spec.get("driver", ""), old.get("driver", "")),
        ("spec.nodeName", spec.get("nodeName"), old.get("nodeName")),
    )
    return [
        errors.invalid_value(path, new, "field is immutable")
        for path, new, before in pairs
        if new != before
    ]


def _nodes(spec: Object) -> list[FieldError]:
    """Exactly one field must select the nodes that have the devices."""
    field_errors: list[FieldError] = []
    given: list[str] = []
    name = spec.get("nodeName")
    if name == "":
        text = "must be either unset or set to a non-empty string"
        field_errors.append(errors.invalid_value("spec.nodeName", name, text))
    elif name is not None:
        given.append("`nodeName`")
        field_errors += errors.invalid_name("spec.nodeName", name, names.subdomain)
    if spec.get("nodeSelector") is not None:
        given.append("`nodeSelector`")
        field_errors += one_node_selector(spec["nodeSelector"], "spec.nodeSelector")
    for key in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(key):
            given.append(f"`{key}`")
        elif spec.get(key) is False:
            text = "must be either unset or set to true"
            field_errors.append(errors.invalid_value(f"spec.{key}", False, text))
    if not given:
        return [*field_errors, errors.required("spec", f"{_ONE_NODE} is required")]
    if len(given) > 1:
        text = f"{_ONE_NODE} is required, but multiple fields are set"
        field_errors.append(errors.invalid_value("spec", f"{{{', '.join(given)}}}", text))
    return field_errors


def one_node_selector(selector: Object, path: str) -> list[FieldError]:
    """The errors of a node selector, which must have a single term."""
    field_errors = node_selector(selector, path)
    terms = selector.get("nodeSelectorTerms")
    if len(terms or []) != 1:
        text = "must have exactly one node selector term"
        field_errors.append(errors.invalid_value(f"{path}.nodeSelectorTerms", terms or None, text))
    return field_errors


def _devices(devices: list[Object], features: Features) -> list[FieldError]:
    field_errors: list[FieldError] = []
    seen: set[str] = set()
    for index, device in enumerate(devices):
        path, name = f"spec.devices[{index}]", device.get("name", "")
        field_errors += device_name(name, f"{path}.name")
        for key, value in sorted((device.get("attributes") or {}).items()):
            field_errors += _attribute(key, value, f"{path}.attributes[{key}]", features)
        for key in sorted(device.get("capacity") or {}):
            field_errors += qualified_name(key, f"{path}.capacity[{key}]")
        for number, taint in enumerate(device.get("taints") or []):
            field_errors += taint_errors(taint, f"{path}.taints[{number}]")
        field_errors += binding_errors(device, path)
        if name in seen:
            where = path if features.version >= (1, 35) else f"{path}.name"
            field_errors.append(errors.duplicate(where, name))
        seen.add(name)
    return field_errors


def _attribute(key: str, value: Object, path: str, features: Features) -> list[FieldError]:
    field_errors = qualified_name(key, path)
    given = [name for name in ("bool", "int", "string", "version") if value.get(name) is not None]
    for name in ("string", "version"):
        if len(value.get(name) or "") > _VALUE_LIMIT:
            field_errors.append(errors.too_long(f"{path}.{name}", _VALUE_LIMIT))
    version = value.get("version")
    if version is not None and not _SEMVER.match(version):
        text = "must be a string compatible with semver.org spec 2.0.0"
        field_errors.append(errors.invalid_value(f"{path}.version", version, text))
    text = "exactly one value must be specified"
    if not given and features.version < (1, 35):
        field_errors.append(errors.required(path, text))
    elif not given:
        field_errors.append(errors.invalid_value(path, "", text))
    elif len(given) > 1:
        field_errors.append(errors.invalid_value(path, value, text))
    return field_errors
