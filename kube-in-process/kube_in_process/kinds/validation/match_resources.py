"""Rules and selectors of admission policies and webhooks: their defaults and their errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kube_in_process.errors import (
    FieldError,
    duplicate,
    invalid_value,
    not_supported,
    required,
)
from kube_in_process.kinds.validation.expressions import Scope, expression_errors
from kube_in_process.kinds.validation.label_selectors import label_selector
from kube_in_process.objects import Object

OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
FAILURE_POLICIES = ("Fail", "Ignore")
_MATCH_POLICIES = ("Equivalent", "Exact")


def default_match(match: Object, rules: Sequence[str]) -> None:
    """Fill in a MatchResources, or a webhook; ``rules`` are the fields with its rules."""
    match.setdefault("matchPolicy", "Equivalent")
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})
    for key in rules:
        for rule in match.get(key) or ():
            rule.setdefault("scope", "*")


def match_errors(match: Object, path: str) -> Iterator[FieldError]:
    yield from choice(match, "matchPolicy", _MATCH_POLICIES, path)
    yield from selector_errors(match, path)
    for key in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(match.get(key) or ()):
            yield from rule_errors(rule, f"{path}.{key}[{index}]")


def selector_errors(match: Object, path: str) -> Iterator[FieldError]:
    for key in ("namespaceSelector", "objectSelector"):
        yield from label_selector(match.get(key) or {}, f"{path}.{key}")


def choice(holder: Object, key: str, supported: Sequence[str], path: str) -> Iterator[FieldError]:
    if holder.get(key) and holder[key] not in supported:
        yield not_supported(f"{path}.{key}", holder[key], supported)


def rule_errors(rule: Object, path: str) -> Iterator[FieldError]:
    yield from _listed(rule, "operations", path, "operations")
    for index, operation in enumerate(rule.get("operations") or ()):
        if operation not in OPERATIONS:
            yield not_supported(f"{path}.operations[{index}]", operation, OPERATIONS)
    yield from _listed(rule, "apiGroups", path, "API groups")
    yield from _listed(rule, "apiVersions", path, "API versions")
    yield from _resources(rule.get("resources") or [], f"{path}.resources")
    yield from choice(rule, "scope", _SCOPES, path)


def _listed(rule: Object, key: str, path: str, what: str) -> Iterator[FieldError]:
    values = rule.get(key) or []
    if not values:
        yield required(f"{path}.{key}")
    elif "*" in values and len(values) > 1:
        text = f"if '*' is present, must not specify other {what}"
        yield invalid_value(f"{path}.{key}", values, text)


def _resources(resources: list[Any], path: str) -> Iterator[FieldError]:
    if not resources:
        yield required(path)
    for index, resource in enumerate(resources):
        plural, _, subresource = resource.partition("/")
        if not resource:
            yield required(f"{path}[{index}]")
        elif subresource and f"{plural}/*" in resources[:index]:
            text = f"if '{plural}/*' is present, must not specify {resource}"
            yield invalid_value(f"{path}[{index}]", resource, text)
        elif subresource and f"*/{subresource}" in resources[:index]:
            text = f"if '*/{subresource}' is present, must not specify {resource}"
            yield invalid_value(f"{path}[{index}]", resource, text)
    if "*/*" in resources and len(resources) > 1:
        text = "if '*/*' is present, must not specify other resources"
        yield invalid_value(path, resources, text)
    elif "*" in resources and sum("/" not in resource for resource in resources) > 1:
        text = "if '*' is present, must not specify other resources without subresources"
        yield invalid_value(path, resources, text)


def condition_errors(conditions: Sequence[Object], path: str, scope: Scope) -> Iterator[FieldError]:
    """The errors of match conditions."""
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        where, name = f"{path}[{index}]", condition.get("name") or ""
        yield from expression_errors(condition, f"{where}.expression", scope)
        if not name:
            yield required(f"{where}.name")
        elif name in seen:
            yield duplicate(f"{where}.name", name)
        seen.add(name)
