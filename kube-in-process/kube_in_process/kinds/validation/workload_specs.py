"""Validation of the specs of Deployments, ReplicaSets, StatefulSets and DaemonSets."""

from __future__ import annotations

import re
from typing import Any

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.validation.amounts import AT_LEAST_ZERO, not_negative
from kube_in_process.kinds.validation.go_text import STRUCTS, go_text
from kube_in_process.kinds.validation.label_selectors import is_empty, label_selector
from kube_in_process.kinds.validation.templates import (
    mismatch,
    pod_template,
    selected_template,
    shown_selector,
)
from kube_in_process.kinds.validation.volumes import claim_spec_errors
from kube_in_process.objects import Object

_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or "
    "'93%', regex used for validation is '[0-9]+%')"
)
_RETAIN = ("Retain", "Delete")


def deployment_errors(spec: Object) -> list[FieldError]:
    field_errors = not_negative(spec, ("replicas",), "spec")
    field_errors += selected_template(spec, "deployment", "invalid label selector")
    field_errors += _strategy(spec.get("strategy") or {}, "spec.strategy")
    numbers = ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    field_errors += not_negative(spec, numbers, "spec")
    deadline, ready = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds") or 0
    if deadline is not None and deadline <= ready:
        text = "must be greater than minReadySeconds"
        field_errors.append(errors.invalid_value("spec.progressDeadlineSeconds", deadline, text))
    return field_errors


def _strategy(strategy: Object, path: str) -> list[FieldError]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "Recreate":
        text = "may not be specified when strategy `type` is 'Recreate'"
        return [] if rolling is None else [errors.forbidden_field(f"{path}.rollingUpdate", text)]
    if kind != "RollingUpdate":
        shown = go_text(strategy, STRUCTS["deployment_strategy"])
        text = f'Unsupported value: {shown}: supported values: "Recreate", "RollingUpdate"'
        return [FieldError("FieldValueNotSupported", path, text)]
    return _rolling(rolling or {}, f"{path}.rollingUpdate")


def _rolling(rolling: Object, path: str) -> list[FieldError]:
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    field_errors = int_or_percent(unavailable, f"{path}.maxUnavailable")
    field_errors += int_or_percent(surge, f"{path}.maxSurge")
    if _zero(unavailable) and _zero(surge):
        text = "may not be 0 when `maxSurge` is 0"
        field_errors.append(errors.invalid_value(f"{path}.maxUnavailable", unavailable, text))
    return [*field_errors, *at_most_all(unavailable, f"{path}.maxUnavailable")]


def _zero(value: Any) -> bool:
    return value == 0 or (isinstance(value, str) and value.rstrip("%") == "0")


def int_or_percent(value: Any, path: str) -> list[FieldError]:
    """The errors of a number or percentage that may not be negative."""
    if isinstance(value, str) and not re.fullmatch(r"[0-9]+%", value):
        return [errors.invalid_value(path, value, _PERCENT)]
    if isinstance(value, int) and value < 0:
        return [errors.invalid_value(path, value, AT_LEAST_ZERO)]
    return []


