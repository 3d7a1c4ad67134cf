"""metadata.managedFields: which manager wrote which field."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from kube_in_process.kinds.kind import Kind
from kube_in_process.managed_fields.comparing import FieldsDifference, difference
from kube_in_process.managed_fields.fieldset import (
    Fields,
    Path,
    contains,
    copied,
    covers,
    drop,
    insert,
    remove,
)
from kube_in_process.objects import Object
from kube_in_process.schema.go_shape import empty
from kube_in_process.schema.registry import Schemas
from kube_in_process.schema.tree import Schema
from kube_in_process.schema.typed import typed_problem

Entry = dict[str, Any]
_NO_OBJECT: Object = {"metadata": {}}


class Manager(msgspec.Struct, frozen=True):
    """The identity of an entry. An applier's API version does not count."""

    name: str
    operation: str
    version: str
    subresource: str

    @classmethod
    def of(cls, entry: Entry) -> Manager:
        applied = entry["operation"] == "Apply"
        version = "" if applied else entry.get("apiVersion", "")
        name, operation = entry.get("manager", ""), entry["operation"]
        return cls(name, operation, version, entry.get("subresource", ""))


def entry_of(manager: Manager, version: str, fields: Fields, time: str) -> Entry:
    """One entry; without ``time`` if that is empty."""
    entry: Entry = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": version,
    }
    if time:
        entry["time"] = time
    entry |= {"fieldsType": "FieldsV1", "fieldsV1": fields}
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """The entries in order: appliers first, then by time and name. Empty entries are left out."""
    kept = [entry for entry in entries if entry.get("fieldsV1")]
    return sorted(
        kept,
        key=lambda entry: (
            entry["operation"],
            entry.get("time") or "",
            entry.get("manager", ""),
            entry.get("apiVersion", ""),
            entry.get("subresource", ""),
        ),
    )


def entries_of(obj: Object) -> list[Entry]:
    """The entries of an object; of several entries of one manager, the last."""
    entries: list[Entry] = obj["metadata"].get("managedFields") or []
    last = {Manager.of(entry): entry for entry in entries}
    return entries if len(last) == len(entries) else list(last.values())


_REPLICAS = ("f:spec", "f:replicas")


def reset_fields(kind: Kind, subresource: str, version: tuple[int, int]) -> tuple[Path, ...]:
    """Fields that a subresource may not change: a write through it does not own them."""
    if subresource == "status":
        if kind.custom:
            return (_SPEC, _METADATA) if version >= (1, 35) else (_SPEC,)
        if kind.plural == "resourceclaims" and version < (1, 35):
            return (_SPEC,)
        return _STATUS_RESETS.get(kind.plural, (_SPEC,))
    without_status = not subresource or kind.plural == "namespaces"
    return (("f:status",),) if without_status and "status" in kind.subresources else ()


_SPEC = ("f:spec",)
_METADATA = ("f:metadata",)
_STATUS_RESETS: dict[str, tuple[Path, ...]] = {
    "deployments": (_SPEC, ("f:metadata", "f:labels")),
    "podgroups": (_SPEC, _METADATA),
    "pods": (
        _SPEC,
        ("f:metadata", "f:deletionTimestamp"),
        ("f:metadata", "f:ownerReferences"),
    ),
    "resourceclaims": (_SPEC, _METADATA),
}


def unwritten(kind: Kind, schema: Schema | None) -> Object:
    """A new object of a kind, before any client writes."""
    if kind.custom or schema is None:
        return _NO_OBJECT
    return {**empty(schema), **_NO_OBJECT}


def owned_by(manager: Manager, content: FieldsDifference, time: str) -> list[Entry]:
    """The entry of a manager that wrote ``content``."""
    return in_order(_with_taken([], content, manager, time))


def _scaled(write: FieldWrite, old: Object) -> list[Entry]:
    """The entries of a workload after a write through /scale.

    Each write goes through a Scale with its own entries. Entries of updates have another version
    there, so replicas get entries of their own, without a time. A Scale leaves out zero replicas,
    so no manager owns them. If no manager owns the replicas before, the Scale has no entries, and
    an object without entries gets none in an update.
    """
    version = write.kind.api_version(write.version)
    replicas = write.new["spec"].get("replicas")
    changed = replicas != old["spec"].get("replicas")
    kept: list[Entry] = []
    owners: dict[Manager, Entry] = {}
    owned = False
    for entry in entries_of(old):
        who = Manager.of(entry)
        has_replicas = contains(entry.get("fieldsV1") or {}, _REPLICAS)
        owned = owned or has_replicas
        if not has_replicas or (who.operation == "Apply" and not changed):
            kept.append(entry)
            continue
        fields = copied(entry["fieldsV1"])
        remove(fields, _REPLICAS)
        kept.append({**entry, "fieldsV1": fields})
        if not changed:
            owners[who] = entry_of(who, version, _only_replicas(), "")
    if changed and replicas and owned:
        who = Manager(write.manager, "Update", version, "scale")
        owners[who] = entry_of(who, version, _only_replicas(), "")
    return in_order([*kept, *owners.values()])


