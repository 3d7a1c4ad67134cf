"""Converts pydantic's JSON schemas to the structural schemas that CRDs need.

A structural schema has a type at every node and no $ref. An optional field is absent rather than
null; ``nullable`` is set only where null does not mean absent. See 'Specifying a structural schema'
in the Kubernetes documentation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

Json = dict[str, Any]

_DROPPED = frozenset({"title", "additionalProperties", "$defs"})
_FIRST = ("description", "type", "format", "nullable", "default", "enum")
_LAST = ("required", "properties", "items")
_SERVER_OWNED = {
    "apiVersion": "The version of the schema of this object.",
    "kind": "The kind of this object.",
}


def structural_schema(model: type[BaseModel]) -> Json:
    """The ``openAPIV3Schema`` of a kind. The API server knows the schema of the metadata."""
    document = model.model_json_schema(by_alias=True, mode="validation")
    root = _node(document, document.get("$defs", {}))
    for name, description in _SERVER_OWNED.items():
        root["properties"][name] = {"description": description, "type": "string"}
    root["properties"]["metadata"] = {"type": "object"}
    root["required"] = [name for name in root["required"] if name != "metadata"]
    return {key: value for key, value in root.items() if value != []}


def _node(raw: Mapping[str, Any], definitions: Mapping[str, Any]) -> Json:
    """One node as a structural schema allows it: no $ref, no union with null, no extra keys."""
    node = _resolved(raw, definitions)
    node = _without_null(node, definitions)
    if "const" in node:
        node["enum"] = [node.pop("const")]
    if "description" in node:
        node["description"] = " ".join(node["description"].split())
    if _is_empty_default(node.get("default")):
        node.pop("default", None)
    if "properties" in node:
        node["properties"] = {
            name: _node(child, definitions) for name, child in node["properties"].items()
        }
    if "items" in node:
        node["items"] = _node(node["items"], definitions)
    return _ordered({key: value for key, value in node.items() if key not in _DROPPED})


def _resolved(raw: Mapping[str, Any], definitions: Mapping[str, Any]) -> Json:
    """The node with its $ref replaced by the definition; keys beside the $ref win."""
    node = dict(raw)
    reference = node.pop("$ref", None)
    if reference is None:
        return node
    return {**definitions[reference.rpartition("/")[2]], **node}


def _without_null(node: Json, definitions: Mapping[str, Any]) -> Json:
    """``anyOf: [X, null]`` as X; nullable if there is a default, since null then means 'none'."""
    if "anyOf" not in node:
        return node
    branches = [branch for branch in node.pop("anyOf") if branch.get("type") != "null"]
    if len(branches) != 1:
        raise ValueError(f"not structural: more than one type in {node}")
    merged = {**_resolved(branches[0], definitions), **node}
    if merged.get("default") is not None:
        merged["nullable"] = True
    return merged


def _is_empty_default(default: object) -> bool:
    """Empty defaults mean the same as absence; false and 0 do not."""
    if isinstance(default, dict):
        return all(map(_is_empty_default, default.values()))
    return default is None or default in ("", [])


def _ordered(node: Json) -> Json:
    """The keys in a fixed order, so that the files do not change with pydantic's order."""
    order = [*_FIRST, *sorted(node.keys() - {*_FIRST, *_LAST}), *_LAST]
    return {key: node[key] for key in order if key in node}
