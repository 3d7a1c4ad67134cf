"""Validation of a list of metav1.Condition."""

from __future__ import annotations

import re

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.objects import Object
from kube_in_process.text import names

_STATES = ("False", "True", "Unknown")
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_TEXT = (
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. "
    f"'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', "
    f"regex used for validation is '{_REASON}')"
)
_REASON_LIMIT = 1024
_MESSAGE_LIMIT = 32768


def condition_errors(conditions: list[Object], base: str) -> list[FieldError]:
    field_errors: list[FieldError] = []
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        path, kind = f"{base}[{index}]", condition.get("type") or ""
        if kind and kind in seen:
            field_errors.append(errors.duplicate(f"{path}.type", kind))
        seen.add(kind)
        field_errors += _one(condition, kind, path)
    return field_errors


def _one(condition: Object, kind: str, path: str) -> list[FieldError]:
    field_errors = errors.invalid_name(f"{path}.type", kind, names.qualified_name)
    status = condition.get("status") or ""
    if status not in _STATES:
        field_errors.append(errors.not_supported(f"{path}.status", status, _STATES))
    generation = condition.get("observedGeneration") or 0
    if generation < 0:
        text = "must be greater than or equal to zero"
        field_errors.append(errors.invalid_value(f"{path}.observedGeneration", generation, text))
    if not condition.get("lastTransitionTime"):
        field_errors.append(errors.required(f"{path}.lastTransitionTime"))
    field_errors += _reason(condition.get("reason") or "", f"{path}.reason")
    if len(condition.get("message") or "") > _MESSAGE_LIMIT:
        field_errors.append(errors.too_long(f"{path}.message", _MESSAGE_LIMIT))
    return field_errors


def _reason(reason: str, path: str) -> list[FieldError]:
    if not reason:
        return [errors.required(path)]
    field_errors: list[FieldError] = []
    if re.fullmatch(_REASON, reason) is None:
        field_errors.append(errors.invalid_value(path, reason, _REASON_TEXT))
    if len(reason) > _REASON_LIMIT:
        field_errors.append(errors.too_long(path, _REASON_LIMIT))
    return field_errors
