"""Parts of OpenAPI v3 documents in the form of v2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_CHOICES = ("allOf", "anyOf", "oneOf")
_OLD, _NEW = "#/components/schemas/", "#/definitions/"


def as_v2(node: Any) -> Any:
    """A schema, or schemas by name: with other references, and without a choice of types."""
    if isinstance(node, list):
        return [as_v2(each) for each in node]
    if not isinstance(node, dict):
        return node
    choices = {key for key in _CHOICES if isinstance(node.get(key), list)}
    found = {key: as_v2(value) for key, value in node.items() if key not in choices}
    for each in node["allOf"] if "allOf" in choices else ():
        found |= as_v2(each) if "$ref" in each else {}
    if "oneOf" in choices:
        found.setdefault("type", "string")
    if isinstance(node.get("$ref"), str):
        found["$ref"] = node["$ref"].replace(_OLD, _NEW)
    return found


def as_v2_paths(paths: Mapping[str, Any]) -> dict[str, Any]:
    """Paths, whose bodies are parameters in v2."""
    return {
        path: {verb: _operation(each) for verb, each in operations.items()}
        for path, operations in paths.items()
    }


def _operation(operation: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in operation.items() if key != "requestBody"}
    parameters = [_parameter(each) for each in operation.get("parameters") or ()]
    if "requestBody" in operation:
        schema = next(iter(operation["requestBody"]["content"].values()))["schema"]
        body = {"name": "body", "in": "body", "required": True, "schema": as_v2(schema)}
        parameters.append(body)
    answers = {
        code: {"description": each["description"], "schema": _answered(each)}
        for code, each in operation["responses"].items()
    }
    return {**found, "parameters": parameters, "responses": answers}


def _parameter(parameter: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in parameter.items() if key != "schema"}
    return {**kept, **parameter.get("schema", {})}


def _answered(answer: Mapping[str, Any]) -> Any:
    return as_v2(next(iter(answer["content"].values()))["schema"])
