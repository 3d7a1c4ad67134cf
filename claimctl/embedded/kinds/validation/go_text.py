"""How Go's structs look in errors that quote them: field names of the internal types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from claimctl.embedded.errors import quoted
from claimctl.embedded.text.data import table

Struct = Mapping[str, "Struct | str | int | None"]
"""Go names of a struct's fields in order, each with the struct below it, with its zero value, or
with None where it is null when it is not set."""

STRUCTS = table(__package__, "go_structs.json", dict[str, dict[str, Any]])
"""The structs that errors quote, by the names that the validation gives them."""


def go_text(value: Any, struct: Struct | str | int | None) -> str:
    """A value of the API as Go shows the internal struct; what is not set is null or zero."""
    if isinstance(struct, (str, int)):
        return quoted(struct if value is None else value)
    if struct is None or value is None:
        return quoted(value)
    if isinstance(value, list):
        return f"[{','.join(go_text(each, struct) for each in value)}]"
    fields = []
    for name, below in struct.items():
        fields.append(f'"{name}":{go_text(value.get(_wire_name(name)), below)}')
    return f"{{{','.join(fields)}}}"


def _wire_name(name: str) -> str:
    if name.isupper():
        return name.lower()
    return name[0].lower() + name[1:]
