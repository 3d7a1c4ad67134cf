"""What a server does to a body before it looks at it: types are checked, unknown fields dropped."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from claimctl.embedded.errors import StatusError, bad_request
from claimctl.embedded.kinds.kind import Kind
from claimctl.embedded.schema.facts import FACTS
from claimctl.embedded.schema.go_formats import FIELD, format_problem
from claimctl.embedded.schema.go_shape import empty, settle, shape
from claimctl.embedded.schema.registry import Schemas
from claimctl.embedded.schema.tree import Json, Schema, prune

Object = dict[str, Any]

_GO_SCALARS = {"string": "string", "boolean": "bool", "number": "float64"}
_FORMATS = ("int-or-string", "quantity", "date-time", "micro-time", "byte")
"""Types that read themselves, each with words of its own for what it cannot read."""


class Decoder:
    """Cleans objects by their schema; an object without one is taken as it is."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas

    def clean(self, kind: Kind, version: str, obj: Object) -> list[str]:
        """Drop unknown fields from ``obj`` in place and name them: ``unknown field "spec.x"``.

        Raises:
            StatusError: 400, a field of a built-in kind (or metadata) has the wrong JSON type.
        """
        schema = self._schemas.find(kind.group, version, kind.kind)
        if schema is None:
            return []
        checked = obj if not kind.custom else {"metadata": obj.get("metadata")}
        problem = _type_problem(schema, checked, _Place(kind.kind, ""))
        if problem and kind.custom:
            problem = problem.replace("ObjectMeta.metadata.", "ObjectMeta.")
        if problem:
            raise _cannot_handle(kind.kind, version, problem)
        if not kind.custom:
            drop_nulls(schema, obj)
        paths = prune(schema, obj)
        if not kind.custom and kind.group != "apiextensions.k8s.io":
            shape(schema, obj, null_times=self._schemas.version < (1, 34))
        if kind.custom:
            # Metadata is decoded before the rest, and the rest is reported in order of paths.
            paths.sort(key=lambda path: (not path.startswith("metadata."), path))
        return [f'unknown field "{path}"' for path in paths]

    def empty(self, kind: Kind, version: str) -> Object:
        """What an object of a built-in kind holds into which nobody has written."""
        if kind.custom or kind.group == "apiextensions.k8s.io":
            return {}
        schema = self._schemas.find(kind.group, version, kind.kind)
        made = {} if schema is None else empty(schema)
        made.pop("metadata", None)
        return made

    def settle(self, kind: Kind, obj: Object) -> None:
        """Change an object in the stored form to what comes back from the storage."""
        if kind.custom or kind.group == "apiextensions.k8s.io":
            return
        schema = self._schemas.find(kind.group, kind.version, kind.kind)
        if schema is not None:
            settle(schema, obj)

    def check(self, group: str, version: str, name: str, body: Object) -> list[str]:
        """Check a body that is not stored (a Binding, a Scale), whose Kind is ``name``.

        Fields that are not known are dropped and named: ``unknown field "spec.x"``.

        Raises:
            StatusError: 400, a field has the wrong JSON type.
        """
        schema = self._schemas.find(group, version, name)
        if schema is None:
            return []
        problem = _type_problem(schema, body, _Place(name, ""))
        if problem:
            raise _cannot_handle(name, version, problem)
        drop_nulls(schema, body)
        return [f'unknown field "{path}"' for path in prune(schema, body)]


def _cannot_handle(name: str, version: str, why: str) -> StatusError:
    return bad_request(f'{name} in version "{version}" cannot be handled as a {name}: {why}')


_CONFIGURATIONS = ("DeviceClaimConfiguration", "DeviceClassConfiguration")
"""Structs that have their configuration in an embedded struct, which the decoder names."""


class _Place:
    """Where a value stands: the Go struct that holds it, its model, the path without indexes."""

    __slots__ = ("model", "path", "struct")

    def __init__(self, struct: str, path: str, model: str = "") -> None:
        self.struct = struct
        self.path = path
        self.model = model

    @property
    def named(self) -> str:
        """The Go type of the field where it has a name that its JSON type does not tell."""
        return FACTS.go_types.get(f"{self.model}.{self.path.rpartition('.')[2]}", "")


