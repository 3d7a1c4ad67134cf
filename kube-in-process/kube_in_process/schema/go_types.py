"""Names of Go types in texts of the decoder and the converter."""

from __future__ import annotations

import re
from functools import cache

from kube_in_process.schema.facts import FACTS
from kube_in_process.schema.tree import Schema


class Place:
    """The place of a value: its Go struct, its model, and its path without indexes."""

    __slots__ = ("model", "path", "struct")

    def __init__(self, struct: str, path: str, model: str = "") -> None:
        self.struct = struct
        self.path = path
        self.model = model

    @property
    def field(self) -> str:
        """The field in the decoder's errors."""
        return f"struct field {self.struct}.{self.path}"

    @property
    def named(self) -> str:
        """The Go type of the field or list item, if its JSON type does not imply it."""
        return FACTS.go_types.get(f"{self.model}.{self.path.rpartition('.')[2]}", "")


_GO_SCALARS = {"string": "string", "boolean": "bool", "number": "float64"}


def go_type(schema: Schema) -> str:
    """The Go type of a field in texts of the decoder."""
    if schema.type == "array" and schema.items is not None:
        return f"[]{go_type(schema.items)}"
    if schema.type == "map" and schema.items is not None:
        return f"map[string]{go_type(schema.items)}"
    if schema.type == "integer":
        return schema.format or "int64"
    if schema.format == "byte":
        return "[]uint8"
    return _GO_SCALARS.get(schema.type) or f"{_package(schema)}.{go_name(schema.definition)}"


def _package(schema: Schema) -> str:
    """The package of a type: its version."""
    match = re.match(r"V1(alpha|beta)\d+", schema.definition)
    return match.group(0).lower() if match else "v1"


@cache
def go_name(definition: str) -> str:
    """The Go name of a client's model: DeviceRequest for V1DeviceRequest."""
    _, mark, name = definition.partition("V1")
    if not mark:
        return definition
    for prefix in ("alpha", "beta"):
        if name.startswith(prefix):
            return name[len(prefix) + 1 :]
    return name
