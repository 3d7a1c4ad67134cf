"""Server-side apply: merge a configuration, and remove fields that it no longer has."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from types import NoneType

from kube_in_process.errors import (
    StatusError,
    Subject,
    bad_request,
    conflict,
    invalid,
    required,
)
from kube_in_process.kinds.kind import Kind
from kube_in_process.managed_fields import last_applied
from kube_in_process.managed_fields.comparing import (
    FieldsDifference,
    adds_unowned,
    declared,
    difference,
    element_of,
    grouped,
)
from kube_in_process.managed_fields.fieldset import (
    Fields,
    Path,
    contains,
    covers,
    drop,
    members,
    shown,
)
from kube_in_process.managed_fields.managers import (
    Entry,
    Manager,
    entries_of,
    entry_of,
    in_order,
    owned_by,
    reset_fields,
    unwritten,
    without,
)
from kube_in_process.objects import Object
from kube_in_process.schema.registry import Schemas
from kube_in_process.schema.tree import ANY, Json, Schema
from kube_in_process.schema.typed import typed_problem


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """A server-side apply. ``old`` is None if the object does not exist."""

    kind: Kind
    version: str
    old: Object | None
    patch: Object
    manager: str
    force: bool
    subresource: str
    time: str


class Applier:
    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas

    def apply(self, request: ApplyRequest) -> Object:
        """The merged object with metadata.managedFields.

        Raises:
            StatusError: 400 for managedFields or no type in the patch, 409 for conflicts with
                other managers, 500 for fields that the schema does not have.
        """
        kind = request.kind
        schema = self._schemas.find(kind.group, request.version, kind.kind)
        _check(request, schema)
        patch = copy.deepcopy(request.patch)
        fields = declared(schema, patch)
        reset = reset_fields(request.kind, request.subresource, self._schemas.version)
        for path in reset:
            drop(fields, path)
        old = request.old
        live = {"metadata": {}} if old is None else old
        entries = self._entries(request, schema, reset)
        own = next((e for e in entries if Manager.of(e) == _manager(request)), None)
        others = [entry for entry in entries if entry is not own]
        merged: Object = merge(schema or ANY, live, patch)
        merged["metadata"] = dict(merged["metadata"] or {})
        if own is not None:
            owned = [fields, *(entry.get("fieldsV1") or {} for entry in others)]
            give_up(schema or ANY, merged, own["fieldsV1"], owned)
        merged["metadata"].pop("managedFields", None)
        change = difference(schema, live, merged).without(reset)
        ours = request.manager == last_applied.MANAGER
        allowed = last_applied.applied_before(schema, live) if ours else {}
        _refuse_conflicts(request, others, change, allowed)
        if not change and old is not None:
            merged = {**live, "metadata": merged["metadata"]}
        kept = without(others, change)
        changed = bool(change) or adds_unowned(live, patch)
        entry = _entry(request, fields, own, changed=changed)
        merged["metadata"]["managedFields"] = in_order([*kept, entry])
        if ours:
            last_applied.bring_up_to_date(merged, patch)
        return merged

    def _entries(
        self, request: ApplyRequest, schema: Schema | None, reset: tuple[Path, ...]
    ) -> list[Entry]:
        """The old entries. In an object without any, one manager gets all fields."""
        if request.old is None:
            return []
        entries = entries_of(request.old)
        if entries:
            return entries
        content = difference(schema, unwritten(request.kind, schema), request.old)
        version = request.kind.api_version(request.version)
        manager = Manager("before-first-apply", "Update", version, request.subresource)
        return owned_by(manager, content.without(reset), request.time)


def _manager(request: ApplyRequest) -> Manager:
    return Manager(request.manager, "Apply", "", request.subresource)


def _entry(request: ApplyRequest, fields: Fields, own: Entry | None, *, changed: bool) -> Entry:
    """The entry of the apply. It keeps its time if the object does not change."""
    time = request.time if changed else (own or {}).get("time", "")
    version = request.kind.api_version(request.version)
    return entry_of(_manager(request), version, fields, time)


def _check(request: ApplyRequest, schema: Schema | None) -> None:
    patch, kind = request.patch, request.kind
    if not request.manager:
        missing = required("fieldManager", "is required for apply patch")
        raise invalid(Subject("meta.k8s.io", "PatchOptions"), [missing])
    version = kind.api_version(request.version)
    if not patch.get("kind") or not patch.get("apiVersion"):
        group, _, short = (patch.get("apiVersion") or "").rpartition("/")
        raise bad_request(f"invalid object type: {group}/{short}, Kind={patch.get('kind') or ''}")
    given = patch.get("metadata")
    metadata = given if isinstance(given, dict) else {}
    if metadata.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    name = metadata.get("name")
    name = name if isinstance(name, str) else ""
    if request.old is None and metadata.get("uid"):
        why = (
            f"uid mismatch: the provided object specified uid {metadata['uid']}, and no existing "
            "object was found"
        )
        raise conflict(Subject(kind.group, kind.plural, name), why)
    problem = typed_problem(schema, patch) if schema is not None else ""
    if problem:
        group, _, short = version.rpartition("/")
        what = f"{metadata.get('namespace', '')}/{name}; {group}/{short}, Kind={kind.kind}"
        text = f"failed to create typed patch object ({what}): {problem}"
        raise StatusError(500, "", text)


def merge(schema: Schema, live: Json, patch: Json) -> Json:
    """``live`` with ``patch`` merged into it; both stay unchanged.

    A null replaces a value, but not a non-empty map or keyed list.
    """
    if isinstance(live, dict) and isinstance(patch, (dict, NoneType)) and not schema.atomic:
        if patch is None:
            return dict(live) or None
        merged = dict(live)
        for key, value in patch.items():
            below = schema.field(key) or ANY
            merged[key] = merge(below, live.get(key), value)
        return merged
    if isinstance(live, list) and schema.type == "array" and schema.list_type != "atomic":
        if patch is None:
            return list(live) or None
        if isinstance(patch, list) and (live or patch):
            return _merge_lists(schema, live, patch)
    return copy.deepcopy(patch)


def _merge_lists(schema: Schema, live: list[Json], patch: list[Json]) -> list[Json]:
    """The items of both lists; those of the patch keep their order.

    An item that occurs more than once is replaced by the patch's item, and not merged.
    """
    items = schema.items or ANY
    before, wanted = grouped(schema, live), grouped(schema, patch)
    merged: list[Json] = []
    ahead = list(wanted)
    for value in live:
        element = element_of(schema, value)
        if element not in wanted:
            merged.append(value)
        elif element in ahead:
            place = ahead.index(element)
            if any(other in before for other in ahead[:place]):
                # an item that both lists have comes before it in the patch
                continue
            merged += [_merged(items, before, wanted, item) for item in ahead[: place + 1]]
            ahead = ahead[place + 1 :]
    return [*merged, *(_merged(items, before, wanted, item) for item in ahead)]


def _merged(
    items: Schema, before: dict[str, list[Json]], wanted: dict[str, list[Json]], element: str
) -> Json:
    known = before.get(element, [])
    return merge(items, known[0] if len(known) == 1 else None, wanted[element][0])


def give_up(schema: Schema, obj: Object, before: Fields, owned: Sequence[Fields]) -> None:
    """Remove the fields of ``before`` that no set in ``owned`` has."""
    for path in list(members(before)):
        # a field stays as long as a manager owns a part of it
        if not any(covers(fields, path) for fields in owned):
            _remove(schema, obj, path)


def _remove(schema: Schema, value: Json, path: Path) -> None:
    """Remove a path, and the containers that become empty."""
    element, *rest = path
    if isinstance(value, dict):
        key = element.removeprefix("f:")
        if key not in value:
            return
        if rest:
            # copied before it is changed, because merged objects share parts with the stored one
            value[key] = copy.copy(value[key])
            _remove(schema.field(key) or ANY, value[key], tuple(rest))
        if not rest or value[key] in ({}, []):
            del value[key]
    elif isinstance(value, list):
        _remove_item(schema, value, element, tuple(rest))


def _remove_item(schema: Schema, values: list[Json], element: str, rest: Path) -> None:
    for index, item in enumerate(values):
        if element_of(schema, item) != element:
            continue
        if rest:
            values[index] = copy.copy(item)
            _remove(schema.items or ANY, values[index], rest)
        else:
            del values[index]
        return


def _refuse_conflicts(
    request: ApplyRequest, others: Sequence[Entry], change: FieldsDifference, allowed: Fields
) -> None:
    if request.force:
        return
    conflicts = [
        (_named(entry), shown(path))
        for entry in sorted(others, key=lambda entry: str(entry.get("manager", "")))
        for path in sorted(change.taken, key=_leaves_first)
        if contains(entry.get("fieldsV1") or {}, path) and not contains(allowed, path)
    ]
    if conflicts:
        raise StatusError(
            409, "Conflict", _conflict_text(conflicts), {"causes": _causes(conflicts)}
        )


def _leaves_first(path: Path) -> list[tuple[bool, str]]:
    """A sort key: at every level, paths that end there come first."""
    return [(index < len(path) - 1, element) for index, element in enumerate(path)]


def _causes(conflicts: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    return [
        {"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": path}
        for who, path in conflicts
    ]


def _conflict_text(conflicts: Sequence[tuple[str, str]]) -> str:
    if len(conflicts) == 1:
        who, path = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {who}: {path}"
    lines: list[str] = []
    for who in dict.fromkeys(who for who, _ in conflicts):
        lines.append(f"conflicts with {who}:")
        lines += [f"- {path}" for one, path in conflicts if one == who]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def _named(entry: Entry) -> str:
    text = f'"{entry.get("manager", "")}"'
    if entry.get("subresource"):
        text += f' with subresource "{entry["subresource"]}"'
    if entry["operation"] == "Update":
        text += f" using {entry.get('apiVersion', '')}"
    return text
