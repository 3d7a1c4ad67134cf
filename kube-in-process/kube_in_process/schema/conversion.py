"""Convert an object that the server held in maps, after a strategic patch or an apply.

Such an object does not go through the JSON decoder, but through a converter with its own rules and
texts (``FromUnstructured``): the fields are in the order of the Go struct, a number too large for
its field loses its upper bits, and paths of unknown fields lack the keys of maps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kube_in_process.schema.go_formats import FIELD, format_problem
from kube_in_process.schema.go_types import Place, go_name, go_type
from kube_in_process.schema.tree import Schema
from kube_in_process.text.data import table

Json = Any
_FORMATS = ("int-or-string", "quantity", "date-time", "micro-time")
_BITS = {"int32": 32, "int64": 64}


class Unconvertible(ValueError):
    """A value that its field cannot hold. The text is the server's."""


def converted(schema: Schema, value: Json) -> Json:
    """``value`` as the struct holds it, with new lists and maps.

    Raises:
        Unconvertible: the first value of a wrong type.
    """
    return _converted(schema, value, Place("", ""))


def in_struct_order(schema: Schema, value: Json) -> Json:
    """``value`` with the fields of each struct in its order, and the keys of each map sorted."""
    if isinstance(value, list) and schema.items is not None:
        return [in_struct_order(schema.items, item) for item in value]
    if isinstance(value, dict) and schema.type == "map" and schema.items is not None:
        return {key: in_struct_order(schema.items, value[key]) for key in sorted(value)}
    if not isinstance(value, dict) or schema.type != "object":
        return value
    ordered = {}
    for key in _in_order(schema, value):
        below = schema.field(key)
        ordered[key] = value[key] if below is None else in_struct_order(below, value[key])
    return ordered


def unknown_below(schema: Schema, value: Json) -> list[str]:
    """The sorted paths of fields that the struct lacks: ``spec.devices[0].x``."""
    return sorted(_unknown(schema, value, ""))


def _converted(schema: Schema, value: Json, place: Place) -> Json:
    if value is None:
        return None
    if schema.format in _FORMATS:
        problem = format_problem(schema.format, value)
        if problem:
            raise Unconvertible(problem.replace(FIELD, "value"))
        return value
    if schema.format == "byte":
        return _bytes(value)
    if schema.type == "map":
        if not isinstance(value, dict):
            raise Unconvertible(f"cannot restore map from {_kind(value)}")
        items = schema.items or Schema()
        return {key: _converted(items, item, place) for key, item in value.items()}
    if schema.type == "object":
        return _struct(schema, value)
    if schema.type == "array":
        if not isinstance(value, list):
            raise Unconvertible(f"cannot restore slice from {_kind(value)}")
        items = schema.items or Schema()
        return [_converted(items, item, place) for item in value]
    return _scalar(schema, value, place) if schema.type else value


def _struct(schema: Schema, value: Json) -> Json:
    if not isinstance(value, dict):
        raise Unconvertible(f"cannot restore struct from: {_kind(value)}")
    struct = dict(value)
    for key in _in_order(schema, value):
        below = schema.field(key)
        if below is not None:
            place = Place("", key, schema.definition)
            struct[key] = _converted(below, value[key], place)
    return struct


def _bytes(value: Json) -> Json:
    if not isinstance(value, str):
        raise Unconvertible(f"cannot restore slice from {_kind(value)}")
    problem = format_problem("byte", value)
    if problem:
        raise Unconvertible(f"error decoding from json: {problem}")
    return value


def _scalar(schema: Schema, value: Json, place: Place) -> Json:
    given = _kind(value)
    wanted = {"integer": schema.format or "int64", "number": "float64", "boolean": "bool"}.get(
        schema.type, "string"
    )
    if given == wanted:
        return value
    if given == "int64" and wanted in _BITS:
        return _wrapped(value, _BITS[wanted])
    if given == "float64" and wanted in _BITS and value == int(value):
        return int(value)
    if given == "int64" and wanted == "float64":
        return value
    numbers = ("int64", "float64")
    if given in numbers and (wanted in (*_BITS, "float64") or (given, wanted) == _RUNES):
        raise Unconvertible(f"cannot convert {given} to {place.named or go_type(schema)}")
    raise Unconvertible(f"unrecognized type: {wanted}")


_RUNES = ("int64", "string")
"""Go would convert a number to a letter; the converter refuses that."""


def _wrapped(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half


def _kind(value: Json) -> str:
    """The Go kind of a value: int64 for whole numbers that fit, float64 for others."""
    if isinstance(value, bool):
        return "bool"
    names = {str: "string", int: "int64", float: "float64", list: "slice", dict: "map"}
    return names[type(value)]


def _in_order(schema: Schema, value: dict[str, Json]) -> list[str]:
    order = _ORDERS.get(go_name(schema.definition), {})
    return sorted(value, key=lambda key: order.get(key, len(order)))


_ORDERS = {
    struct: {name: place for place, name in enumerate(names.split())}
    for struct, names in table(__package__, "orders.json", dict[str, str]).items()
}
"""The position of each field by Go struct."""


def _unknown(schema: Schema, value: Json, path: str) -> Iterator[str]:
    if isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            yield from _unknown(schema.items, item, f"{path}[{index}]")
    elif isinstance(value, dict) and schema.type == "map" and schema.items is not None:
        for item in value.values():
            yield from _unknown(schema.items, item, path)
    elif isinstance(value, dict) and schema.type == "object":
        for key, item in value.items():
            where = f"{path}.{key}".lstrip(".")
            below = schema.properties.get(key)
            if below is not None:
                yield from _unknown(below, item, where)
            elif not schema.keeps_unknown:
                yield where
