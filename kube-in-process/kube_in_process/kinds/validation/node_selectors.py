"""Validation of a core/v1 NodeSelector."""

from __future__ import annotations

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.validation.label_selectors import expression_errors
from kube_in_process.objects import Object
from kube_in_process.text import names

_ONE_FIELD = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
_BAD_OPERATOR = "not a valid selector operator"


def node_selector(selector: Object, path: str) -> list[FieldError]:
    terms = selector.get("nodeSelectorTerms") or []
    base = f"{path}.nodeSelectorTerms"
    if not terms:
        return [errors.required(base, "must have at least one node selector term")]
    field_errors: list[FieldError] = []
    for index, term in enumerate(terms):
        field_errors += node_selector_term(term, f"{base}[{index}]")
    return field_errors


def node_selector_term(term: Object, path: str) -> list[FieldError]:
    field_errors: list[FieldError] = []
    for index, expression in enumerate(term.get("matchExpressions") or []):
        field_errors += expression_errors(
            expression, f"{path}.matchExpressions[{index}]", numeric=True
        )
    for index, field in enumerate(term.get("matchFields") or []):
        field_errors += _field(field, f"{path}.matchFields[{index}]")
    return field_errors


def _field(field: Object, path: str) -> list[FieldError]:
    operator, values = field.get("operator", ""), field.get("values") or []
    key = field.get("key", "")
    field_errors: list[FieldError] = []
    if operator in ("In", "NotIn"):
        field_errors += [] if len(values) == 1 else [errors.required(f"{path}.values", _ONE_FIELD)]
    else:
        field_errors.append(errors.invalid_value(f"{path}.operator", operator, _BAD_OPERATOR))
    if key != "metadata.name":
        return [
            *field_errors,
            errors.invalid_value(f"{path}.key", key, "not a valid field selector key"),
        ]
    return [
        *field_errors,
        *(
            errors.invalid_value(f"{path}.values[{index}]", value, text)
            for index, value in enumerate(values)
            for text in names.subdomain(value)
        ),
    ]
