"""MutatingAdmissionPolicies: objects are changed by JSON patches when they are created.

What was tried on a real 1.36 is emulated: creates, match conditions, variables, JSON patches, and
parameters of a cluster-wide kind that a binding selects all or by name. A policy that needs more is
refused (403). A policy acts at once; a real server takes some milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kube_in_process import errors
from kube_in_process.kinds.emulation import refusal
from kube_in_process.kinds.kind import Kind
from kube_in_process.objects import Object
from kube_in_process.patch.json_patch import PatchError, json_patch
from kube_in_process.storage.store import Address
from kube_in_process.text.cel import EvaluationError, compiled
from kube_in_process.verbs.state import ServerState

GROUP = "admissionregistration.k8s.io"
POLICIES, BINDINGS = "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"
_PATCH = re.compile(r"JSONPatch\{\s*op:")
_FIELD = re.compile(r"(?<=[\s,])(path|value):(?=\s)")


class _Failed(Exception):
    """An expression failed, or the patch does not fit."""


def mutated(state: ServerState, kind: Kind, obj: Object) -> Object:
    """The object as the policies of the cluster change it at its creation.

    Raises:
        StatusError: 422 where a policy with failurePolicy Fail failed.
    """
    if kind.group == GROUP or not state.store.items(GROUP, BINDINGS):
        return obj
    for binding in sorted(state.store.list(GROUP, BINDINGS), key=_name):
        policy = state.store.get(
            Address(GROUP, POLICIES, "", binding["spec"].get("policyName", ""))
        )
        if policy is None or not _concerns(policy["spec"], kind):
            continue
        for params in _params(state, policy["spec"], binding["spec"]):
            obj = _changed(policy, params, obj)
    return obj


def check(kind: Kind, obj: Object) -> None:
    """Refuse a policy that needs more than is emulated. Raises StatusError 403."""
    spec = obj.get("spec") or {}
    where = f"{kind.resource}/{obj['metadata'].get('name', '')}"
    if (kind.group, kind.plural) == (GROUP, POLICIES):
        constraints = spec.get("matchConstraints") or {}
        rules = constraints.get("resourceRules") or ()
        kinds = {each.get("patchType") for each in spec.get("mutations") or ()}
        if kinds - {"JSONPatch"}:
            raise refusal("a mutation that is no JSON patch", where)
        if any(each.get("operations") != ["CREATE"] for each in rules):
            raise refusal("a policy for other operations than CREATE", where)
        if set(constraints) - {"resourceRules", "matchPolicy"} or any(
            "resourceNames" in each for each in rules
        ):
            raise refusal("a choice among objects of a kind", where)
    if (kind.group, kind.plural) == (GROUP, BINDINGS):
        given = spec.get("paramRef") or {}
        if spec.get("matchResources") or given.get("selector") or given.get("namespace"):
            raise refusal("a binding for some objects or parameters", where)


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def _concerns(spec: Mapping[str, Any], kind: Kind) -> bool:
    return any(
        kind.group in each.get("apiGroups", ())
        and kind.plural in each.get("resources", ())
        and kind.version in each.get("apiVersions", ())
        for each in (spec.get("matchConstraints") or {}).get("resourceRules") or ()
    )


def _params(
    state: ServerState, spec: Mapping[str, Any], binding: Mapping[str, Any]
) -> Iterator[Object | None]:
    """The parameters for which the policy is asked; None for a policy without parameters."""
    wanted = spec.get("paramKind")
    if not wanted:
        yield None
        return
    group, _, _ = wanted["apiVersion"].rpartition("/")
    kind = state.kinds.by_kind(group, wanted["kind"])
    chosen = binding.get("paramRef") or {}
    if kind is not None:
        for each in sorted(state.store.list(*kind.storage), key=_name):
            if chosen.get("name", _name(each)) == _name(each):
                yield each


def _changed(policy: Object, params: Object | None, obj: Object) -> Object:
    spec = policy["spec"]
    try:
        names: dict[str, Any] = {"object": obj, "params": params, "variables": {}}
        for each in spec.get("matchConditions") or ():
            if _value(each["expression"], names) is not True:
                return obj
        for each in spec.get("variables") or ():
            names["variables"][each["name"]] = _value(each["expression"], names)
        for each in spec.get("mutations") or ():
            operations = _value(_as_maps(each["jsonPatch"]["expression"]), names)
            obj = _patched(obj, operations)
            names["object"] = obj
    except _Failed as error:
        if spec.get("failurePolicy", "Fail") == "Ignore":
            return obj
        text = f"policy '{_name(policy)}' denied request: {error}"
        raise errors.StatusError(422, "Invalid", text) from None
    return obj


def _as_maps(expression: str) -> str:
    """The expression with each ``JSONPatch{...}`` as a map: the CEL library has no types."""
    return _FIELD.sub(r'"\1":', _PATCH.sub('{"op":', expression))


def _value(expression: str, names: Mapping[str, Any]) -> Any:
    try:
        return compiled(expression)(names)
    except (EvaluationError, ValueError) as error:
        raise _Failed(str(error)) from error


def _patched(obj: Object, operations: Any) -> Object:
    try:
        return json_patch(obj, list(operations))
    except (PatchError, TypeError) as error:
        raise _Failed(str(error)) from error
