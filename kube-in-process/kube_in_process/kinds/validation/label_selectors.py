"""Validation of a metav1.LabelSelector."""

from __future__ import annotations

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.metadata import validate_labels
from kube_in_process.objects import Object
from kube_in_process.storage.selectors import selects
from kube_in_process.text import names

_SEVERAL = "must be specified when `operator` is 'In' or 'NotIn'"
_ONE = "must be specified single value when `operator` is 'Lt' or 'Gt'"
_NONE = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"


def label_selector(selector: Object, path: str) -> list[FieldError]:
    field_errors = validate_labels(selector.get("matchLabels") or {}, f"{path}.matchLabels")
    for index, expression in enumerate(selector.get("matchExpressions") or []):
        field_errors += expression_errors(expression, f"{path}.matchExpressions[{index}]")
    return field_errors


def expression_errors(expression: Object, path: str, *, numeric: bool = False) -> list[FieldError]:
    """The errors of an expression; ``numeric`` allows the operators Gt and Lt, too."""
    operator, values = expression.get("operator", ""), expression.get("values") or []
    key, field_errors = expression.get("key", ""), list[FieldError]()
    if operator in ("In", "NotIn"):
        field_errors += [] if values else [errors.required(f"{path}.values", _SEVERAL)]
    elif operator in ("Exists", "DoesNotExist"):
        field_errors += [errors.forbidden_field(f"{path}.values", _NONE)] if values else []
    elif numeric and operator in ("Gt", "Lt"):
        field_errors += [] if len(values) == 1 else [errors.required(f"{path}.values", _ONE)]
    else:
        text = "not a valid selector operator"
        field_errors.append(errors.invalid_value(f"{path}.operator", operator, text))
    field_errors += errors.invalid_name(f"{path}.key", key, names.qualified_name)
    return [
        *field_errors,
        *(
            errors.invalid_value(f"{path}.values[{index}]", value, text)
            for index, value in enumerate(values)
            for text in names.label_value(value)
        ),
    ]


def is_empty(selector: Object) -> bool:
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def matches(selector: Object | None, labels: Object | None) -> bool:
    """Whether a valid selector matches the labels; None matches nothing."""
    return selector is not None and selects(selector, labels or {})
