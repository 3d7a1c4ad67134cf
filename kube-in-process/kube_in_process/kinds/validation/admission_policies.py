"""Admission policies and their bindings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from kube_in_process import errors
from kube_in_process.errors import FieldError, invalid_text, invalid_value, not_supported, required
from kube_in_process.kinds.strategy import Strategy, WriteContext
from kube_in_process.kinds.validation.expressions import (
    MADE_BY_PATCHES,
    OBJECTS,
    Scope,
    expression_errors,
    type_of,
)
from kube_in_process.kinds.validation.match_resources import (
    FAILURE_POLICIES,
    OPERATIONS,
    choice,
    condition_errors,
    default_match,
    match_errors,
)
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.text import names
from kube_in_process.text.cel_type import DYN, CelType

_RULES = ("resourceRules", "excludeResourceRules")
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ACTIONS = ("Audit", "Deny", "Warn")
_NO_RULE = "validations or auditAnnotations must contain at least one item"
_PATCHES = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")


class PolicyStrategy(Strategy):
    """What both kinds of policies have: what they are about, and variables."""

    def default(self, obj: Object, features: Features) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("failurePolicy", "Fail")
        if spec.get("matchConstraints") is not None:
            default_match(spec["matchConstraints"], _RULES)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        return list(self._errors(obj["spec"]))

    def _errors(self, spec: Object) -> Iterator[FieldError]:
        yield from choice(spec, "failurePolicy", FAILURE_POLICIES, "spec")
        yield from _param_kind(spec.get("paramKind"))
        constraints = spec.get("matchConstraints")
        if constraints is None:
            yield required("spec.matchConstraints")
        else:
            yield from match_errors(constraints, "spec.matchConstraints")
            yield from self._operations(constraints)
        scope = Scope({**OBJECTS, "params": DYN} if spec.get("paramKind") else OBJECTS)
        conditions = spec.get("matchConditions") or ()
        yield from condition_errors(conditions, "spec.matchConditions", scope)
        types: dict[str, CelType] = {}
        yield from _variables(spec.get("variables") or (), scope, types)
        yield from self._own_errors(spec, scope, types)

    def _operations(self, constraints: Object) -> Iterator[FieldError]:
        yield from ()

    def _own_errors(
        self, spec: Object, scope: Scope, variables: Mapping[str, CelType]
    ) -> Iterator[FieldError]:
        raise NotImplementedError


def _param_kind(kind: Object | None) -> Iterator[FieldError]:
    if kind is None:
        return
    version = kind.get("apiVersion") or ""
    if not version:
        yield required("spec.paramKind.apiVersion")
    elif version.count("/") > 1:
        text = f"unexpected GroupVersion string: {version}"
        yield invalid_value("spec.paramKind.apiVersion", version, text)
    if not kind.get("kind"):
        yield required("spec.paramKind.kind")


def _variables(
    variables: Sequence[Object], scope: Scope, types: dict[str, CelType]
) -> Iterator[FieldError]:
    """The errors of variables. Each may use those before it. Their types are added to ``types``."""
    for index, variable in enumerate(variables):
        path, name = f"spec.variables[{index}]", variable.get("name") or ""
        if not name:
            yield required(f"{path}.name", "name is not specified")
        elif not _IDENTIFIER.fullmatch(name):
            yield invalid_value(f"{path}.name", name, "must be a valid CEL identifier")
        elif name in types:
            yield errors.duplicate(f"{path}.name", name)
        known = scope.with_variables(types)
        yield from expression_errors(variable, f"{path}.expression", known, wanted="")
        types[name] = type_of(variable.get("expression") or "", known)


class ValidatingPolicyStrategy(PolicyStrategy):
    initial_status: Mapping[str, object] | None = MappingProxyType({})

    def _own_errors(
        self, spec: Object, scope: Scope, variables: Mapping[str, CelType]
    ) -> Iterator[FieldError]:
        known = scope.with_variables(variables) if variables else scope
        validations = spec.get("validations") or []
        if not validations and not spec.get("auditAnnotations"):
            yield required("spec.validations", _NO_RULE)
            yield required("spec.auditAnnotations", _NO_RULE)
        for index, validation in enumerate(validations):
            path = f"spec.validations[{index}]"
            yield from _validation(validation, path, known)


def _validation(validation: Object, path: str, scope: Scope) -> Iterator[FieldError]:
    yield from expression_errors(validation, f"{path}.expression", scope)
    if validation.get("messageExpression"):
        asked = {name: kind for name, kind in scope.names.items() if name != "authorizer"}
        where = f"{path}.messageExpression"
        yield from expression_errors(validation, where, Scope(asked), wanted="string")
    message = validation.get("message") or ""
    if message and not message.strip():
        yield invalid_value(f"{path}.message", message, "must be non-empty if specified")
    elif "\n" in message.strip():
        yield invalid_value(f"{path}.message", message, "must not contain line breaks")
    yield from choice(validation, "reason", _REASONS, path)


class MutatingPolicyStrategy(PolicyStrategy):
    def _operations(self, constraints: Object) -> Iterator[FieldError]:
        supported = tuple(operation for operation in OPERATIONS if operation != "DELETE")
        for rule in constraints.get("resourceRules") or ():
            if "DELETE" in (rule.get("operations") or ()):
                path = "spec.matchConstraints.resourceRules.operations"
                yield not_supported(path, "DELETE", supported)

    def _own_errors(
        self, spec: Object, scope: Scope, variables: Mapping[str, CelType]
    ) -> Iterator[FieldError]:
        known = Scope(scope.names, MADE_BY_PATCHES).with_variables(variables)
        if not spec.get("mutations"):
            yield required("spec.mutations", "mutations must contain at least one item")
        for index, mutation in enumerate(spec.get("mutations") or ()):
            yield from _mutation(mutation, f"spec.mutations[{index}]", known)
        if not spec.get("reinvocationPolicy"):
            yield required("spec.reinvocationPolicy")
        yield from choice(spec, "reinvocationPolicy", ("IfNeeded", "Never"), "spec")


def _mutation(mutation: Object, path: str, scope: Scope) -> Iterator[FieldError]:
    kind = mutation.get("patchType") or ""
    if not kind:
        yield required(f"{path}.patchType")
        return
    if kind not in _PATCHES:
        yield not_supported(f"{path}.patchType", kind, tuple(_PATCHES))
        return
    key = _PATCHES[kind]
    if not mutation.get(key):
        yield required(f"{path}.{key}", f"must be specified when patchType is {kind}")
    else:
        wanted = "Object" if kind == "ApplyConfiguration" else "list(JSONPatch)"
        yield from expression_errors(mutation[key], f"{path}.{key}.expression", scope, wanted)
    for other in _PATCHES.values():
        if other != key and mutation.get(other):
            text = f"must not be specified when patchType is {kind}"
            yield invalid_text(f"{path}.{other}", f'"{{{other}}}"', text)


class PolicyBindingStrategy(Strategy):
    """A binding. Only those of validating policies have ``actions``."""

    def __init__(self, *, actions: bool) -> None:
        self._actions = actions

    def default(self, obj: Object, features: Features) -> None:
        spec = obj.setdefault("spec", {})
        if spec.get("matchResources") is not None:
            default_match(spec["matchResources"], _RULES)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        spec, field_errors = obj["spec"], list[FieldError]()
        policy = spec.get("policyName") or ""
        field_errors += (
            errors.invalid_name("spec.policyName", policy, names.subdomain) if policy else []
        )
        field_errors += [] if policy else [required("spec.policyName")]
        if spec.get("paramRef") is not None:
            field_errors += _param_reference(spec["paramRef"], "spec.paramRef")
        if spec.get("matchResources") is not None:
            field_errors += match_errors(spec["matchResources"], "spec.matchResources")
        return (
            [*field_errors, *_actions(spec.get("validationActions") or [])]
            if self._actions
            else field_errors
        )


def _param_reference(reference: Object, path: str) -> Iterator[FieldError]:
    name, selector = reference.get("name"), reference.get("selector")
    if name and selector is not None:
        for key in ("name", "selector"):
            text = "name and selector are mutually exclusive"
            yield errors.forbidden_field(f"{path}.{key}", text)
    elif not name and selector is None:
        yield required(path, "one of name or selector must be specified")
    action = reference.get("parameterNotFoundAction")
    if not action:
        yield required(f"{path}.parameterNotFoundAction")
    yield from choice(reference, "parameterNotFoundAction", ("Deny", "Allow"), path)


def _actions(actions: Sequence[str]) -> Iterator[FieldError]:
    path = "spec.validationActions"
    if not actions:
        yield required(path, "at least one validation action is required")
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            yield not_supported(f"{path}[{index}]", action, _ACTIONS)
        elif action in actions[:index]:
            yield errors.duplicate(f"{path}[{index}]", action)
    if {"Deny", "Warn"} <= set(actions):
        text = (
            "must not contain both Deny and Warn (repeating the same validation failure "
            "information in the API response and headers serves no purpose)"
        )
        yield invalid_value(path, list(actions), text)
