"""The component schemas of an OpenAPI document, from the schema trees."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from kube_in_process.kinds.kind import Kind
from kube_in_process.schema.facts import FACTS
from kube_in_process.schema.registry import Schemas
from kube_in_process.schema.texts import TOLD
from kube_in_process.schema.tree import Schema

_MODEL = re.compile(r"^([A-Z][a-z]+)??V(\d+(?:(?:alpha|beta)\d+)?)(.+)$")
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_PACKAGES = {
    "apiextensions": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "apiregistration": "io.k8s.kube-aggregator.pkg.apis.apiregistration",
}
"""The packages of groups that are in a repository of their own."""
_PREFIX = "#/components/schemas/"
FORMATS: dict[str, tuple[str, dict[str, Any]]] = {
    "date-time": (f"{_META}.Time", {"type": "string", "format": "date-time"}),
    "micro-time": (f"{_META}.MicroTime", {"type": "string", "format": "date-time"}),
    "quantity": (
        "io.k8s.apimachinery.pkg.api.resource.Quantity",
        {"oneOf": [{"type": "string"}, {"type": "number"}]},
    ),
    "int-or-string": (
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    ),
}
_DEFAULTS: dict[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False}


class Components:
    """The schemas of one document. Each is added when another one refers to it."""

    def __init__(self, schemas: Schemas, group: str, version: str) -> None:
        self._schemas = schemas
        self._group = group
        self._version = version
        self._made: dict[str, dict[str, Any]] = {}

    def schemas(self) -> dict[str, Any]:
        return dict(sorted(self._made.items()))

    def add_kind(self, kind: Kind) -> str:
        """Add a kind and the schemas that it needs; return the reference to it."""
        gvk = {"group": kind.group, "version": self._version, "kind": kind.kind}
        raw = self._schemas.custom_raw(kind.group, self._version, kind.kind)
        if raw is not None:
            domain = ".".join(reversed(kind.group.split(".")))
            name = f"{domain}.{self._version}.{kind.kind}"
            self._made[name] = {**self._custom(raw), "x-kubernetes-group-version-kind": [gvk]}
            return f"{_PREFIX}{name}"
        schema = self._schemas.find(kind.group, self._version, kind.kind)
        if schema is None:
            name = f"io.k8s.api.{_family(kind.group)}.{self._version}.{kind.kind}"
            self._made[name] = {"type": "object"}
        else:
            name = self._define(schema)
        self._made[name]["x-kubernetes-group-version-kind"] = [gvk]
        return f"{_PREFIX}{name}"

    def _custom(self, raw: dict[str, Any]) -> dict[str, Any]:
        metadata = self._schemas.model("V1ObjectMeta")
        head = {
            "apiVersion": {"type": "string", "description": _API_VERSION},
            "kind": {"type": "string", "description": _KIND},
            "metadata": self._reference(metadata, "Standard object's metadata."),
        }
        return {**raw, "properties": {**head, **_without(raw.get("properties", {}), head)}}

    def _define(self, schema: Schema) -> str:
        name = self.name_of(schema.definition)
        if name not in self._made:
            definition: dict[str, Any] = {"type": "object"}
            self._made[name] = definition
            if schema.definition_text:
                definition["description"] = schema.definition_text
            if schema.required:
                definition["required"] = list(schema.required)
            if schema.properties:
                definition["properties"] = {
                    key: self._property(below, key in schema.required)
                    for key, below in schema.properties.items()
                }
            if schema.atomic:
                definition["x-kubernetes-map-type"] = "atomic"
        return name

    def _property(self, schema: Schema, required: bool) -> dict[str, Any]:
        node = self._node(schema)
        if required and schema.type in _DEFAULTS and "$ref" not in node and "allOf" not in node:
            node["default"] = _DEFAULTS[schema.type]
        return node

    def _node(self, schema: Schema) -> dict[str, Any]:
        if schema.type == "object" and schema.definition:
            return self._reference(schema, schema.description)
        if schema.format in FORMATS:
            return self._format(schema)
        node: dict[str, Any] = {"type": schema.type or "object"}
        if schema.description:
            node = {"description": schema.description, **node}
        if schema.format:
            node["format"] = schema.format
        if schema.enum:
            node["enum"] = list(schema.enum)
        if schema.type == "map" and schema.items is not None:
            node["type"] = "object"
            node["additionalProperties"] = self._item(schema.items)
        if schema.type == "array" and schema.items is not None:
            node["items"] = self._item(schema.items)
            node |= _list_extensions(schema)
        return node

    def _item(self, schema: Schema) -> dict[str, Any]:
        if schema.type == "object" and schema.definition:
            return {"$ref": f"{_PREFIX}{self._define(schema)}"}
        return self._property(schema, True)

    def _reference(self, schema: Schema, description: str) -> dict[str, Any]:
        reference = {"$ref": f"{_PREFIX}{self._define(schema)}"}
        return {"description": description, "allOf": [reference]} if description else reference

    def _format(self, schema: Schema) -> dict[str, Any]:
        name, definition = FORMATS[schema.format]
        if name in TOLD.texts:
            definition = {"description": TOLD.texts[name], **definition}
        self._made.setdefault(name, definition)
        reference = {"$ref": f"{_PREFIX}{name}"}
        if not schema.description:
            return reference
        return {"description": schema.description, "allOf": [reference]}

    def name_of(self, model: str) -> str:
        """The OpenAPI name of a client's model. A model of no known group belongs to this one."""
        match = _MODEL.match(model)
        if match is None:
            return model
        family, version, name = match.groups()
        if model in FACTS.meta_models:
            return f"{_META}.{name}"
        if family is None and self._group and model in _core_models(self._schemas):
            family = "core"
        group = family.lower() if family else _family(self._group)
        return f"{_PACKAGES.get(group, f'io.k8s.api.{group}')}.v{version}.{name}"


_API_VERSION = "APIVersion defines the versioned schema of this representation of an object."
_KIND = "Kind is a string value representing the REST resource this object represents."
_CORE_ROOTS = (
    "V1EventSource",
    "V1NodeSelector",
    "V1ObjectReference",
    "V1PersistentVolumeClaim",
    "V1PersistentVolumeSpec",
    "V1PodTemplateSpec",
    "V1SecretReference",
    "V1TopologySelectorTerm",
)


@lru_cache(maxsize=8)
def _core_models(schemas: Schemas) -> frozenset[str]:
    """Models of the core group that other groups use, too."""
    models: set[str] = set()
    waiting = [schemas.model(name) for name in _CORE_ROOTS]
    while waiting:
        schema = waiting.pop()
        if schema.definition:
            if schema.definition in models:
                continue
            models.add(schema.definition)
        waiting += schema.properties.values()
        if schema.items is not None:
            waiting.append(schema.items)
    return frozenset(models)


def _list_extensions(schema: Schema) -> dict[str, Any]:
    extensions: dict[str, Any] = {}
    if schema.list_keys:
        extensions["x-kubernetes-list-map-keys"] = list(schema.list_keys)
    extensions["x-kubernetes-list-type"] = schema.list_type
    if schema.merge_key:
        extensions["x-kubernetes-patch-merge-key"] = schema.merge_key
    if schema.patch_strategy:
        extensions["x-kubernetes-patch-strategy"] = schema.patch_strategy
    return extensions


def _family(group: str) -> str:
    return group.split(".")[0] or "core"


def _without(values: dict[str, Any], taken: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in taken}
