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
    found: list[FieldError] = []
    for index, term in enumerate(terms):
        found += node_selector_term(term, f"{base}[{index}]")
    return found


def node_selector_term(term: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for index, each in enumerate(term.get("matchExpressions") or []):
        found += expression_errors(each, f"{path}.matchExpressions[{index}]", numeric=True)
    for index, each in enumerate(term.get("matchFields") or []):
        found += _field(each, f"{path}.matchFields[{index}]")
    return found


def _field(each: Object, path: str) -> list[FieldError]:
    operator, values = each.get("operator", ""), each.get("values") or []
    key = each.get("key", "")
    found: list[FieldError] = []
    if operator in ("In", "NotIn"):
        found += [] if len(values) == 1 else [errors.required(f"{path}.values", _ONE_FIELD)]
    else:
        found.append(errors.invalid_value(f"{path}.operator", operator, _BAD_OPERATOR))
    if key != "metadata.name":
        return [*found, errors.invalid_value(f"{path}.key", key, "not a valid field selector key")]
    return [
        *found,
        *(
            errors.invalid_value(f"{path}.values[{index}]", value, text)
            for index, value in enumerate(values)
            for text in names.subdomain(value)
        ),
    ]
