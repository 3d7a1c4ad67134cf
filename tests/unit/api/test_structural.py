"""The converter: what pydantic says in JSON schema, as structural schemas ask for it."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from claimctl.api import custom_resource_definitions
from claimctl.api.structural import structural_schema


class Inner(BaseModel):
    """An inner object."""

    size: Annotated[int, Field(ge=0)] = 0


class Outer(BaseModel):
    apiVersion: str = ""
    kind: str = ""
    metadata: dict[str, Any]
    required: Inner
    optional: Inner | None = None
    nullable: int | None = 60
    mode: Literal["a"] = "a"
    items: tuple[Inner, ...] = ()
    defaulted: Inner = Inner(size=0)


INNER = {
    "description": "An inner object.",
    "type": "object",
    "properties": {"size": {"type": "integer", "default": 0, "minimum": 0}},
}


def test_references_unions_and_empty_defaults_are_resolved() -> None:
    assert structural_schema(Outer) == {
        "type": "object",
        "required": ["required"],
        "properties": {
            "apiVersion": {
                "description": "The version of the schema of this object.",
                "type": "string",
            },
            "kind": {"description": "The kind of this object.", "type": "string"},
            "metadata": {"type": "object"},
            "required": INNER,
            "optional": INNER,
            "nullable": {"type": "integer", "nullable": True, "default": 60},
            "mode": {"type": "string", "default": "a", "enum": ["a"]},
            "items": {"type": "array", "items": INNER},
            "defaulted": {**INNER, "default": {"size": 0}},
        },
    }


def test_a_field_of_two_types_is_refused() -> None:
    class Mixed(BaseModel):
        metadata: dict[str, Any]
        value: int | str

    with pytest.raises(ValueError, match="more than one type"):
        structural_schema(Mixed)


def nodes(schema: dict[str, Any], path: str = "") -> list[tuple[str, dict[str, Any]]]:
    found = [(path, schema)]
    for name, child in schema.get("properties", {}).items():
        found += nodes(child, f"{path}.{name}")
    if "items" in schema:
        found += nodes(schema["items"], f"{path}[]")
    return found


ALL_NODES = [
    pytest.param(node, id=f"{crd['spec']['names']['kind']}{path}")
    for crd in custom_resource_definitions()
    for path, node in nodes(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
]


@pytest.mark.parametrize("node", ALL_NODES)
def test_every_node_of_the_definitions_is_structural_and_limited(node: dict[str, Any]) -> None:
    assert not node.keys() & {"$ref", "anyOf", "oneOf", "title", "const", "additionalProperties"}
    # the API server refuses a default that its own schema does not allow
    assert "null" not in json.dumps(node.get("default", ""))
    match node["type"]:
        case "array":
            assert "maxItems" in node
            assert node["x-kubernetes-list-type"] in ("map", "set", "atomic")
            for key in node.get("x-kubernetes-list-map-keys", ()):
                assert key in node["items"]["required"]
        case "string" if "enum" not in node and "format" not in node:
            described_by_server = node.get("description", "").startswith(
                ("The version", "The kind")
            )
            assert "maxLength" in node or described_by_server
        case "integer":
            assert node["minimum"] == 0
