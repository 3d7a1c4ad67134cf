"""Objects as Go writes them: which empty values exist, are null, or are left out.

Every object of a built-in kind is decoded into a Go struct. So ``labels: {}`` means no labels,
``paused: false`` is absent, and a struct that was not sent is an empty object.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import msgspec

from kube_in_process.objects import Object
from kube_in_process.schema.facts import FACTS
from kube_in_process.schema.go_formats import without_breaks
from kube_in_process.schema.tree import Schema
from kube_in_process.text.quantity import canonical
from kube_in_process.text.times import micro_timestamp, timestamp

_ZERO: dict[str, Any] = {"string": "", "boolean": False, "integer": 0, "number": 0}


@dataclass(frozen=True, slots=True)
class Nulls:
    """What a release writes as null when it is empty: the fields in ``fields`` (lists and maps),
    and with ``times`` the creationTimestamp in the metadata of a template."""

    fields: frozenset[str] = FACTS.nulls
    times: bool = False


_NOW = Nulls()


@cache
def nulls_of(version: tuple[int, int]) -> Nulls:
    """The nulls of a Kubernetes version."""
    fields = FACTS.nulls if version >= (1, 36) else FACTS.nulls | FACTS.nulls_before_1_36
    return Nulls(fields, version < (1, 34))


def shape(schema: Schema, obj: Object, nulls: Nulls = _NOW) -> None:
    """Change an object of a built-in kind, in place, to what Go writes.

    Only objects of models have a shape. Fields are named ``Model.field``. The rules of metadata
    handle the metadata of the object itself.
    """
    if not schema.definition:
        return
    whole = "apiVersion" in schema.properties
    if nulls.times and schema.definition == "V1ObjectMeta":
        obj.setdefault("creationTimestamp", None)
    for key, below in schema.properties.items():
        if whole and key == "metadata":
            continue
        place = f"{schema.definition}.{key}"
        if key in obj:
            _known(place, below, obj, key, _Place(key in schema.required, nulls))
        elif place in FACTS.structs:
            struct: Object = {}
            shape(below, struct, nulls)
            obj[key] = struct
        elif place in nulls.fields:
            obj[key] = None
        elif below.format == "quantity" and key in schema.required:
            obj[key] = "0"
        elif below.type in _ZERO and (key in schema.required or place in FACTS.zeroes):
            obj[key] = _ZERO[below.type]


def empty(schema: Schema, nulls: Nulls = _NOW) -> Object:
    """What Go writes for a new object without any field set."""
    struct: Object = {}
    shape(schema, struct, nulls)
    return struct


class _Place(msgspec.Struct, frozen=True):
    required: bool
    nulls: Nulls


def _known(place: str, schema: Schema, obj: Object, key: str, where: _Place) -> None:
    value = obj[key]
    if schema.format in _WRITTEN and value not in ("", None):
        obj[key] = _WRITTEN[schema.format](value)
    elif schema.type in ("array", "map"):
        if not value:
            _without_items(place, obj, key, where.nulls)
        elif schema.items is not None:
            _items(schema.items, value, where.nulls)
    elif schema.definition and isinstance(value, dict):
        shape(schema, value, where.nulls)
    elif not where.required and place not in FACTS.zeroes and _is_omitted(place, schema, value):
        del obj[key]


def _items(schema: Schema, value: Any, nulls: Nulls) -> None:
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(pairs):
        if schema.format in _WRITTEN:
            value[key] = _WRITTEN[schema.format](item)
        elif schema.definition and isinstance(item, dict):
            shape(schema, item, nulls)


def _time(text: Any) -> Any:
    """metav1.Time: whole seconds in UTC."""
    return timestamp(datetime.fromisoformat(text))


def _micro_time(text: Any) -> Any:
    return micro_timestamp(datetime.fromisoformat(text))


def _bytes(given: Any) -> str:
    """Bytes may come with line breaks, or as a list of numbers, in which null is zero."""
    if isinstance(given, str):
        return without_breaks(given)
    return base64.b64encode(bytes(number or 0 for number in given)).decode()


_WRITTEN: dict[str, Callable[[Any], Any]] = {
    "byte": _bytes,
    "quantity": canonical,
    "date-time": _time,
    "micro-time": _micro_time,
}
"""Formats whose values come back in another form."""


def _without_items(place: str, obj: Object, key: str, nulls: Nulls) -> None:
    """An empty list that Go writes is kept, because its writer owns it. It is stored as null."""
    if place not in nulls.fields:
        del obj[key]
    elif obj[key] != []:
        obj[key] = None


def settle(schema: Schema, obj: Object, nulls: Nulls = _NOW) -> None:
    """Change an object, in place, to what the storage returns: empty lists are null."""
    for key, below in schema.properties.items():
        value = obj.get(key)
        if value == [] and f"{schema.definition}.{key}" in nulls.fields:
            obj[key] = None
        elif value and below.definition and isinstance(value, dict):
            settle(below, value, nulls)
        elif value and below.items is not None and below.items.definition:
            for item in value.values() if isinstance(value, dict) else value:
                if isinstance(item, dict):
                    settle(below.items, item, nulls)


def _is_omitted(place: str, schema: Schema, value: Any) -> bool:
    if schema.type == "string":
        plain = schema.format in ("", "byte") and place not in FACTS.pointers
        return plain and value == ""
    return place in FACTS.plain and not value
