"""The expressions of policies and match conditions: syntax, types, and what is served."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kube_in_process.errors import FieldError, invalid_value, required
from kube_in_process.kinds.emulation import refusal
from kube_in_process.objects import Object
from kube_in_process.text.cel import served_functions
from kube_in_process.text.cel_checker import examined
from kube_in_process.text.cel_source import unserved
from kube_in_process.text.cel_type import (
    BOOL,
    DYN,
    INT,
    STRING,
    UNKNOWN,
    CelType,
    holds,
    runtime_name,
)

_TEXTS = CelType("list", (STRING,))
_TEXT_MAP = CelType("map", (STRING, STRING))
_TIME = CelType("timestamp")


def _object(name: str, /, **fields: CelType) -> CelType:
    return CelType(f"kubernetes.{name}", fields=fields)


_KIND = _object("GroupVersionKind", group=STRING, version=STRING, kind=STRING)
_RESOURCE = _object("GroupVersionResource", group=STRING, version=STRING, resource=STRING)
_USER = _object(
    "UserInfo",
    username=STRING,
    uid=STRING,
    groups=_TEXTS,
    extra=CelType("map", (STRING, _TEXTS)),
)
_REQUEST = _object(
    "AdmissionRequest",
    **{"kind": _KIND, "requestKind": _KIND, "resource": _RESOURCE, "requestResource": _RESOURCE},
    **dict.fromkeys(("subResource", "requestSubResource", "name", "namespace"), STRING),
    operation=STRING,
    userInfo=_USER,
    dryRun=BOOL,
    options=DYN,
)
_META = _object(
    "NamespaceMetadata",
    **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), STRING),
    **dict.fromkeys(("labels", "annotations"), _TEXT_MAP),
    **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _TIME),
    **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), INT),
    finalizers=_TEXTS,
)
_CONDITION = _object(
    "NamespaceCondition",
    **dict.fromkeys(("status", "type", "message", "reason"), STRING),
    lastTransitionTime=_TIME,
)
_NAMESPACE = _object(
    "Namespace",
    metadata=_META,
    spec=_object("NamespaceSpec", finalizers=_TEXTS),
    status=_object("NamespaceStatus", phase=STRING, conditions=CelType("list", (_CONDITION,))),
)
_CHECK = CelType("kubernetes.authorization.ResourceCheck")
_AUTHORIZER = CelType("kubernetes.authorization.Authorizer", fields={"requestResource": _CHECK})
OBJECTS: Mapping[str, CelType] = {
    "object": DYN,
    "oldObject": DYN,
    "request": _REQUEST,
    "namespaceObject": _NAMESPACE,
    "authorizer": _AUTHORIZER,
}
"""The names in every expression of a policy or a match condition."""
_PATCH = CelType("JSONPatch", fields={"op": STRING, "path": STRING, "from": STRING, "value": DYN})
MADE_BY_PATCHES: Mapping[str, CelType] = {
    "JSONPatch": _PATCH,
    "Object": CelType("Object"),
    "Object.*": CelType("Object"),
}
"""The types of the objects that the expressions of a mutation make."""
_OF_AUTHORIZERS = frozenset(
    (
        *("group", "resource", "subresource", "namespace", "name", "path", "serviceAccount"),
        *("check", "allowed", "reason", "errored", "orValue", "hasValue", "value"),
    )
)
"""The functions of ``authorizer`` and of optional values."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that an expression may use, and the types of the objects that it may make."""

    names: Mapping[str, CelType]
    objects: Mapping[str, CelType] = field(default_factory=dict)

    def with_variables(self, types: Mapping[str, CelType]) -> Scope:
        variables = CelType("kubernetes.variables", fields=dict(types))
        return Scope({**self.names, "variables": variables}, self.objects)


def expression_errors(
    holder: Object, path: str, scope: Scope, wanted: str = "bool"
) -> Iterator[FieldError]:
    """The errors of an expression; its key is the last part of the path. ``wanted`` is the type of
    its value; '' for any.

    Raises:
        StatusError: 403, a function that is not served.
    """
    source = (holder.get(path.rpartition(".")[2]) or "").strip()
    if not source:
        yield required(path, "" if "matchConditions" in path else "expression is not specified")
        return
    expression = examined(source, scope.names, scope.objects)
    if expression.problem:
        yield invalid_value(path, source, f"compilation failed: {expression.problem}")
        return
    given = runtime_name(expression.kind)
    if wanted and given not in (wanted, "type") and not holds(expression.kind, UNKNOWN):
        yield invalid_value(path, source, f"must evaluate to {wanted} but got {given}")
        return
    unknown = unserved(source, served_functions() | _OF_AUTHORIZERS)
    if unknown:
        raise refusal(f"the CEL function {unknown}", path)


def type_of(source: str, scope: Scope) -> CelType:
    """The type of an expression; ``dyn`` if it is wrong."""
    expression = examined(source.strip(), scope.names, scope.objects)
    return DYN if expression.problem else expression.kind