def at_most_all(value: Any, path: str) -> list[FieldError]:
    """The error of a percentage above 100."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]+%", value) and int(value[:-1]) > 100:
        return [errors.invalid_value(path, value, "must not be greater than 100%")]
    return []


def replica_set_errors(spec: Object) -> list[FieldError]:
    field_errors = not_negative(spec, ("replicas", "minReadySeconds"), "spec")
    return [*field_errors, *selected_template(spec, "deployment", "invalid label selector")]


def replication_controller_errors(spec: Object) -> list[FieldError]:
    """The selector is a map of labels, and the template may be missing."""
    labels, template = spec.get("selector") or {}, spec.get("template")
    field_errors = not_negative(spec, ("minReadySeconds",), "spec")
    if not labels:
        field_errors.append(errors.required("spec.selector"))
    field_errors += not_negative(spec, ("replicas",), "spec")
    if template is None:
        return [*field_errors, errors.required("spec.template")]
    field_errors += mismatch({"matchLabels": labels}, template) if labels else []
    field_errors += pod_template(template, "spec.template")
    path, inner = "spec.template.spec", template["spec"]
    policy = inner.get("restartPolicy", "")
    if policy != "Always":
        field_errors.append(errors.not_supported(f"{path}.restartPolicy", policy, ("Always",)))
    if inner.get("activeDeadlineSeconds") is not None:
        text = "activeDeadlineSeconds in ReplicationController is not Supported"
        field_errors.append(errors.forbidden_field(f"{path}.activeDeadlineSeconds", text))
    return field_errors


def stateful_set_errors(spec: Object) -> list[FieldError]:
    field_errors = _management(spec.get("podManagementPolicy") or "")
    field_errors += _update_strategy(spec.get("updateStrategy") or {})
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for key in ("whenDeleted", "whenScaled"):
        if retention.get(key) not in (*_RETAIN, None):
            path = f"spec.persistentVolumeClaimRetentionPolicy.{key}"
            field_errors.append(errors.not_supported(path, retention[key], _RETAIN))
    field_errors += not_negative(spec, ("replicas", "minReadySeconds"), "spec")
    field_errors += not_negative(spec.get("ordinals") or {}, ("start",), "spec.ordinals")
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or []):
        field_errors += claim_spec_errors(
            claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec"
        )
    return [*field_errors, *selected_template(_with_volumes(spec), "statefulset", "")]


def _with_volumes(spec: Object) -> Object:
    """The spec with the volumes of its claims in the template, as its pods will have them."""
    volumes = [
        {"name": name, "persistentVolumeClaim": {"claimName": name}}
        for claim in spec.get("volumeClaimTemplates") or []
        if (name := (claim.get("metadata") or {}).get("name"))
    ]
    if not volumes:
        return spec
    template = spec["template"]
    names = {volume["name"] for volume in volumes}
    others = [it for it in template["spec"].get("volumes") or [] if it.get("name") not in names]
    inner = {**template["spec"], "volumes": [*volumes, *others]}
    return {**spec, "template": {**template, "spec": inner}}


def _management(policy: str) -> list[FieldError]:
    path = "spec.podManagementPolicy"
    if not policy:
        return [errors.required(path)]
    if policy in ("OrderedReady", "Parallel"):
        return []
    return [errors.invalid_value(path, policy, "must be 'OrderedReady' or 'Parallel'")]


def _update_strategy(strategy: Object) -> list[FieldError]:
    path, kind = "spec.updateStrategy", strategy.get("type")
    rolling = strategy.get("rollingUpdate")
    if not kind:
        return [errors.required(path)]
    if kind == "OnDelete":
        if rolling is None:
            return []
        shown = go_text(rolling, STRUCTS["stateful_set_partition"])
        text = "only allowed for updateStrategy 'RollingUpdate'"
        return [errors.invalid_text(f"{path}.rollingUpdate", shown, text)]
    if kind != "RollingUpdate":
        shown = go_text(strategy, STRUCTS["stateful_set_strategy"])
        return [errors.invalid_text(path, shown, "must be 'RollingUpdate' or 'OnDelete'")]
    return not_negative(rolling or {}, ("partition",), f"{path}.rollingUpdate")


def daemon_set_errors(spec: Object) -> list[FieldError]:
    selector = spec.get("selector")
    field_errors = label_selector(selector or {}, "spec.selector")
    if not field_errors:
        field_errors += mismatch(selector, spec["template"])
    if selector is not None and is_empty(selector):
        text = "empty selector is invalid for daemonset"
        field_errors.append(errors.invalid_text("spec.selector", shown_selector(selector), text))
    field_errors += pod_template(spec["template"], "spec.template")
    policy = spec["template"]["spec"].get("restartPolicy", "")
    if policy != "Always":
        where = "spec.template.spec.restartPolicy"
        field_errors.append(errors.not_supported(where, policy, ("Always",)))
    field_errors += not_negative(spec, ("minReadySeconds",), "spec")
    field_errors += _daemon_strategy(spec.get("updateStrategy") or {})
    return [*field_errors, *not_negative(spec, ("revisionHistoryLimit",), "spec")]


def _daemon_strategy(strategy: Object) -> list[FieldError]:
    path, kind = "spec.updateStrategy", strategy.get("type")
    if kind == "OnDelete":
        return []
    if kind != "RollingUpdate":
        shown = go_text(strategy, STRUCTS["daemon_set_strategy"])
        text = f'Unsupported value: {shown}: supported values: "RollingUpdate", "OnDelete"'
        return [FieldError("FieldValueNotSupported", path, text)]
    rolling, path = strategy.get("rollingUpdate") or {}, f"{path}.rollingUpdate"
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge") or 0
    field_errors = int_or_percent(unavailable, f"{path}.maxUnavailable")
    field_errors += int_or_percent(surge, f"{path}.maxSurge")
    field_errors += at_most_all(unavailable, f"{path}.maxUnavailable")
    field_errors += at_most_all(surge, f"{path}.maxSurge")
    if not _zero(unavailable) and not _zero(surge):
        text = "may not be set when maxUnavailable is non-zero"
        field_errors.append(errors.invalid_value(f"{path}.maxSurge", surge, text))
    elif _zero(unavailable) and _zero(surge):
        text = "cannot be 0 when maxSurge is 0"
        field_errors.append(errors.required(f"{path}.maxUnavailable", text))
    return field_errors
