"""MutatingAdmissionPolicies: expressions change objects before they are checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kube_in_process.admission.expressions import Failed, Names, conditions_hold, names_of
from kube_in_process.admission.object_types import type_mismatch
from kube_in_process.admission.params import Applied, applied, name_of
from kube_in_process.admission.request import (
    AdmissionRequest,
    AdmissionServer,
    in_version,
    internal_error,
)
from kube_in_process.errors import StatusError
from kube_in_process.managed_fields.apply import merge
from kube_in_process.objects import Object
from kube_in_process.patch.json_patch import FailedTest, PatchError, json_patch
from kube_in_process.schema.tree import ANY, Json, Schema
from kube_in_process.schema.typed import typed_problem
from kube_in_process.storage.store import decode, encode

POLICIES = "mutatingadmissionpolicies"
_ATOMIC = "may not mutate atomic arrays, maps or structs"


_Key = tuple[str, str, str, str]
"""The names of a policy and of its binding, and the namespace and name of its parameters."""


@dataclass(frozen=True, slots=True)
class Mutated:
    """A request as the policies have changed it, and which of them may be asked once more."""

    request: AdmissionRequest
    repeatable: frozenset[_Key]


class _Unapplied(Exception):
    """A patch that does not fit the object."""


class _Denial:
    """The failures of policies that do not ignore them. All policies are asked before."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._reason = ""

    def add(self, policy: Applied, why: str, reason: str = "Invalid") -> None:
        if policy.ignores_failures:
            return
        named = f'policy "{name_of(policy.policy)}"'
        if policy.binding is not None:
            binding = name_of(policy.binding)
            named = f"policy '{name_of(policy.policy)}' with binding '{binding}'"
        self._texts.append(f"{named} denied request: {why}")
        self._reason = self._reason or reason

    def status(self, request: AdmissionRequest) -> StatusError | None:
        """A 403; None if no policy failed. Its message is the first failure, and does not name the
        object."""
        if not self._texts:
            return None
        details = request.subject.details(causes=[{"message": text} for text in self._texts])
        return StatusError(403, self._reason, self._texts[0], details)


def mutate(
    server: AdmissionServer, request: AdmissionRequest, only: frozenset[_Key] | None = None
) -> Mutated:
    """Let the policies change the object. ``only``: those that are asked once more.

    Raises:
        StatusError: policies failed, and do not ignore that; or the object cannot be read.
    """
    denial, repeatable = _Denial(), set[_Key]()
    policies = list(applied(server, POLICIES, request))
    for policy in policies:
        if policy.problem:
            denial.add(policy, policy.problem, "Forbidden")
    for policy in policies:
        if not policy.problem:
            before = request
            request = _changed(server, policy, request, denial, only)
            if request is not before and policy.spec.get("reinvocationPolicy") == "IfNeeded":
                repeatable.add(_key(policy))
    refusal = denial.status(request)
    if refusal is not None:
        raise refusal
    return Mutated(request, frozenset(repeatable))


def _key(policy: Applied) -> _Key:
    binding, params = policy.binding or {}, policy.params or {}
    meta = params.get("metadata") or {}
    bound = binding.get("metadata") or {}
    return (
        name_of(policy.policy),
        bound.get("name", ""),
        meta.get("namespace", ""),
        meta.get("name", ""),
    )


def _changed(
    server: AdmissionServer,
    policy: Applied,
    request: AdmissionRequest,
    denial: _Denial,
    only: frozenset[_Key] | None,
) -> AdmissionRequest:
    """The request after one policy; the same object if the policy was not asked."""
    shown = in_version(server, request, policy.version)
    names = names_of(server, shown, policy.params, policy.spec.get("variables") or ())
    try:
        if not conditions_hold(names, policy.spec.get("matchConditions") or ()):
            return request
    except Failed as error:
        denial.add(policy, str(error))
        return request
    if only is not None and _key(policy) not in only:
        return request
    for mutation in policy.spec.get("mutations") or ():
        try:
            shown = _mutated(server, mutation, names, shown)
        except (Failed, _Unapplied) as error:
            denial.add(policy, str(error))
        names.see(shown.obj)
    return replace(in_version(server, shown, request.version))


def _mutated(
    server: AdmissionServer, mutation: Object, names: Names, request: AdmissionRequest
) -> AdmissionRequest:
    before, is_patch = request.obj or {}, mutation["patchType"] == "JSONPatch"
    source = mutation["jsonPatch" if is_patch else "applyConfiguration"]["expression"]
    patch = names.value(source)
    if problem := type_mismatch(source):
        raise _Unapplied(problem)
    if is_patch:
        obj = _patched(before, patch)
        return request.with_object(as_read(server, request, obj, strict=True))
    if not isinstance(patch, dict):
        raise _Unapplied("error applying patch: the value is no object")
    obj = _applied(server, before, patch, request)
    return request.with_object(as_read(server, request, obj))


def _patched(obj: Object, operations: Any) -> Object:
    if not isinstance(operations, list) or not all(
        isinstance(operation, dict) for operation in operations
    ):
        raise _Unapplied("JSON Patch: the value is no list of operations")
    try:
        return patched(obj, [{"op": "", "path": "", **operation} for operation in operations])
    except PatchError as error:
        raise _Unapplied(f"JSON Patch: {error}") from None


def patched(obj: Object, operations: Any) -> Object:
    """The object with a JSON patch. A test that fails leaves it unchanged.

    Raises:
        PatchError
    """
    try:
        return json_patch(obj, list(operations))
    except FailedTest:
        return obj


def _applied(
    server: AdmissionServer, obj: Object, patch: Object, request: AdmissionRequest
) -> Object:
    shape = request.shape
    schema = server.schemas.find(shape.group, shape.version, shape.kind) or ANY
    patch = {**patch, "apiVersion": obj.get("apiVersion"), "kind": obj.get("kind")}
    if atomic := list(_atomic(schema, patch, "")):
        paths = ", ".join(sorted(atomic))
        raise _Unapplied(f"error applying patch: invalid ApplyConfiguration: {_ATOMIC}: {paths}")
    if problem := typed_problem(schema, patch):
        text = f"failed to convert patch object to typed object: {problem}"
        raise _Unapplied(f"error applying patch: {text}")
    merged: Object = merge(schema, decode(encode(obj)), patch)
    return merged


def _atomic(schema: Schema, value: Json, path: str) -> Iterator[str]:
    """The paths of values that a patch could only replace as a whole."""
    if isinstance(value, dict):
        if schema.atomic:
            yield path
            return
        for key, item in value.items():
            yield from _atomic(schema.field(key) or ANY, item, f"{path}.{key}")
    elif isinstance(value, list):
        if schema.type == "array" and schema.list_type == "atomic":
            yield path
            return
        for index, item in enumerate(value):
            yield from _atomic(schema.items or ANY, item, f"{path}[{index}]")


def as_read(
    server: AdmissionServer,
    request: AdmissionRequest,
    obj: Mapping[str, Any],
    *,
    strict: bool = False,
) -> Object:
    """A changed object as the decoder reads it. ``strict``: no field may be unknown.

    Raises:
        StatusError: 500, a field has a wrong type, or is unknown.
    """
    read: Object = decode(encode(dict(obj)))
    if request.shape.kind != request.kind.kind:
        return read
    try:
        unknown = server.decoder.clean(request.kind, request.version, read)
    except StatusError as error:
        _, _, why = error.message.partition(" cannot be handled as a ")
        raise internal_error(why.partition(": ")[2] or error.message) from None
    if unknown and strict and not request.kind.custom:
        raise internal_error(f"strict decoding error: {', '.join(unknown)}")
    return read
