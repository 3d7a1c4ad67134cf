"""Structs as structural schemas."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any

import pytest
from msgspec import field

from claimctl.wire.base import Wire
from claimctl.wire.limits import OPTIONAL, REQUIRED, limit
from claimctl.wire.meta import ObjectMeta
from claimctl_reschedule.shapes.records import atomic_list
from generate.crds import custom_resource_definitions
from generate.structural import structural_schema


class Inner(Wire, frozen=True, kw_only=True):
    """An inner
    object."""

    size: Annotated[int, limit(minimum=0)] = 0
    """How big it is."""


class Outer(Wire, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    without_default: Inner
    without_own_default: Annotated[str, REQUIRED] = ""
    described: Inner | None = None
    """Another description."""
    nullable: int | None = 60
    not_filled_in: Annotated[int, OPTIONAL] = 5
    mode: Annotated[str, limit(enum=["a"])] = "a"
    items: Annotated[tuple[Inner, ...], atomic_list(3)] = ()
    renamed: datetime | None = field(name="otherName", default=None)


def inner(description: str = "An inner object.") -> dict[str, Any]:
    size = {"description": "How big it is.", "type": "integer", "default": 0, "minimum": 0}
    return {"description": description, "type": "object", "properties": {"size": size}}


def test_a_struct_becomes_a_structural_schema() -> None:
    assert structural_schema(Outer) == {
        "type": "object",
        "required": ["withoutDefault", "withoutOwnDefault"],
        "properties": {
            "apiVersion": {
                "description": "The version of the schema of this object.",
                "type": "string",
            },
            "kind": {"description": "The kind of this object.", "type": "string"},
            "metadata": {"type": "object"},
            "withoutDefault": inner(),
            "withoutOwnDefault": {"type": "string"},
            "described": inner("Another description."),
            "nullable": {"type": "integer", "nullable": True, "default": 60},
            "notFilledIn": {"type": "integer"},
            "mode": {"type": "string", "default": "a", "enum": ["a"]},
            "items": {
                "type": "array",
                "items": inner(),
                "maxItems": 3,
                "x-kubernetes-list-type": "atomic",
            },
            "otherName": {"type": "string"},
        },
    }


class Mixed(Wire, frozen=True, kw_only=True):
    value: int | str


def test_a_field_of_two_types_is_refused() -> None:
    with pytest.raises(TypeError, match="no structural schema"):
        structural_schema(Mixed)


def nodes(schema: dict[str, Any], path: str = "") -> list[tuple[str, dict[str, Any]]]:
    found = [(path, schema)]
    for name, child in schema.get("properties", {}).items():
        found += nodes(child, f"{path}.{name}")
    if "items" in schema:
        found += nodes(schema["items"], f"{path}[]")
    return found


def test_every_node_of_the_definitions_is_structural_and_limited() -> None:
    definitions = custom_resource_definitions()
    assert len(definitions) == 4
    for crd in definitions:
        for path, node in nodes(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]):
            structural_and_limited(f"{crd['spec']['names']['kind']}{path}", node)


def structural_and_limited(path: str, node: dict[str, Any]) -> None:
    assert not node.keys() & {"$ref", "anyOf", "oneOf", "title", "const", "additionalProperties"}, (
        path
    )
    # the API server refuses a default that its own schema does not allow
    assert "null" not in json.dumps(node.get("default", "")), path
    match node["type"]:
        case "array":
            assert "maxItems" in node, path
            assert node["x-kubernetes-list-type"] in ("map", "set", "atomic"), path
            for key in node.get("x-kubernetes-list-map-keys", ()):
                assert key in node["items"]["required"], path
        case "string" if "enum" not in node and "format" not in node:
            described_by_server = node.get("description", "").startswith(
                ("The version", "The kind")
            )
            assert "maxLength" in node or described_by_server, path
        case "integer":
            assert node["minimum"] == 0, path
