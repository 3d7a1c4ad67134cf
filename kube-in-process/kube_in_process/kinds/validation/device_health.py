"""Validation of the taints and the binding conditions of devices."""

from __future__ import annotations

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.objects import Object
from kube_in_process.text import names

EFFECTS = ("NoExecute", "NoSchedule", "None")
_CONDITIONS_LIMIT = 4
_WAITED_FOR, _FAILED = "bindingConditions", "bindingFailureConditions"


def taint_errors(taint: Object, path: str) -> list[FieldError]:
    field_errors = errors.invalid_name(f"{path}.key", taint.get("key") or "", names.qualified_name)
    field_errors += errors.invalid_name(
        f"{path}.value", taint.get("value") or "", names.label_value
    )
    return [
        *field_errors,
        *errors.invalid_choice(f"{path}.effect", taint.get("effect") or "", EFFECTS),
    ]


def binding_errors(device: Object, path: str) -> list[FieldError]:
    """The errors of the conditions to wait for and of those that tell of a failure."""
    waited_for, failed = device.get(_WAITED_FOR) or [], device.get(_FAILED) or []
    field_errors = _types(waited_for, f"{path}.{_WAITED_FOR}") + _types(failed, f"{path}.{_FAILED}")
    for index, kind in enumerate(failed):
        if kind in waited_for:
            text = f"{_FAILED} must not overlap with {_WAITED_FOR}"
            field_errors.append(errors.invalid_value(f"{path}.{_FAILED}[{index}]", kind, text))
    for missing, given in ((_FAILED, _WAITED_FOR), (_WAITED_FOR, _FAILED)):
        if device.get(given) and not device.get(missing):
            text = f"{missing} are required to use {given}"
            field_errors.append(errors.invalid_value(f"{path}.{missing}", None, text))
    return field_errors


def _types(kinds: list[str], path: str) -> list[FieldError]:
    if len(kinds) > _CONDITIONS_LIMIT:
        return [errors.too_many(path, len(kinds), _CONDITIONS_LIMIT)]
    field_errors: list[FieldError] = []
    for index, kind in enumerate(kinds):
        where = f"{path}[{index}]"
        field_errors += errors.invalid_name(where, kind, names.qualified_name)
        if kind in kinds[:index]:
            field_errors.append(errors.duplicate(where, kind))
    return field_errors
