"""The text of Go structs in errors: they have the field names of internal types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kube_in_process.errors import quoted
from kube_in_process.text.data import table

Struct = Mapping[str, "Struct | str | int | None"]
"""The Go names of a struct's fields in order. Each has the struct below it, its zero value, or None
if it is null when it is not set."""

STRUCTS = table(__package__, "go_structs.json", dict[str, dict[str, Any]])
"""Structs that errors print, by the names that the validation uses."""


def go_text(value: Any, struct: Struct | str | int | None) -> str:
    """A value as Go prints the internal struct. Fields that are not set are null or zero."""
    if isinstance(struct, (str, int)):
        return quoted(struct if value is None else value)
    if struct is None or value is None:
        return quoted(value)
    if isinstance(value, list):
        return f"[{','.join(go_text(item, struct) for item in value)}]"
    fields = []
    for name, below in struct.items():
        fields.append(f'"{name}":{go_text(value.get(_wire_name(name)), below)}')
    return f"{{{','.join(fields)}}}"


def _wire_name(name: str) -> str:
    if name.isupper():
        return name.lower()
    return name[0].lower() + name[1:]
