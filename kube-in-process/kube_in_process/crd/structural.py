"""Defaults and validation of custom objects by their structural schema.

The texts and error types are those of kube-openapi's validator, as the API server shows them.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from kube_in_process.errors import (
    FieldError,
    duplicate,
    invalid_text,
    invalid_value,
    not_supported,
    quoted,
    required,
    too_long,
    too_many,
)

Json = Any
Raw = Mapping[str, Json]

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}
_METADATA = frozenset({"apiVersion", "kind", "metadata"})


def drop_nulls(raw: Raw, value: Json) -> None:
    """Remove, in place, each null of a field that may not be null."""
    if isinstance(value, list):
        for item in value:
            drop_nulls(raw.get("items") or {}, item)
    if not isinstance(value, dict):
        return
    for name, below in (raw.get("properties") or {}).items():
        if name in value and value[name] is None and not below.get("nullable"):
            del value[name]
        elif name in value:
            drop_nulls(below, value[name])
    additional = raw.get("additionalProperties")
    if isinstance(additional, dict):
        for item in value.values():
            drop_nulls(additional, item)


def fill_defaults(raw: Raw, value: Json) -> None:
    """Fill in defaults below ``value`` in place. A null counts as missing if it is not allowed."""
    if isinstance(value, list):
        items = raw.get("items")
        if isinstance(items, dict):
            for item in value:
                fill_defaults(items, item)
    elif isinstance(value, dict):
        _fill_object(raw, value)


def _fill_object(raw: Raw, value: dict[str, Json]) -> None:
    for name, below in raw.get("properties", {}).items():
        missing = name not in value or (value[name] is None and not below.get("nullable"))
        if missing and "default" in below:
            value[name] = copy.deepcopy(below["default"])
        if name in value:
            fill_defaults(below, value[name])
    additional = raw.get("additionalProperties")
    if isinstance(additional, dict):
        for item in value.values():
            fill_defaults(additional, item)


def validate(raw: Raw, value: Json, path: str = "") -> list[FieldError]:
    """The errors of ``value``, except those of metadata, kind and apiVersion at the root."""
    return list(_validate(raw, value, path))


def _validate(raw: Raw, value: Json, path: str) -> Iterator[FieldError]:
    if value is None:
        if not raw.get("nullable") and path:
            yield _wrong_type(raw, value, path)
        return
    if not _has_type(raw, value):
        yield _wrong_type(raw, value, path)
        return
    if "enum" in raw and value not in raw["enum"]:
        yield not_supported(path, value, [choice for choice in raw["enum"] if choice is not None])
    if isinstance(value, str):
        yield from islice(_string(raw, value, path), 1)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from _number(raw, value, path)
    elif isinstance(value, list):
        yield from _list(raw, value, path)
    elif isinstance(value, dict):
        yield from _object(raw, value, path)
    yield from _combined(raw, value, path)


def _has_type(raw: Raw, value: Json) -> bool:
    if raw.get("x-kubernetes-int-or-string"):
        return isinstance(value, (int, str)) and not isinstance(value, bool)
    wanted = raw.get("type")
    if not wanted:
        return True
    if isinstance(value, bool):
        return bool(wanted == "boolean")
    if wanted == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[wanted])


def _wrong_type(raw: Raw, value: Json, path: str) -> FieldError:
    wanted = "integer,string" if raw.get("x-kubernetes-int-or-string") else raw.get("type", "")
    given = f'"{type_name(value)}"'
    text = f"Invalid value: {given}: {path} in body must be of type {wanted}: {given}"
    return FieldError("FieldValueTypeInvalid", path, text)


def type_name(value: Json) -> str:
    """The name of a value's type in JSON Schema."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    names = {str: "string", int: "integer", float: "number", list: "array", dict: "object"}
    return names[type(value)]


def _in_body(path: str, value: Json, text: str) -> FieldError:
    return invalid_value(path, value, f"{path} in body {text}")


def _string(raw: Raw, value: str, path: str) -> Iterator[FieldError]:
    if len(value) > raw.get("maxLength", len(value)):
        yield too_long(path, raw["maxLength"])
    if len(value) < raw.get("minLength", 0):
        yield _in_body(path, value, f"should be at least {raw['minLength']} chars long")
    if "pattern" in raw and re.search(raw["pattern"], value) is None:
        yield _in_body(path, value, f"should match '{raw['pattern']}'")
    form = raw.get("format", "")
    if form in _FORMATS and not _FORMATS[form](value):
        yield _in_body(path, value, f"must be of type {form}: {quoted(value)}")


