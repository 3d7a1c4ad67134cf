"""Schemas of custom kinds, from the structural schemas of CustomResourceDefinitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kube_in_process.schema.tree import ANY, Json, Schema


def structural(raw: Mapping[str, Json], metadata: Schema) -> Schema:
    """The tree of a version's ``openAPIV3Schema``; ``metadata`` is the schema of all metadata."""
    root = node(raw)

    def load() -> Mapping[str, Schema]:
        return {
            **root.properties,
            "apiVersion": Schema(type="string"),
            "kind": Schema(type="string"),
            "metadata": metadata,
        }

    return Schema(
        type="object",
        description=root.description,
        required=root.required,
        keeps_unknown=root.keeps_unknown,
        load=load,
    )


def node(raw: Mapping[str, Json]) -> Schema:
    """One node. ``x-kubernetes-`` extensions define how lists and maps are merged."""
    kind = raw.get("type", "")
    shared: dict[str, Any] = {
        "description": raw.get("description", ""),
        "default": raw.get("default"),
        "keeps_unknown": bool(raw.get("x-kubernetes-preserve-unknown-fields")),
        "atomic": raw.get("x-kubernetes-map-type") == "atomic",
        "required": tuple(raw.get("required", ())),
    }
    if raw.get("x-kubernetes-int-or-string"):
        return Schema(format="int-or-string", **shared)
    if kind == "array":
        return _array(raw, shared)
    if kind == "object":
        return _object(raw, shared)
    return Schema(type=kind, format=raw.get("format", ""), **shared)


def _array(raw: Mapping[str, Json], shared: dict[str, Any]) -> Schema:
    list_type = raw.get("x-kubernetes-list-type", "atomic")
    return Schema(
        type="array",
        items=node(raw.get("items", {})),
        list_type=list_type,
        list_keys=tuple(raw.get("x-kubernetes-list-map-keys", ())),
        **{**shared, "atomic": list_type == "atomic"},
    )


def _object(raw: Mapping[str, Json], shared: dict[str, Any]) -> Schema:
    additional = raw.get("additionalProperties")
    if additional:
        items = node(additional) if isinstance(additional, dict) else ANY
        return Schema(type="map", items=items, **shared)
    properties = raw.get("properties", {})
    return Schema(
        type="object",
        load=lambda: {name: node(below) for name, below in properties.items()},
        **shared,
    )
