"""Validation of pod templates, and of the selectors that must match them."""

from __future__ import annotations

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.metadata import validate_template_metadata
from kube_in_process.kinds.validation.go_text import STRUCTS, go_text
from kube_in_process.kinds.validation.label_selectors import is_empty, label_selector, matches
from kube_in_process.kinds.validation.pod_specs import validate_pod_spec
from kube_in_process.objects import Object


def pod_template(template: Object, path: str) -> list[FieldError]:
    """The errors of a pod template. Like the server, name the metadata's place ``path``."""
    metadata = template.get("metadata") or {}
    field_errors = validate_template_metadata(metadata, path)
    return [*field_errors, *validate_pod_spec(template["spec"], f"{path}.spec")]


def selected_template(spec: Object, kind: str, unusable: str) -> list[FieldError]:
    """The errors of a workload's selector and template; ``unusable`` is a further error text for an
    invalid selector."""
    selector, template = spec.get("selector"), spec["template"]
    field_errors: list[FieldError] = []
    if selector is None:
        field_errors.append(errors.required("spec.selector"))
    else:
        shown = shown_selector(selector)
        wrong = label_selector(selector, "spec.selector")
        field_errors += wrong
        if is_empty(selector):
            text = f"empty selector is invalid for {kind}"
            field_errors.append(errors.invalid_text("spec.selector", shown, text))
        if wrong:
            return [*field_errors, errors.invalid_text("spec.selector", shown, unusable)]
    field_errors += mismatch(selector, template)
    field_errors += pod_template(template, "spec.template")
    return [*field_errors, *_always(template["spec"])]


def shown_selector(selector: Object | None) -> str:
    """A selector as errors print it: fields that are not set are left out."""
    if selector is None:
        return "null"
    order = {key: selector[key] for key in STRUCTS["label_selector"] if selector.get(key)}
    for expression in order.get("matchExpressions") or []:
        expression["values"] = expression.get("values")
    fields = {key: STRUCTS["label_selector"][key] for key in order}
    return go_text(order, fields)


def mismatch(selector: Object | None, template: Object) -> list[FieldError]:
    labels = (template.get("metadata") or {}).get("labels")
    if matches(selector, labels):
        return []
    text = "`selector` does not match template `labels`"
    return [errors.invalid_value("spec.template.metadata.labels", labels, text)]


def _always(spec: Object) -> list[FieldError]:
    field_errors: list[FieldError] = []
    policy = spec.get("restartPolicy", "")
    if policy != "Always":
        where = "spec.template.spec.restartPolicy"
        field_errors.append(errors.not_supported(where, policy, ("Always",)))
    if spec.get("activeDeadlineSeconds") is not None:
        where = "spec.template.spec.activeDeadlineSeconds"
        text = "activeDeadlineSeconds in ReplicaSet is not Supported"
        field_errors.append(errors.forbidden_field(where, text))
    return field_errors