def _type_problem(schema: Schema, value: Json, place: _Place) -> str:
    """What Go's decoder says about the first value of a wrong type, or an empty string."""
    if value is None:
        return ""
    if schema.format in _FORMATS:
        where = f"struct field {place.struct}.{place.path}"
        return format_problem(schema.format, value).replace(FIELD, where)
    kind = schema.type
    if kind in ("object", "map"):
        if not isinstance(value, dict):
            return _mismatch(schema, value, place)
        return _inside_object(schema, value, place)
    if kind == "array":
        if not isinstance(value, list):
            return _mismatch(schema, value, place)
        return _inside_list(schema, value, place)
    return "" if _fits(schema, value) else _mismatch(schema, value, place)


def _inside_object(schema: Schema, value: dict[str, Json], place: _Place) -> str:
    struct = go_name(schema.definition) or place.struct
    for key, item in value.items():
        below = schema.field(key)
        if below is not None:
            # the path has fields only, as the decoder counts them, and no keys of maps
            path = place.path if schema.type == "map" else f"{place.path}.{key}".lstrip(".")
            if schema.definition.endswith(_CONFIGURATIONS) and key == "opaque":
                path = f"{place.path}.DeviceConfiguration.opaque"
            problem = _type_problem(below, item, _Place(struct, path, schema.definition))
            if problem:
                return problem
    return ""


def _inside_list(schema: Schema, value: list[Json], place: _Place) -> str:
    if schema.items is not None:
        for item in value:
            problem = _type_problem(schema.items, item, place)
            if problem:
                return problem
    return ""


def _fits(schema: Schema, value: Json) -> bool:
    kind = schema.type
    if kind == "string":
        return isinstance(value, str)
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "integer":
        limit = 2**31 if schema.format == "int32" else 2**63
        whole = isinstance(value, int) and not isinstance(value, bool)
        return whole and -limit <= value < limit
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return True


def _mismatch(schema: Schema, value: Json, place: _Place) -> str:
    where = f"{place.struct}.{place.path}"
    wanted = place.named or go_type(schema)
    found = _json_name(schema, value)
    return f"json: cannot unmarshal {found} into Go struct field {where} of type {wanted}"


def _json_name(schema: Schema, value: Json) -> str:
    if isinstance(value, bool):
        return "bool"
    if schema.type == "integer" and isinstance(value, (int, float)):
        return f"number {value}"
    names = {str: "string", int: "number", float: "number", list: "array", dict: "object"}
    return names[type(value)]


_ZEROES: dict[str, Callable[[], Json]] = {
    "object": dict,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": int,
}


def drop_nulls(schema: Schema, value: Json) -> None:
    """Let a null in ``value`` be what Go makes of it: nothing, or in a list or map the zero."""
    if isinstance(value, dict) and schema.type == "object":
        for key in [key for key, item in value.items() if item is None]:
            if schema.field(key) is not None:
                del value[key]
        for key, item in value.items():
            below = schema.field(key)
            if below is not None:
                drop_nulls(below, item)
    elif schema.items is not None and isinstance(value, (dict, list)):
        _zeroes_for_nulls(schema.items, value)


def _zeroes_for_nulls(items: Schema, value: Json) -> None:
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(pairs):
        if item is None and items.type in _ZEROES:
            value[key] = _ZEROES[items.type]()
        else:
            drop_nulls(items, item)


def go_type(schema: Schema) -> str:
    """The Go type of a field, as the decoder names it."""
    if schema.type == "array" and schema.items is not None:
        return f"[]{go_type(schema.items)}"
    if schema.type == "map" and schema.items is not None:
        return f"map[string]{go_type(schema.items)}"
    if schema.type == "integer":
        return schema.format or "int64"
    if schema.format == "byte":
        return "[]uint8"
    return _GO_SCALARS.get(schema.type) or f"{_package(schema)}.{go_name(schema.definition)}"


def _package(schema: Schema) -> str:
    """Alpha types are named with their version; of the others it is always v1 here."""
    found = re.match(r"V1alpha\d+", schema.definition)
    return found.group(0).lower() if found else "v1"


def go_name(definition: str) -> str:
    """The Go name of a client's model: V1DeviceRequest is DeviceRequest."""
    _, found, name = definition.partition("V1")
    if not found:
        return definition
    for prefix in ("alpha", "beta"):
        if name.startswith(prefix):
            return name[len(prefix) + 1 :]
    return name
