"""Tables and PartialObjectMetadata, for the Accept header."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from kube_in_process.errors import StatusError, bad_request
from kube_in_process.http.documents.discovery import not_acceptable
from kube_in_process.http.tables.builtin import builtin_columns, custom_columns
from kube_in_process.http.tables.columns import Column, Row
from kube_in_process.kinds.kind import Kind
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.schema.registry import Schemas
from kube_in_process.schema.tree import Schema

_META = "meta.k8s.io/v1"
_INCLUDE = ("", "Metadata", "Object", "None")
_INCLUDE_TEXT = "must be 'Metadata', 'Object', 'None', or empty"
CustomColumns = Mapping[tuple[str, str, str], list[Object]]


class ObjectShape(Protocol):
    """A shape for the objects of one answer (Table, PartialObjectMetadata).

    There is one per request, because the first event of a stream differs from the others.
    """

    def one(self, obj: Object) -> Object: ...

    def many(self, body: Object) -> Object: ...

    def event(self, obj: Object) -> Object: ...

    def bookmark(self, obj: Object) -> Object: ...


class Tables:
    """Chooses the shape of an answer."""

    def __init__(
        self,
        schemas: Schemas,
        custom: CustomColumns,
        now: Callable[[], datetime],
        features: Callable[[], Features],
    ) -> None:
        self._schemas = schemas
        self._custom = custom
        self._now = now
        self._features = features

    def view(
        self, accept: str, kind: Kind, version: str, query: Mapping[str, str], *, many: bool
    ) -> ObjectShape | None:
        """The view for an Accept header; None for plain objects.

        Raises:
            StatusError: 406 where nothing in it can be answered, 400 for an unknown
                ``includeObject``.
        """
        form = _form(accept)
        if form == "":
            return None
        watched = "watch" in query and many
        if form == "PartialObjectMetadata" and many and not watched:
            return Unfit(_one_not_many(kind))
        if form == "PartialObjectMetadataList" and not many:
            return Unfit(_many_not_one(kind))
        if form != "Table":
            return Partial()
        include = query.get("includeObject", "")
        if include not in _INCLUDE:
            why = f'Invalid value: "{include}": {_INCLUDE_TEXT}'
            text = f"Unable to convert to Table as requested: includeObject: {why}"
            if watched:
                raise bad_request(text)
            return Unfit(bad_request(text))
        return Table(self._columns(kind, version), include or "Metadata", self._now)

    def _columns(self, kind: Kind, version: str) -> list[_Defined]:
        schema = self._schemas.find(kind.group, version, kind.kind)
        return [_Defined(one, _definition(one, schema)) for one in self._chosen(kind, version)]

    def _chosen(self, kind: Kind, version: str) -> Sequence[Column]:
        if not kind.custom:
            return builtin_columns(kind, self._features().version)
        return custom_columns(self._custom.get((kind.group, version, kind.plural)) or ())


def _form(accept: str) -> str:
    """The wanted form: ``Table``, a kind of PartialObjectMetadata, or '' for plain objects."""
    for entry in (accept or "*/*").split(","):
        media, *parameters = (part.strip() for part in entry.split(";"))
        asked = dict(part.split("=", 1) for part in parameters if "=" in part)
        form = asked.get("as", "")
        if not form:
            return ""
        known = form in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
        fits = asked.get("v", "v1") == "v1" and asked.get("g", "meta.k8s.io") == "meta.k8s.io"
        if known and fits and media == "application/json":
            return form
    raise not_acceptable()


def _internal(kind: Kind, name: str) -> str:
    """The server's Go type of a kind. Custom kinds share one."""
    if kind.plural == "events":
        return f"*core.{name}"
    package = (kind.group.partition(".")[0] or "core") if not kind.custom else "unstructured"
    return f"*{package}.{'Unstructured' + name.removeprefix(kind.kind) if kind.custom else name}"


def _one_not_many(kind: Kind) -> StatusError:
    table = _internal(kind, f"{kind.kind}List")
    text = f"you requested PartialObjectMetadata, but the requested object is a list ({table})"
    return StatusError(406, "NotAcceptable", text)


def _many_not_one(kind: Kind) -> StatusError:
    table = _internal(kind, kind.kind)
    text = (
        f"you requested PartialObjectMetadataList, but the requested object is not a list ({table})"
    )
    return StatusError(406, "NotAcceptable", text)


_GENERATION = "deprecated.daemonset.template.generation"


