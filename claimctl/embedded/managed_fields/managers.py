"""metadata.managedFields: who wrote which field, kept through the writes of others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from claimctl.embedded.kinds.hooks import FieldWrite
from claimctl.embedded.kinds.kind import Kind
from claimctl.embedded.managed_fields.comparing import Difference, difference
from claimctl.embedded.managed_fields.fieldset import Fields, copied, covers, drop, insert, remove
from claimctl.embedded.schema.go_shape import empty
from claimctl.embedded.schema.registry import Schemas
from claimctl.embedded.schema.tree import Schema

Object = dict[str, Any]
Entry = dict[str, Any]
_NO_OBJECT: Object = {"metadata": {}}


@dataclass(frozen=True, slots=True)
class Manager:
    """What tells entries apart. Of appliers the API version does not count."""

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
    """One entry of the list; an empty ``time`` is left out."""
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
    """Appliers first, then by time and name; entries without a field are left out."""
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


def without(entries: Iterable[Entry], change: Difference) -> list[Entry]:
    """The entries after a write took and removed fields; untouched ones are the same objects."""
    return [_reduced(entry, change) for entry in entries]


def _reduced(entry: Entry, change: Difference) -> Entry:
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


def _taken_of(write: FieldWrite) -> Object:
    """What a create takes of its body: not the status, where that is a subresource."""
    if write.old is not None or "status" not in write.kind.subresources:
        return write.new
    return {key: value for key, value in write.new.items() if key != "status"}


class ManagedFields:
    """Records every write but apply.

    What a new object holds before anybody has written into it belongs to nobody.
    """

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._new: dict[tuple[str, str, str], Object] = {}

    def record(self, write: FieldWrite) -> list[Object] | None:
        """metadata.managedFields after the write; None leaves what ``new`` carries."""
        schema = self._schemas.find(write.kind.group, write.version, write.kind.kind)
        old = write.old or self._unwritten(write.kind, write.version, schema)
        before: list[Entry] = old["metadata"].get("managedFields") or []
        change = difference(schema, old, _taken_of(write))
        if not change:
            return before
        version = write.kind.api_version(write.version)
        manager = Manager(write.manager, "Update", version, write.subresource)
        return in_order(_with_taken(before, change, manager, write.time))

    def _unwritten(self, kind: Kind, version: str, schema: Schema | None) -> Object:
        if kind.custom or schema is None:
            return _NO_OBJECT
        key = (kind.group, version, kind.kind)
        if key not in self._new:
            self._new[key] = {**empty(schema), **_NO_OBJECT}
        return self._new[key]


def _with_taken(
    before: list[Entry], change: Difference, manager: Manager, time: str
) -> list[Entry]:
    """What was taken goes from the others to ``manager``."""
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
