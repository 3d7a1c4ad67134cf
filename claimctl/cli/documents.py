"""The base of what commands print with ``-o json`` and ``-o yaml``.

A command builds a document and prints it. The JSON Schema of a kind comes from the same struct:
``python -m claimctl.commands.schemas KIND`` prints it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypeVar

import msgspec

T = TypeVar("T")

API_VERSION = "cli.claimctl.io/v1alpha1"
Names = tuple[str, ...]


class Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of a document. Every field is printed, and nothing else."""


class Document(Part, frozen=True, tag_field="kind", tag=lambda name: name):
    """A document. Its ``kind`` is the name of the class."""


class ReasonText(Part, frozen=True):
    """A reason with a sentence."""

    reason: str
    message: str


class ReasonToWait(ReasonText, frozen=True):
    """Why something cannot be done now."""

    after: Annotated[float | None, msgspec.Meta(description="if time alone ends it")] = (
        msgspec.field(name="afterSeconds", default=None)
    )


def says(text: str) -> msgspec.Meta:
    """The description of a field in the schema."""
    return msgspec.Meta(description=text)


def by_names(value: object, model: type[T]) -> T:
    """The parts of a document whose fields are named like the attributes of ``value``."""
    return msgspec.convert(value, model, from_attributes=True)


def utc(at: datetime | None) -> str | None:
    """A time as Kubernetes writes it."""
    return f"{at:%Y-%m-%dT%H:%M:%SZ}" if at is not None else None


def plain(document: Document) -> dict[str, Any]:
    """The document as plain JSON."""
    return {"apiVersion": API_VERSION, **msgspec.to_builtins(document)}


def kind_of(model: type[Document]) -> str:
    return str(model.__struct_config__.tag)


def schema(model: type[Document]) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a kind."""
    made = msgspec.json.schema(model)
    root = made["$defs"][made["$ref"].rpartition("/")[2]]
    root["properties"] = {"apiVersion": {"const": API_VERSION}, **root["properties"]}
    root["required"] = ["apiVersion", *root["required"]]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}
