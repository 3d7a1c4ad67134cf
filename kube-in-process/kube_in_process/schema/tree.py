"""Schema trees: the types, list keys and merge strategies of a kind's fields.

Built-in kinds come from ``builtin``, custom ones from their structural schema. The same
tree serves pruning, strategic merge, managed fields and the OpenAPI documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

Json = Any
"""A decoded JSON value; objects of the API are plain dicts."""


@dataclass(frozen=True)
class Schema:
    """One node of the tree.

    ``type`` is object, map, array, string, integer, number, boolean, or '' for any value. A map has
    arbitrary keys, and its values are ``items``. ``list_type`` is atomic, set or map; ``list_keys``
    are the keys of a map list. ``patch_strategy`` and ``merge_key`` are for strategic merge
    patches; they may differ from the list keys (a container's ports).
    """

    type: str = ""
    description: str = ""
    format: str = ""
    definition: str = ""
    """The name of an object's model."""
    definition_text: str = ""
    """The description of that model; ``description`` is that of the field."""
    items: Schema | None = None
    list_type: str = "atomic"
    list_keys: tuple[str, ...] = ()
    atomic: bool = False
    patch_strategy: str = ""
    merge_key: str = ""
    required: tuple[str, ...] = ()
    keeps_unknown: bool = False
    default: Json = None
    enum: tuple[str, ...] = ()
    """The values of a string, for documents: validation has its own lists."""
    load: Callable[[], Mapping[str, Schema]] = field(default=dict, repr=False)

    @cached_property
    def properties(self) -> Mapping[str, Schema]:
        """The declared fields, loaded on demand: some trees are endless."""
        return self.load()

    def field(self, name: str) -> Schema | None:
        """The schema of a field, or of a map's values."""
        if self.type == "map":
            return self.items
        return self.properties.get(name)


ANY = Schema(keeps_unknown=True)


def prune(schema: Schema, value: Json) -> list[str]:
    """Remove undeclared fields from ``value`` and return their paths."""
    unknown = list(_unknown(schema, value, ""))
    for _, owner, key in unknown:
        del owner[key]
    return [path for path, _, _ in unknown]


def _unknown(schema: Schema, value: Json, path: str) -> Iterator[tuple[str, dict[str, Json], str]]:
    if isinstance(value, list):
        if schema.items is not None:
            for index, item in enumerate(value):
                yield from _unknown(schema.items, item, f"{path}[{index}]")
    elif isinstance(value, dict):
        if schema.type in ("string", "integer", "number", "boolean"):
            # only for custom kinds: others have been refused
            yield from ((f"{path}.{key}", value, key) for key in value)
        yield from _unknown_keys(schema, value, path)


def _unknown_keys(
    schema: Schema, value: dict[str, Json], path: str
) -> Iterator[tuple[str, dict[str, Json], str]]:
    if schema.type == "map":
        if schema.items is not None and schema.items.type in ("object", "map", "array", ""):
            for key, item in value.items():
                yield from _unknown(schema.items, item, f"{path}.{key}" if path else key)
        return
    if schema.type != "object":
        return
    properties = schema.properties
    for key, item in value.items():
        below = f"{path}.{key}" if path else key
        declared = properties.get(key)
        if declared is not None:
            if isinstance(item, (dict, list)):
                yield from _unknown(declared, item, below)
        elif not schema.keeps_unknown:
            yield below, value, key


def keys_of(schema: Schema, item: Json) -> dict[str, Json]:
    """The keys of an item, with their defaults (``protocol`` of a container's port)."""
    keys: dict[str, Json] = {}
    for key in schema.list_keys:
        default = _key_default(schema.items or ANY, key)
        if key in item:
            keys[key] = item[key]
        elif default is not None:
            keys[key] = default
    return keys


def _key_default(items: Schema, key: str) -> Json:
    """The default of a missing key: a required field of a built-in kind has a zero value."""
    below = items.field(key)
    if below is None or below.default is not None:
        return None if below is None else below.default
    if items.definition and key in items.required:
        return {"string": "", "integer": 0}.get(below.type)
    return _KEY_DEFAULTS.get(key)


_KEY_DEFAULTS = {"protocol": "TCP"}
