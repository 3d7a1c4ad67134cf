"""Which fields of an object differ from another, as paths into field sets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from claimctl.embedded.managed_fields.fieldset import (
    Fields,
    Path,
    insert,
    item_element,
    value_element,
)
from claimctl.embedded.schema.tree import ANY, Schema

Json = Any

_NOT_OWNED = frozenset(
    {
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "generation",
        "managedFields",
        "resourceVersion",
    }
)


@dataclass(slots=True)
class Difference:
    """``taken`` are the paths that were added or changed; ``removed`` are roots of what went."""

    taken: list[Path] = field(default_factory=list)
    removed: list[Path] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.taken or self.removed)


def difference(schema: Schema | None, old: Json, new: Json) -> Difference:
    """What a write changed in an object, its identity and bookkeeping aside."""
    found = Difference()
    _compare(schema or ANY, _owned(old), _owned(new), (), found)
    return found


def _owned(obj: Json) -> Json:
    """The object without what nobody owns."""
    shown = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
    metadata = obj.get("metadata") or {}
    owned = {key: value for key, value in metadata.items() if key not in _NOT_OWNED}
    shown.pop("metadata", None)
    return {"metadata": owned, **shown} if owned else shown


def _compare(schema: Schema, old: Json, new: Json, path: Path, found: Difference) -> None:
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict) and not _leaf(schema, new):
        _compare_dicts(schema, old, new, path, found)
    elif isinstance(old, list) and isinstance(new, list) and not _leaf(schema, new):
        _compare_lists(schema, old, new, path, found)
    else:
        found.taken.append(path)


def _compare_dicts(
    schema: Schema, old: dict[str, Json], new: dict[str, Json], path: Path, found: Difference
) -> None:
    for key, value in new.items():
        below, where = schema.field(key) or ANY, (*path, f"f:{key}")
        before = old.get(key)
        if value is None:
            continue
        if before is None and key == "metadata" and not path:
            before = {}
        if before is None:
            _add(below, value, where, found.taken, implied=key in old)
        else:
            _compare(below, before, value, where, found)
    for key, value in old.items():
        if value is not None and new.get(key) is None:
            found.removed.append((*path, f"f:{key}"))


def _compare_lists(
    schema: Schema, old: list[Json], new: list[Json], path: Path, found: Difference
) -> None:
    items = schema.items or ANY
    before, after = elements(schema, old), elements(schema, new)
    for element, value in after.items():
        if element in before:
            _compare(items, before[element], value, (*path, element), found)
        else:
            _add(items, value, (*path, element), found.taken, implied=False)
    found.removed += [(*path, element) for element in before if element not in after]


def _add(schema: Schema, value: Json, path: Path, taken: list[Path], *, implied: bool) -> None:
    """Everything in a value that was not there; an implied one itself was."""
    if _leaf(schema, value) or not value:
        taken.append(path)
        return
    if not implied:
        taken.append(path)
    if isinstance(value, dict):
        for key, item in value.items():
            inner = schema.field(key) or ANY
            _add(inner, item, (*path, f"f:{key}"), taken, implied=False)
        return
    items = schema.items or ANY
    for element, item in elements(schema, value).items():
        _add(items, item, (*path, element), taken, implied=False)


def _leaf(schema: Schema, value: Json) -> bool:
    """Whether a value is owned as a whole; of unknown fields lists are, and objects are not."""
    if isinstance(value, dict):
        return schema.atomic
    if isinstance(value, list):
        return schema.type != "array" or schema.list_type == "atomic"
    return True


_KEY_DEFAULTS = {"protocol": "TCP"}
"""Keys of list items that need not be there (the ports of a container)."""


def elements(schema: Schema, values: list[Json]) -> dict[str, Json]:
    """The items of a keyed list by their path element."""
    if schema.list_type == "set":
        return {value_element(value): value for value in values}
    found = {}
    for item in values:
        keys = {
            key: item.get(key, _KEY_DEFAULTS.get(key))
            for key in schema.list_keys
            if key in item or key in _KEY_DEFAULTS
        }
        found[item_element(keys)] = item
    return found


def declared(schema: Schema | None, patch: Json) -> Fields:
    """The set of fields that an applied configuration names."""
    fields: Fields = {}
    _declare(schema or ANY, _owned(patch), (), fields)
    return fields


def _declare(schema: Schema, value: Json, path: Path, fields: Fields) -> None:
    if path and (_leaf(schema, value) or value == {}):
        insert(fields, path)
    elif isinstance(value, dict):
        for key, item in value.items():
            _declare(schema.field(key) or ANY, item, (*path, f"f:{key}"), fields)
    else:
        items = schema.items or ANY
        for element, item in elements(schema, value).items():
            insert(fields, (*path, element))
            _declare(items, item, (*path, element), fields)
