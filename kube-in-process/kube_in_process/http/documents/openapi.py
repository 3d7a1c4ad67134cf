"""OpenAPI v3: an index and a document per group version, as far as kubectl needs them."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from kube_in_process.http.documents.openapi_schemas import Components
from kube_in_process.kinds.kind import Kind, Kinds
from kube_in_process.schema.registry import Schemas

_STRATEGIC = "application/strategic-merge-patch+json"
_PATCH_TYPES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    _STRATEGIC,
)
_JSON = "application/json"
_OTHERS = (".well-known/openid-configuration", "api", "apis", "openid/v1/jwks", "version")
_HEAD = {"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "unversioned"}}
_EMPTY = msgspec.json.encode({**_HEAD, "paths": {}})


class OpenApi:
    """Makes documents on demand, and again after a definition changed."""

    def __init__(self, kinds: Kinds, schemas: Schemas) -> None:
        self._kinds = kinds
        self._schemas = schemas
        self._made: dict[tuple[str, int], bytes] = {}

    def index(self) -> dict[str, Any]:
        """The paths of the documents, each with a hash that changes with the document."""
        hashes = {name: self._hash(name, "") for name in self._without_kinds()}
        for group in self._kinds.groups():
            for version in self._kinds.versions(group):
                name = f"apis/{group}/{version}" if group else f"api/{version}"
                hashes[name] = self._hash(group, version)
        urls = {name: f"/openapi/v3/{name}?hash={value}" for name, value in hashes.items()}
        return {"paths": {name: {"serverRelativeURL": url} for name, url in urls.items()}}

    def _without_kinds(self) -> list[str]:
        """Names of documents without objects. Custom groups have none."""
        groups = {kind.group for kind in self._kinds if kind.group and not kind.custom}
        return [*_OTHERS, *(f"apis/{group}" for group in sorted(groups))]

    def _hash(self, group: str, version: str) -> str:
        """The hash of a document's sources. To make each document for its hash would be slow."""
        parts = [self._schemas.state(), group, version]
        parts += [kind.plural for kind in self._served(group, version)]
        return hashlib.sha256(repr(parts).encode()).hexdigest().upper()

    def _served(self, group: str, version: str) -> list[Kind]:
        return [k for k in self._kinds if k.group == group and version in k.versions]

    def document(self, name: str) -> bytes | None:
        """The document ``api/v1`` or ``apis/<group>/<version>``, or None."""
        if name in self._without_kinds():
            return _EMPTY
        parts = name.strip("/").split("/")
        if parts[0] == "api" and len(parts) == 2:
            group, version = "", parts[1]
        elif parts[0] == "apis" and len(parts) == 3:
            group, version = parts[1], parts[2]
        else:
            return None
        kinds = self._served(group, version)
        if not kinds:
            return None
        key = (name, hash((self._schemas.state(), *(kind.plural for kind in kinds))))
        if key not in self._made:
            self._made[key] = msgspec.json.encode(self._make(kinds, group, version))
        return self._made[key]

    def _make(self, kinds: list[Kind], group: str, version: str) -> dict[str, Any]:
        components = Components(self._schemas, group, version)
        paths: dict[str, Any] = {}
        for kind in kinds:
            reference = components.add_kind(kind)
            paths |= _paths(kind, version, reference)
        return {**_HEAD, "paths": paths, "components": {"schemas": components.schemas()}}


def _paths(kind: Kind, version: str, reference: str) -> dict[str, Any]:
    root = f"/apis/{kind.group}/{version}" if kind.group else f"/api/{version}"
    scope = "/namespaces/{namespace}" if kind.namespaced else ""
    collection = f"{root}{scope}/{kind.plural}"
    one = f"{collection}/{{name}}"
    gvk = {"group": kind.group, "version": version, "kind": kind.kind}
    paths = {collection: _operations(kind, gvk, reference, {"get": "list", "post": "create"})}
    if "get" in kind.verbs:
        verbs = {"get": "get", "put": "update", "patch": "patch", "delete": "delete"}
        paths[one] = _operations(kind, gvk, reference, verbs)
    if "status" in kind.subresources:
        verbs = {"get": "get", "put": "update", "patch": "patch"}
        paths[f"{one}/status"] = _operations(kind, gvk, reference, verbs)
    return paths


def _operations(
    kind: Kind, gvk: dict[str, str], reference: str, verbs: dict[str, str]
) -> dict[str, Any]:
    return {
        method: _operation(kind, gvk, reference, verb)
        for method, verb in verbs.items()
        if verb in kind.verbs
    }


def _operation(kind: Kind, gvk: dict[str, str], reference: str, verb: str) -> dict[str, Any]:
    content = {_JSON: {"schema": {"$ref": reference}}}
    action = {"get": "get", "list": "list", "update": "put", "create": "post"}.get(verb, verb)
    operation: dict[str, Any] = {
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": gvk,
        "responses": {"200": {"description": "OK", "content": content}},
    }
    if verb in ("create", "update", "patch"):
        operation["parameters"] = _WRITE_PARAMETERS
        operation["requestBody"] = {"content": _bodies(kind, verb, content), "required": True}
    if verb == "delete":
        operation["parameters"] = _WRITE_PARAMETERS[:1]
    return operation


def _bodies(kind: Kind, verb: str, content: dict[str, Any]) -> dict[str, Any]:
    if verb != "patch":
        return content
    types = [one for one in _PATCH_TYPES if not (kind.custom and one == _STRATEGIC)]
    return {one: {"schema": {"type": "object"}} for one in types}


def _parameter(name: str, description: str, schema: str = "string") -> dict[str, Any]:
    return {
        "name": name,
        "in": "query",
        "description": description,
        "schema": {"type": schema, "uniqueItems": True},
    }


_WRITE_PARAMETERS = (
    _parameter("dryRun", "All: nothing is stored."),
    _parameter("fieldManager", "Name under which fields are owned."),
    _parameter("fieldValidation", "Ignore, Warn or Strict: what to do about unknown fields."),
    _parameter("force", "Take fields over from other appliers.", "boolean"),
)
