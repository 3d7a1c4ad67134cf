"""MutatingAdmissionPolicies: expressions change objects before they are checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kube_in_process.admission.expressions import Failed, Names, conditions_hold, names_of
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


def mutate(server: AdmissionServer, each: Applied, request: AdmissionRequest) -> AdmissionRequest:
    """The request with the object as one policy changes it.

    Raises:
        StatusError: the policy failed, and does not ignore that; or the object cannot be read.
    """
    try:
        return _changed(server, each, request)
    except _Unusable as error:
        if each.ignores_failures:
            return request
        raise _refusal(each, request, str(error), "Forbidden") from None
    except (Failed, Unapplied) as error:
        if each.ignores_failures:
            return request
        raise _refusal(each, request, str(error), "Invalid") from None


def policies(server: AdmissionServer, request: AdmissionRequest) -> Iterator[Applied]:
    return applied(server, POLICIES, request)


class _Unusable(Exception):
    """A policy or binding that cannot be used."""


class Unapplied(Exception):
    """A patch that does not fit the object."""


def _refusal(each: Applied, request: AdmissionRequest, why: str, reason: str) -> StatusError:
    """A 403. Its message does not name the object, unlike that of other plugins."""
    if each.binding is None:
        named = f'policy "{name_of(each.policy)}"'
    else:
        named = f"policy '{name_of(each.policy)}' with binding '{name_of(each.binding)}'"
    text = f"{named} denied request: {why}"
    details = request.subject.details(causes=[{"message": text}])
    return StatusError(403, reason, text, details)


def _changed(server: AdmissionServer, each: Applied, request: AdmissionRequest) -> AdmissionRequest:
    if each.problem:
        raise _Unusable(each.problem)
    shown = in_version(server, request, each.version)
    names = names_of(server, shown, each.params, each.spec.get("variables") or ())
    if not conditions_hold(names, each.spec.get("matchConditions") or ()):
        return request
    for mutation in each.spec.get("mutations") or ():
        obj = _mutated(server, mutation, names, shown)
        shown = shown.with_object(as_read(server, shown, obj))
        names.values["object"] = shown.obj
    return in_version(server, shown, request.version)


def _mutated(
    server: AdmissionServer, mutation: Object, names: Names, request: AdmissionRequest
) -> Object:
    before = request.obj or {}
    if mutation["patchType"] == "JSONPatch":
        operations = names.value(mutation["jsonPatch"]["expression"])
        return patched(before, operations, "JSON Patch: ")
    patch = names.value(mutation["applyConfiguration"]["expression"])
    if not isinstance(patch, dict):
        raise Unapplied("error applying patch: the value is no object")
    return _applied(server, before, patch, request)


def patched(obj: Object, operations: Any, prefix: str = "") -> Object:
    """The object with a JSON patch. A test that fails leaves it unchanged."""
    try:
        return json_patch(obj, list(operations))
    except FailedTest:
        return obj
    except (PatchError, TypeError) as error:
        raise Unapplied(f"{prefix}{error}") from None


def _applied(
    server: AdmissionServer, obj: Object, patch: Object, request: AdmissionRequest
) -> Object:
    shape = request.shape
    schema = server.schemas.find(shape.group, shape.version, shape.kind) or ANY
    patch = {**patch, "apiVersion": obj.get("apiVersion"), "kind": obj.get("kind")}
    if atomic := list(_atomic(schema, patch, "")):
        found = ", ".join(sorted(atomic))
        raise Unapplied(f"error applying patch: invalid ApplyConfiguration: {_ATOMIC}: {found}")
    if problem := typed_problem(schema, patch):
        text = f"failed to convert patch object to typed object: {problem}"
        raise Unapplied(f"error applying patch: {text}")
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


def as_read(server: AdmissionServer, request: AdmissionRequest, obj: Mapping[str, Any]) -> Object:
    """A changed object as the decoder reads it.

    Raises:
        StatusError: 500, a field has a wrong type.
    """
    read: Object = decode(encode(dict(obj)))
    if request.shape.kind != request.kind.kind:
        return read
    try:
        server.decoder.clean(request.kind, request.version, read)
    except StatusError as error:
        _, _, why = error.message.partition(" cannot be handled as a ")
        raise internal_error(why.partition(": ")[2] or error.message) from None
    return read