def has_two_orders(entries: Iterable[Entry]) -> bool:
    """Whether the keys of list items stand in another order as text than by their values.

    A write through /scale stores them in the order of the text: port 443 before port 80. Every
    other write stores them in the order of the values, so the first one after it changes the
    object even if it sends no change.
    """
    return any(_two_orders(entry.get("fieldsV1") or {}) for entry in entries)


def _two_orders(fields: Fields) -> bool:
    keys = sorted(key for key in fields if key.startswith("k:{"))
    by_value = sorted(keys, key=lambda key: list(json.loads(key[2:]).values()))
    return keys != by_value or any(_two_orders(below) for below in fields.values())


def _only_replicas() -> Fields:
    fields: Fields = {}
    insert(fields, _REPLICAS)
    return fields


def without(entries: Iterable[Entry], change: FieldsDifference) -> list[Entry]:
    """The entries after a write took and removed fields. Unchanged entries are the same objects."""
    return [_reduced(entry, change) for entry in entries]


def _reduced(entry: Entry, change: FieldsDifference) -> Entry:
    fields = entry.get("fieldsV1") or {}
    paths = (*change.taken, *change.removed)
    if not any(covers(fields, path) for path in paths):
        return entry
    left = copied(fields)
    for path in change.taken:
        remove(left, path)
    for path in change.removed:
        drop(left, path)
    return {**entry, "fieldsV1": left}


class FieldWrite(msgspec.Struct, frozen=True):
    """A write other than apply. ``old`` is None at create. ``time`` is RFC 3339 to the second."""

    kind: Kind
    version: str
    old: Object | None
    new: Object
    manager: str
    subresource: str
    time: str


class ManagedFields:
    """Records the managers of all writes except apply.

    The fields of a new object that no client wrote belong to no manager.
    """

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas

    def record(self, write: FieldWrite) -> list[Object] | None:
        """metadata.managedFields after the write; None keeps those of ``new``."""
        schema = self._schemas.find(write.kind.group, write.version, write.kind.kind)
        old = write.old or unwritten(write.kind, schema)
        before = _entries_before(write, old)
        if write.old is not None and not before:
            # an object without entries stays without entries
            return [] if entries_of(old) else None
        if write.subresource == "scale" and not write.kind.custom:
            return _scaled(write, old)
        if (
            write.kind.custom
            and schema is not None
            and typed_problem(schema, write.new, again=True)
        ):
            # without validation, an object can have values of wrong types: then it has no owners
            return []
        reset = reset_fields(write.kind, write.subresource, self._schemas.version)
        change = difference(schema, old, write.new).without(reset)
        if not change:
            return before
        version = write.kind.api_version(write.version)
        manager = Manager(write.manager, "Update", version, write.subresource)
        return in_order(_with_taken(before, change, manager, write.time))


def _entries_before(write: FieldWrite, old: Object) -> list[Entry]:
    """The entries that the write starts from. An update of the object itself may bring others, and
    empties them with one empty entry; entries that make no sense are ignored."""
    brought = write.new["metadata"].get("managedFields") or []
    if write.old is None or write.subresource or not brought:
        return entries_of(old)
    if not any(brought):
        return []
    sound = all(
        entry.get("operation") in ("Apply", "Update") and isinstance(entry.get("fieldsV1"), dict)
        for entry in brought
    )
    return entries_of(write.new) if sound else entries_of(old)


def _with_taken(
    before: list[Entry], change: FieldsDifference, manager: Manager, time: str
) -> list[Entry]:
    """The entries after ``manager`` has taken fields from the others."""
    own = next((entry for entry in before if Manager.of(entry) == manager), None)
    others = without((entry for entry in before if entry is not own), change)
    if own is None and not change.taken:
        return others
    fields = copied(own["fieldsV1"]) if own is not None else {}
    for path in change.removed:
        drop(fields, path)
    for path in change.taken:
        insert(fields, path)
    moment = time if change.taken or own is None else own.get("time", "")
    return [*others, entry_of(manager, manager.version, fields, moment)]
