"""The differences between two objects, as paths of field sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kube_in_process.managed_fields.fieldset import (
    Fields,
    Path,
    insert,
    item_element,
    value_element,
)
from kube_in_process.schema.tree import ANY, Schema, keys_of

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
class FieldsDifference:
    """``taken`` are added or changed paths; ``removed`` are the roots of removed ones."""

    taken: list[Path] = field(default_factory=list)
    removed: list[Path] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.taken or self.removed)

    def without(self, ignored: Sequence[Path]) -> FieldsDifference:
        """The difference without paths at or below ``ignored``."""

        def left(paths: list[Path]) -> list[Path]:
            return [p for p in paths if not any(p[: len(path)] == path for path in ignored)]

        return FieldsDifference(left(self.taken), left(self.removed))


def difference(schema: Schema | None, old: Json, new: Json) -> FieldsDifference:
    """The changes of a write, except those of identity and bookkeeping."""
    differing = FieldsDifference()
    before, after = _owned(old), _owned(new)
    if "metadata" in before:
        # fields of the metadata are removed one by one, since some of them may be reset
        after.setdefault("metadata", {})
    _compare(schema or ANY, before, after, (), differing)
    return differing


def adds_unowned(live: Json, patch: Json) -> bool:
    """Whether a configuration changes a field without an owner, or has a null where nothing was."""
    before, given = live.get("metadata") or {}, patch.get("metadata") or {}
    compared = _NOT_OWNED - {"managedFields"}
    if any(before.get(key) != given[key] for key in given if key in compared):
        return True
    return _adds_null(live, patch)


def _adds_null(live: Json, patch: Json) -> bool:
    if not isinstance(live, dict) or not isinstance(patch, dict):
        return False
    return any(
        key not in live if value is None else key in live and _adds_null(live[key], value)
        for key, value in patch.items()
    )


def _owned(obj: Json) -> Json:
    """The object without fields that no manager owns."""
    shown = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
    metadata = obj.get("metadata") or {}
    owned = {key: value for key, value in metadata.items() if key not in _NOT_OWNED}
    shown.pop("metadata", None)
    return {"metadata": owned, **shown} if owned else shown


def _compare(schema: Schema, old: Json, new: Json, path: Path, differing: FieldsDifference) -> None:
    """Compare two values, of which either may be null."""
    if old == new:
        return
    kind = type(old if new is None else new)
    if type(old if old is not None else new) is not kind or _leaf(schema, old or new):
        differing.taken.append(path)
    elif kind is dict and (old or new):
        _compare_dicts(schema, old or {}, new or {}, path, differing)
    elif kind is list and (old or new):
        _compare_lists(schema, old or [], new or [], path, differing)
    else:
        differing.taken.append(path)


def _compare_dicts(
    schema: Schema,
    old: dict[str, Json],
    new: dict[str, Json],
    path: Path,
    differing: FieldsDifference,
) -> None:
    for key, value in new.items():
        below, where = schema.field(key) or ANY, (*path, f"f:{key}")
        if key in old or (key == "metadata" and not path):
            _compare(below, old.get(key), value, where, differing)
        elif value is not None:
            _add(below, value, where, differing.taken)
    differing.removed += [(*path, f"f:{key}") for key in old if key not in new]


def _compare_lists(
    schema: Schema, old: list[Json], new: list[Json], path: Path, differing: FieldsDifference
) -> None:
    """Compare keyed lists. If an item occurs more than once, only the item itself is owned."""
    items = schema.items or ANY
    before, after = grouped(schema, old), grouped(schema, new)
    for element, values in after.items():
        where, olds = (*path, element), before.get(element, [])
        if len(values) > 1:
            if len(olds) == 1:
                differing.removed.append(where)
            if olds != values:
                differing.taken.append(where)
        elif len(olds) == 1:
            _compare(items, olds[0], values[0], where, differing)
        else:
            if olds:
                differing.removed.append(where)
            _add(items, values[0], where, differing.taken)
    differing.removed += [(*path, element) for element in before if element not in after]


def _add(schema: Schema, value: Json, path: Path, taken: list[Path]) -> None:
    """Add the paths of a new value."""
    taken.append(path)
    if _leaf(schema, value) or not value:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            _add(schema.field(key) or ANY, item, (*path, f"f:{key}"), taken)
        return
    for element, values in grouped(schema, value).items():
        if len(values) > 1:
            taken.append((*path, element))
        else:
            _add(schema.items or ANY, values[0], (*path, element), taken)


def _leaf(schema: Schema, value: Json) -> bool:
    """Whether a value is owned as a whole. Unknown lists are, unknown objects are not."""
    if isinstance(value, dict):
        return schema.atomic
    if isinstance(value, list):
        return schema.type != "array" or schema.list_type == "atomic"
    return True


def grouped(schema: Schema, values: list[Json]) -> dict[str, list[Json]]:
    """The items of a keyed list by path element, in the order of their first occurrence."""
    groups: dict[str, list[Json]] = {}
    for item in values:
        groups.setdefault(element_of(schema, item), []).append(item)
    return groups


def element_of(schema: Schema, item: Json) -> str:
    """The path element of an item of a set or of a keyed list."""
    if schema.list_type == "set":
        return value_element(item)
    return item_element(keys_of(schema, item))


def declared(schema: Schema | None, patch: Json) -> Fields:
    """The set of fields in an applied configuration."""
    fields: Fields = {}
    _declare(schema or ANY, _owned(patch), (), fields)
    return fields


def _declare(schema: Schema, value: Json, path: Path, fields: Fields) -> None:
    if path and (_leaf(schema, value) or value == {}):
        insert(fields, path)
    elif isinstance(value, dict):
        for key, item in value.items():
            where = (*path, f"f:{key}")
            if schema.type == "map":
                insert(fields, where)
            _declare(schema.field(key) or ANY, item, where, fields)
    elif isinstance(value, list):
        for element, items in grouped(schema, value).items():
            insert(fields, (*path, element))
            _declare(schema.items or ANY, items[0], (*path, element), fields)
