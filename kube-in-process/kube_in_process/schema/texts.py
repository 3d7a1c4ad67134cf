"""What a server's OpenAPI documents say about fields, and the models of the client do not.

``openapi.json`` has it, as ``python -m judges openapi-record`` reads it from a server of v1.36. For
a field that is an object, the client has the description of that object. It has no values of enums,
and sorts the names of required fields.
"""

from __future__ import annotations

from dataclasses import dataclass

from kube_in_process.text.data import table


@dataclass(frozen=True, slots=True)
class Told:
    """Fields are named ``Model.jsonField``."""

    texts: dict[str, str]
    """Descriptions of fields and of models."""
    enums: dict[str, tuple[str, ...]]
    required: dict[str, tuple[str, ...]]
    """The required fields of models, in their order."""


TOLD = table(__package__, "openapi.json", Told)


def server_text(description: str) -> str:
    """The server's text of a client's description: two spaces are an empty line."""
    return description.replace("  ", "\n\n")
