"""OpenAPI v2, as clients ask for it that are older than v3: made from the documents of v3.

Only definitions are there, and no paths. Kubernetes writes them without defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Json = dict[str, Any]
_V3, _V2 = "#/components/schemas/", "#/definitions/"
_LATER = ("default",)


def swagger(components: Iterable[Mapping[str, Json]], version: tuple[int, int]) -> Json:
    """The document of a server that has these schemas.

    Args:
        components: the schemas of each document of v3, by their names.
        version: of Kubernetes.
    """
    major, minor = version
    definitions = {name: schema for part in components for name, schema in part.items()}
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": f"v{major}.{minor}"},
        "paths": {},
        "definitions": {name: _older(definitions[name]) for name in sorted(definitions)},
    }


def _older(schema: Json) -> Json:
    older = {key: value for key, value in schema.items() if key not in _LATER}
    if "oneOf" in older:
        # a choice of types is a string there
        del older["oneOf"]
        older["type"] = "string"
    if "allOf" in older:
        [referred] = older.pop("allOf")
        older |= referred
    if "$ref" in older:
        older["$ref"] = older["$ref"].replace(_V3, _V2)
    for key in ("items", "additionalProperties"):
        if isinstance(older.get(key), dict):
            older[key] = _older(older[key])
    if "properties" in older:
        older["properties"] = {key: _older(below) for key, below in older["properties"].items()}
    return older
