"""Strategic merge patch: a merge patch that merges keyed lists by item.

The keys are the patchMergeKey tags of the Go structs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kube_in_process.objects import Object
from kube_in_process.patch.json_patch import PatchError
from kube_in_process.schema.typed import go_value
from kube_in_process.text.data import table

Path = tuple[str, ...]

_KEYS = table(__package__, "merge_keys.json", dict[str, str])
"""Merge keys by field name. ``merge_key`` handles names with several meanings."""
_SETS = ("finalizers", "podCIDRs")


def merge_key(path: Path) -> str | None:
    """The key of the list of objects at a path; None if the list is replaced as a whole."""
    name = path[-1]
    parent = path[-2] if len(path) > 1 else ""
    if name == "ports":
        return "containerPort" if parent.endswith("ontainers") else "port"
    if name == "conditions" and parent == "devices":
        return None
    if name in ("resourceClaims", "imagePullSecrets") and parent != "spec":
        return None
    return _KEYS.get(name)


def strategic_patch(obj: Object, patch: Object) -> Object:
    """Apply a strategic merge patch to a whole object. Raises PatchError."""
    merged = strategic_merge(obj, patch)
    for kind, outer, inner in _REPLACED:
        given = (patch.get(outer) or {}) if isinstance(patch.get(outer), dict) else {}
        if obj.get("kind") == kind and isinstance(given.get(inner), dict):
            merged[outer] = {**merged[outer], inner: _without_nulls(given[inner])}
    return merged


_REPLACED = (("PodDisruptionBudget", "spec", "selector"),)
"""Objects below the spec that a patch replaces as a whole (patchStrategy replace)."""


def strategic_merge(target: Object, patch: Object, path: Path = ()) -> Object:
    """Apply the patch to a copy of the target.

    Raises:
        PatchError: an element of a keyed list comes without its key, or a directive is unknown.
    """
    directive = patch.get("$patch")
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise PatchError(f"unknown patch type: {directive}")
    merged = dict(target)
    for key, value in patch.items():
        if not key.startswith("$"):
            _merge_field(merged, patch, (*path, key), value)
    _lists_without_value(merged, patch, path)
    return _retained(merged, patch)


def _merge_field(merged: Object, patch: Object, path: Path, value: Any) -> None:
    key = path[-1]
    current = merged.get(key)
    if value is None:
        merged.pop(key, None)
    elif current is None and isinstance(value, list) and not any(map(_is_directed, value)):
        merged[key] = [_without_nulls(entry) for entry in value]
    elif isinstance(value, dict):
        merged[key] = strategic_merge(current if isinstance(current, dict) else {}, value, path)
    elif isinstance(value, list):
        merged[key] = _merge_list(current if isinstance(current, list) else [], patch, path, value)
    else:
        merged[key] = value


def _is_directed(value: Any) -> bool:
    return isinstance(value, dict) and "$patch" in value


def _without_nulls(value: Any) -> Any:
    """A new value: the patch without its nulls."""
    if isinstance(value, dict):
        return {k: _without_nulls(item) for k, item in value.items() if item is not None}
    return value


def _lists_without_value(merged: Object, patch: Object, path: Path) -> None:
    prefix = "$deleteFromPrimitiveList/"
    for directive, values in patch.items():
        if directive.startswith(prefix):
            key = directive.removeprefix(prefix)
            merged[key] = [entry for entry in merged.get(key) or [] if entry not in values]
    prefix = "$setElementOrder/"
    for directive, order in patch.items():
        key = directive.removeprefix(prefix)
        if directive.startswith(prefix) and isinstance(merged.get(key), list):
            merged[key] = _ordered(merged[key], order, merge_key((*path, key)))


def _retained(merged: Object, patch: Object) -> Object:
    keep = patch.get("$retainKeys")
    if keep is None:
        return merged
    return {key: value for key, value in merged.items() if key in keep}


def _merge_list(current: list[Any], patch: Object, path: Path, values: list[Any]) -> list[Any]:
    name = path[-1]
    key = merge_key(path)
    is_set = name in _SETS and path[-2:] != ("spec", "finalizers")
    if is_set and all(isinstance(value, str) for value in values):
        merged = list(dict.fromkeys([*current, *values]))
        return _placed(merged, current, values, lambda entry: entry)
    if key is None:
        return values
    if len({type(value) for value in (*current, *values)}) > 1:
        shown = f"[{go_value(current)} {go_value(values)}]"
        raise PatchError(f"list element types are not identical: {shown}")
    if not all(isinstance(value, dict) for value in values):
        return values
    return _merge_keyed(current, path, key, values, bool(patch.get(f"$setElementOrder/{name}")))


def _merge_keyed(
    current: list[Any], path: Path, key: str, values: list[Any], ordered: bool
) -> list[Any]:
    if any(value.get("$patch") == "replace" for value in values):
        return [value for value in values if "$patch" not in value]
    deleted = [value.get(key) for value in values if value.get("$patch") == "delete"]
    kept = [entry for entry in current if entry.get(key) not in deleted]
    by_key = {entry.get(key): index for index, entry in enumerate(kept)}
    for value in values:
        if value.get("$patch") == "delete":
            continue
        if key not in value:
            raise PatchError(f"map: {go_value(value)} does not contain declared merge key: {key}")
        if not isinstance(value[key], (str, int)):
            raise PatchError(f"map: {value} has no usable merge key: {key}")
        index = by_key.get(value[key])
        if index is None:
            by_key[value[key]] = len(kept)
            kept.append(strategic_merge({}, value, path))
        else:
            kept[index] = strategic_merge(kept[index], value, path)
    if ordered:
        return kept
    return _placed(kept, current, values, lambda entry: entry.get(key))


def _placed(
    merged: list[Any], current: list[Any], values: list[Any], name: Callable[[Any], Any]
) -> list[Any]:
    """The entries of a patch in its order. Each other entry comes before the first one that it
    preceded; the rest comes last."""
    before = {name(entry): place for place, entry in reversed(list(enumerate(current)))}
    wanted = {name(entry): place for place, entry in reversed(list(enumerate(values)))}
    named = sorted((m for m in merged if name(m) in wanted), key=lambda m: wanted[name(m)])
    others = [entry for entry in merged if name(entry) not in wanted]
    placed: list[Any] = []
    for entry in named:
        place = before.get(name(entry), -1)
        while others and before[name(others[0])] < place:
            placed.append(others.pop(0))
        placed.append(entry)
    return [*placed, *others]


def _ordered(values: list[Any], order: list[Any], key: str | None) -> list[Any]:
    names = [entry.get(key) if isinstance(entry, dict) and key else entry for entry in order]
    places = {name: place for place, name in enumerate(names) if isinstance(name, str | int)}

    def name_of(value: Any) -> Any:
        return value.get(key) if isinstance(value, dict) and key else value

    listed = sorted((v for v in values if name_of(v) in places), key=lambda v: places[name_of(v)])
    others = [value for value in values if name_of(value) not in places]
    return [*listed, *others]
