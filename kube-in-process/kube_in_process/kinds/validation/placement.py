"""Validation of what a pod asks of its place: affinity and topology spread constraints."""

from __future__ import annotations

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.validation.label_selectors import label_selector
from kube_in_process.kinds.validation.node_selectors import node_selector, node_selector_term
from kube_in_process.objects import Object
from kube_in_process.text import names

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT = "must be in the range 1-100"
_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_INCLUSION = ("Honor", "Ignore")
_POSITIVE = "must be greater than zero"


def affinity(wanted: Object | None, path: str) -> list[FieldError]:
    """The errors of spec.affinity."""
    field_errors: list[FieldError] = []
    if wanted is None:
        return field_errors
    if (nodes := wanted.get("nodeAffinity")) is not None:
        field_errors += _node_affinity(nodes, f"{path}.nodeAffinity")
    for key in ("podAffinity", "podAntiAffinity"):
        if (pods := wanted.get(key)) is not None:
            field_errors += _pod_affinity(pods, f"{path}.{key}")
    return field_errors


def _node_affinity(wanted: Object, path: str) -> list[FieldError]:
    field_errors: list[FieldError] = []
    if wanted.get(_REQUIRED) is not None:
        field_errors += node_selector(wanted[_REQUIRED], f"{path}.{_REQUIRED}")
    for index, term in enumerate(wanted.get(_PREFERRED) or []):
        place = f"{path}.{_PREFERRED}[{index}]"
        field_errors += _weight(term, place)
        field_errors += node_selector_term(term.get("preference") or {}, f"{place}.preference")
    return field_errors


def _pod_affinity(wanted: Object, path: str) -> list[FieldError]:
    field_errors: list[FieldError] = []
    for index, term in enumerate(wanted.get(_REQUIRED) or []):
        field_errors += _pod_term(term, f"{path}.{_REQUIRED}[{index}]")
    for index, term in enumerate(wanted.get(_PREFERRED) or []):
        place = f"{path}.{_PREFERRED}[{index}]"
        field_errors += _weight(term, place)
        field_errors += _pod_term(term.get("podAffinityTerm") or {}, f"{place}.podAffinityTerm")
    return field_errors


def _weight(term: Object, path: str) -> list[FieldError]:
    weight = term.get("weight") or 0
    return [] if 1 <= weight <= 100 else [errors.invalid_value(f"{path}.weight", weight, _WEIGHT)]


def _pod_term(term: Object, path: str) -> list[FieldError]:
    field_errors: list[FieldError] = []
    for key in ("labelSelector", "namespaceSelector"):
        if term.get(key) is not None:
            field_errors += label_selector(term[key], f"{path}.{key}")
    for name in term.get("namespaces") or []:
        field_errors += errors.invalid_name(f"{path}.namespace", name, names.namespace_name)
    key = term.get("topologyKey") or ""
    where = f"{path}.topologyKey"
    if not key:
        field_errors.append(errors.required(where, "can not be empty"))
    return [*field_errors, *errors.invalid_name(where, key, names.qualified_name)]


def spread(constraints: list[Object], base: str) -> list[FieldError]:
    """The errors of spec.topologySpreadConstraints."""
    field_errors: list[FieldError] = []
    pairs = [
        (constraint.get("topologyKey"), constraint.get("whenUnsatisfiable"))
        for constraint in constraints
    ]
    for index, constraint in enumerate(constraints):
        path = f"{base}[{index}]"
        field_errors += _constraint(constraint, path)
        if pairs[index] in pairs[index + 1 :]:
            shown = f"{{{pairs[index][0]}, {pairs[index][1]}}}"
            field_errors.append(
                errors.duplicate(f"{path}.{{topologyKey, whenUnsatisfiable}}", shown)
            )
        field_errors += _inclusion_and_selector(constraint, path)
    return field_errors


def _constraint(constraint: Object, path: str) -> list[FieldError]:
    skew, domains = constraint.get("maxSkew") or 0, constraint.get("minDomains")
    key, unsatisfiable = constraint.get("topologyKey"), constraint.get("whenUnsatisfiable") or ""
    field_errors: list[FieldError] = []
    if skew <= 0:
        field_errors.append(errors.invalid_value(f"{path}.maxSkew", skew, _POSITIVE))
    if not key:
        field_errors.append(errors.required(f"{path}.topologyKey", "can not be empty"))
    if unsatisfiable not in _UNSATISFIABLE:
        where = f"{path}.whenUnsatisfiable"
        field_errors.append(errors.not_supported(where, unsatisfiable, _UNSATISFIABLE))
    where = f"{path}.minDomains"
    if domains is not None and domains <= 0:
        field_errors.append(errors.invalid_value(where, domains, _POSITIVE))
    if domains is not None and unsatisfiable == "ScheduleAnyway":
        text = "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
        field_errors.append(errors.invalid_value(where, domains, text))
    return field_errors


def _inclusion_and_selector(constraint: Object, path: str) -> list[FieldError]:
    field_errors: list[FieldError] = []
    for key in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        value = constraint.get(key)
        if value is not None and value not in _INCLUSION:
            field_errors.append(errors.not_supported(f"{path}.{key}", value, _INCLUSION))
    selector = constraint.get("labelSelector")
    if constraint.get("matchLabelKeys") and selector is None:
        text = "must not be specified when labelSelector is not set"
        field_errors.append(errors.forbidden_field(f"{path}.matchLabelKeys", text))
    if selector is not None:
        field_errors += label_selector(selector, f"{path}.labelSelector")
    return field_errors
