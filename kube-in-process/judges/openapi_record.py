"""Records what the OpenAPI documents of a real server say about fields, beyond the client."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kube_in_process.http.documents.openapi_schemas import FORMATS, Components
from kube_in_process.kinds.builtin import builtin_kinds
from kube_in_process.kinds.kind import Kind
from kube_in_process.options import Features
from kube_in_process.real.servers.plane import ControlPlane
from kube_in_process.real.transport import HttpTransport
from kube_in_process.schema import texts
from kube_in_process.schema.models import Model, model_names, recorded_model
from kube_in_process.schema.registry import Schemas
from kube_in_process.schema.texts import server_text
from kube_in_process.schema.tree import Schema

from judges.asking import record

FILE = Path(texts.__file__).with_name("openapi.json")
Document = Mapping[str, Any]
_TYPE = re.compile(r"\w+(?=\]*$)")


def main(arguments: Sequence[str]) -> int:
    return record(arguments, "openapi-record", __doc__, _documents, _keep)


def _keep(documents: dict[str, Document], _: str) -> str:
    recording = recorded(documents)
    FILE.write_text(json.dumps(recording, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
    return ", ".join(f"{len(values)} {name}" for name, values in recording.items())


async def _documents(plane: ControlPlane) -> dict[str, Document]:
    """The document of each path."""
    async with HttpTransport(plane.files.access) as transport:

        async def read(path: str) -> Document:
            response = await transport.send("GET", path, (), {}, None)
            document: Document = json.loads(b"".join([part async for part in response.body]))
            return document

        paths = (await read("/openapi/v3"))["paths"]
        return {path: await read(f"/openapi/v3/{path}") for path in sorted(paths)}


@dataclass(slots=True)
class _Recording:
    texts: dict[str, str] = field(default_factory=dict)
    enums: dict[str, list[str]] = field(default_factory=dict)
    required: dict[str, list[str]] = field(default_factory=dict)


def recorded(documents: Mapping[str, Document]) -> dict[str, dict[str, Any]]:
    """What the documents say otherwise than the client, by the names of its models."""
    features = Features()
    recording, schemas = _Recording(), Schemas(lambda: features)
    for kind in builtin_kinds(features):
        for version in kind.versions:
            path = f"apis/{kind.group}/{version}" if kind.group else f"api/{version}"
            if path in documents:
                defined = documents[path]["components"]["schemas"]
                _compare(recording, schemas, kind, version, defined)
                for name, _ in FORMATS.values():
                    if name in defined:
                        recording.texts[name] = defined[name]["description"]
    return {
        "texts": dict(sorted(recording.texts.items())),
        "enums": dict(sorted(recording.enums.items())),
        "required": dict(sorted(recording.required.items())),
    }


def _compare(
    recording: _Recording, schemas: Schemas, kind: Kind, version: str, defined: Document
) -> None:
    names = Components(schemas, kind.group, version)
    for name in _models_of(schemas.find(kind.group, version, kind.kind)):
        definition = defined.get(names.name_of(name))
        if definition is not None and name in model_names():
            _compare_model(recording, name, recorded_model(name), definition)


def _models_of(root: Schema | None) -> Iterator[str]:
    waiting, seen = [root] if root else [], set()
    while waiting:
        schema = waiting.pop()
        if schema.items is not None:
            waiting.append(schema.items)
        if schema.definition and schema.definition not in seen:
            seen.add(schema.definition)
            waiting += schema.properties.values()
            yield schema.definition


def _compare_model(recording: _Recording, name: str, model: Model, definition: Document) -> None:
    if (text := definition.get("description", "")) != server_text(model.description):
        recording.texts[name] = text
    required = definition.get("required", [])
    if required != [key for key in model.fields if key in model.required]:
        recording.required[name] = required
    for key, schema in definition.get("properties", {}).items():
        if key not in model.fields:
            continue
        if (text := schema.get("description", "")) != _text_of_client(*model.fields[key]):
            recording.texts[f"{name}.{key}"] = text
        if enum := schema.get("enum") or schema.get("items", {}).get("enum"):
            recording.enums[f"{name}.{key}"] = enum


def _text_of_client(type_name: str, text: str) -> str:
    """The description of a field, or of the object that it is."""
    named = _TYPE.search(type_name)
    if not text and named is not None and named[0] in model_names():
        text = recorded_model(named[0]).description
    return server_text(text)