@dataclass(frozen=True, slots=True)
class _Defined:
    column: Column
    definition: Object


def _definition(column: Column, schema: Schema | None) -> Object:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": _described(column.text, schema),
        "priority": column.priority,
    }


def _described(text: str, schema: Schema | None) -> str:
    """The text itself; if it names a field, the description of the field."""
    if not text.startswith("."):
        return text
    below = schema
    for name in text[1:].split("."):
        below = below.field(name) if below is not None else None
    # columns tell nothing of the values of enums
    return below.description.partition(_ENUM)[0] if below is not None else ""


_ENUM = "\n\nPossible enum values:"


def partial(obj: Object) -> Object:
    """An object with its metadata only.

    A real server converts it from its internal object, which has the generation of a DaemonSet's
    template in a field and not in an annotation.
    """
    metadata = obj.get("metadata") or {}
    if _GENERATION in (metadata.get("annotations") or {}):
        left = {k: v for k, v in metadata["annotations"].items() if k != _GENERATION}
        metadata = {**metadata, "annotations": left}
        if not left:
            del metadata["annotations"]
    return {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": metadata}


@dataclass(frozen=True, slots=True)
class Unfit:
    """A shape that does not fit the answer. The error is raised only when there is an answer."""

    error: StatusError

    def one(self, obj: Object) -> Object:
        raise self.error

    def many(self, body: Object) -> Object:
        raise self.error

    def event(self, obj: Object) -> Object:
        raise self.error

    def bookmark(self, obj: Object) -> Object:
        raise self.error


class Partial:
    """Metadata only."""

    def one(self, obj: Object) -> Object:
        return partial(obj)

    def many(self, body: Object) -> Object:
        items = [partial(item) for item in body["items"]]
        return {
            "kind": "PartialObjectMetadataList",
            "apiVersion": _META,
            "metadata": _list_metadata(body),
            "items": items or None,
        }

    def event(self, obj: Object) -> Object:
        return partial(obj)

    def bookmark(self, obj: Object) -> Object:
        metadata = {key: value for key, value in obj["metadata"].items() if value}
        return {**partial(obj), "metadata": metadata}


@dataclass(slots=True)
class Table:
    """A table. In a stream, only the first event has the columns."""

    columns: Sequence[_Defined]
    include: str
    now: Callable[[], datetime]
    begun: bool = field(default=False)

    def one(self, obj: Object) -> Object:
        version = (obj.get("metadata") or {}).get("resourceVersion", "")
        return self._table({"resourceVersion": version}, [obj])

    def many(self, body: Object) -> Object:
        item = {"apiVersion": body["apiVersion"], "kind": body["kind"].removesuffix("List")}
        return self._table(_list_metadata(body), [{**item, **obj} for obj in body["items"]])

    def event(self, obj: Object) -> Object:
        return self._streamed(self.one(obj))

    def bookmark(self, obj: Object) -> Object:
        version = obj["metadata"].get("resourceVersion", "")
        ended = "k8s.io/initial-events-end" in obj["metadata"].get("annotations", {})
        return self._streamed(self._table({"resourceVersion": version}, [obj] if ended else []))

    def _streamed(self, table: Object) -> Object:
        if self.begun:
            table["columnDefinitions"] = None
        self.begun = True
        return table

    def _table(self, metadata: Object, objects: Sequence[Object]) -> Object:
        moment = self.now()
        return {
            "kind": "Table",
            "apiVersion": _META,
            "metadata": metadata,
            "columnDefinitions": [one.definition for one in self.columns],
            "rows": [self._row(Row(obj, moment)) for obj in objects],
        }

    def _row(self, row: Row) -> Object:
        cells = [one.column.value(row) for one in self.columns]
        shown = {"Metadata": partial(row.obj), "Object": row.obj}.get(self.include)
        return {"cells": cells, **_ended(row.obj), "object": shown}


_ENDS = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}


def _ended(obj: Object) -> Object:
    """The condition of a row whose pod has ended. From the printer of pods in Kubernetes."""
    phase = (obj.get("status") or {}).get("phase", "")
    if obj.get("kind") != "Pod" or phase not in _ENDS:
        return {}
    told = {"type": "Completed", "status": "True", "reason": phase, "message": _ENDS[phase]}
    return {"conditions": [told]}


def _list_metadata(body: Object) -> Object:
    return {key: value for key, value in body["metadata"].items() if value not in ("", None)}