def _is_time(value: str) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


_UUID = re.compile(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", re.IGNORECASE)
_DURATION = re.compile(r"^[+-]?(\d+(\.\d+)?(ns|us|µs|ms|s|m|h|d|w))+$")
_FORMATS: dict[str, Callable[[str], bool]] = {
    "date-time": _is_time,
    "uuid": lambda value: _UUID.match(value) is not None,
    "duration": lambda value: _DURATION.match(value) is not None,
}


def _number(raw: Raw, value: float, path: str) -> Iterator[FieldError]:
    minimum, maximum = raw.get("minimum"), raw.get("maximum")
    if minimum is not None and (
        value < minimum or (raw.get("exclusiveMinimum") and value <= minimum)
    ):
        orequal = "" if raw.get("exclusiveMinimum") else " or equal to"
        yield _in_body(path, value, f"should be greater than{orequal} {minimum}")
    if maximum is not None and (
        value > maximum or (raw.get("exclusiveMaximum") and value >= maximum)
    ):
        orequal = "" if raw.get("exclusiveMaximum") else " or equal to"
        yield _in_body(path, value, f"should be less than{orequal} {maximum}")
    multiple = raw.get("multipleOf")
    if multiple and value % multiple:
        yield _in_body(path, value, f"should be a multiple of {multiple}")


def _list(raw: Raw, value: list[Json], path: str) -> Iterator[FieldError]:
    if len(value) > raw.get("maxItems", len(value)):
        yield too_many(path, len(value), raw["maxItems"])
    if len(value) < raw.get("minItems", 0):
        text = f"{path} in body should have at least {raw['minItems']} items"
        yield invalid_value(path, len(value), text)
    items = raw.get("items")
    if isinstance(items, dict):
        for index, item in enumerate(value):
            yield from _validate(items, item, f"{path}[{index}]")
    yield from _repeated(raw, value, path)


def _repeated(raw: Raw, value: list[Json], path: str) -> Iterator[FieldError]:
    list_type = raw.get("x-kubernetes-list-type")
    if list_type not in ("set", "map"):
        return
    keys = raw.get("x-kubernetes-list-map-keys", ())
    seen: list[Json] = []
    for index, item in enumerate(value):
        key = item
        if list_type == "map" and isinstance(item, dict):
            key = {name: item[name] for name in keys if name in item}
        if key in seen:
            yield duplicate(f"{path}[{index}]", key)
        seen.append(key)


def _object(raw: Raw, value: dict[str, Json], path: str) -> Iterator[FieldError]:
    missing = [name for name in raw.get("required", ()) if name not in value]
    for name in missing:
        yield required(_join(path, name))
    if len(value) > raw.get("maxProperties", len(value)):
        text = f"{path} in body should have at most {raw['maxProperties']} properties"
        yield invalid_value(path, len(value), text)
    if len(value) < raw.get("minProperties", 0):
        text = f"{path} in body should have at least {raw['minProperties']} properties"
        yield invalid_value(path, len(value), text)
    properties = raw.get("properties", {})
    additional = raw.get("additionalProperties")
    for name, below in properties.items():
        if name in value and name not in missing and (path or name not in _METADATA):
            yield from _validate(below, value[name], _join(path, name))
    if isinstance(additional, dict):
        for name, item in value.items():
            if name not in properties:
                yield from _validate(additional, item, _join(path, name))


def _combined(raw: Raw, value: Json, path: str) -> Iterator[FieldError]:
    if raw.get("x-kubernetes-int-or-string"):
        return
    for one in raw.get("allOf", ()):
        yield from _validate(one, value, path)
    if "anyOf" in raw and not any(_fits(one, value, path) for one in raw["anyOf"]):
        yield invalid_text(path, '""', f'"{path}" must validate at least one schema (anyOf)')
    if "oneOf" in raw and sum(_fits(one, value, path) for one in raw["oneOf"]) != 1:
        yield invalid_text(path, '""', f'"{path}" must validate one and only one schema (oneOf)')
    if "not" in raw and _fits(raw["not"], value, path):
        yield invalid_text(path, '""', f'"{path}" must not validate the schema (not)')


def _fits(raw: Raw, value: Json, path: str) -> bool:
    return next(_validate(raw, value, path), None) is None


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
