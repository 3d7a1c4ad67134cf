"""Decode objects by their schema: types are checked, unknown fields removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kube_in_process.errors import StatusError, bad_request
from kube_in_process.kinds.kind import Kind
from kube_in_process.objects import Object
from kube_in_process.schema.conversion import converted, in_struct_order, unknown_below
from kube_in_process.schema.go_formats import FIELD, format_problem
from kube_in_process.schema.go_shape import empty, nulls_of, settle, shape
from kube_in_process.schema.go_types import Place, go_name, go_type
from kube_in_process.schema.registry import Schemas
from kube_in_process.schema.tree import Json, Schema, prune
from kube_in_process.storage.raw_json import all_sorted

_FORMATS = ("int-or-string", "quantity", "date-time", "micro-time", "byte")
"""Formats that Go decodes with code of its own, each with its own error texts."""


class Decoder:
    """Decodes objects by their schema; objects without a schema stay as they are."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas

    def convert(self, kind: Kind, version: str, obj: Object) -> Object:
        """Convert an object that was patched as a map back to its struct.

        Raises:
            Unconvertible: a value of a wrong type.
        """
        schema = self._schemas.find(kind.group, version, kind.kind)
        if schema is None or kind.custom or kind.group == "apiextensions.k8s.io":
            return obj
        struct: Object = converted(schema, obj)
        return struct

    def as_written(self, kind: Kind, version: str, obj: Object) -> Object:
        """``obj`` with the fields of its structs in their order and the keys of its maps sorted, as
        the server writes it. Custom kinds have no structs."""
        schema = self._schemas.find(kind.group, version or kind.version, kind.kind)
        if kind.custom:
            ordered: Object = all_sorted(obj)
            return ordered
        written: Object = obj if schema is None else in_struct_order(schema, obj)
        return written

    def clean(self, kind: Kind, version: str, obj: Object, *, maps: bool = False) -> list[str]:
        """Remove unknown fields from ``obj`` in place; return errors like ``unknown field
        "spec.x"``.

        ``maps``: the object was held in maps, so names have another form.

        Raises:
            StatusError: 400, a field of a built-in kind (or metadata) has the wrong JSON type.
        """
        schema = self._schemas.find(kind.group, version, kind.kind)
        if schema is None:
            return []
        checked = obj if not kind.custom else {"metadata": obj.get("metadata")}
        problem = _type_problem(schema, checked, Place(kind.kind, ""))
        if problem and kind.custom:
            # the metadata is decoded apart from the rest
            problem = problem.replace("ObjectMeta.metadata.", "ObjectMeta.")
            problem = problem.replace(f"struct field {kind.kind}.metadata of", "value of")
        if problem:
            raise _cannot_handle(kind.kind, version, problem)
        if not kind.custom:
            drop_nulls(schema, obj)
        named = unknown_below(schema, obj) if maps and not kind.custom else None
        paths = prune(schema, obj)
        paths = paths if named is None else named
        if not kind.custom and kind.group != "apiextensions.k8s.io":
            shape(schema, obj, nulls_of(self._schemas.version))
        if kind.custom:
            # metadata is decoded before the rest, and the rest is reported in the order of the
            # paths
            paths.sort(key=lambda path: (not path.startswith("metadata."), path))
        return [f'unknown field "{path}"' for path in paths]

    def empty(self, kind: Kind, version: str) -> Object:
        """The fields of a new object of a built-in kind, before any client writes."""
        if kind.custom or kind.group == "apiextensions.k8s.io":
            return {}
        schema = self._schemas.find(kind.group, version, kind.kind)
        fields = {} if schema is None else empty(schema, nulls_of(self._schemas.version))
        fields.pop("metadata", None)
        return fields

    def settle(self, kind: Kind, obj: Object) -> None:
        """Change an object to the form in which the storage returns it."""
        if kind.custom or kind.group == "apiextensions.k8s.io":
            return
        schema = self._schemas.find(kind.group, kind.version, kind.kind)
        if schema is not None:
            settle(schema, obj, nulls_of(self._schemas.version))

    def problem(self, group: str, version: str, name: str, body: Object) -> str:
        """The decoder's error text for a body of that kind; '' if there is none."""
        schema = self._schemas.find(group, version, name)
        return "" if schema is None else _type_problem(schema, body, Place(name, ""))

    def model_problem(self, model: str, name: str, value: Json) -> str:
        """The error text for the value of a struct that is no kind; ``name`` is its Go type."""
        return _type_problem(self._schemas.model(model), value, Place(name, ""))

    def check(self, group: str, version: str, name: str, body: Object) -> list[str]:
        """Check a body that is not stored (a Binding, a Scale); ``name`` is its Kind.

        Unknown fields are removed and returned: ``unknown field "spec.x"``.

        Raises:
            StatusError: 400, a field has the wrong JSON type.
        """
        schema = self._schemas.find(group, version, name)
        if schema is None:
            return []
        problem = self.problem(group, version, name, body)
        if problem:
            raise _cannot_handle(name, version, problem)
        drop_nulls(schema, body)
        return [f'unknown field "{path}"' for path in prune(schema, body)]


def _cannot_handle(name: str, version: str, why: str) -> StatusError:
    return bad_request(f'{name} in version "{version}" cannot be handled as a {name}: {why}')


_CONFIGURATIONS = ("DeviceClaimConfiguration", "DeviceClassConfiguration")
"""Structs whose configuration is in an embedded struct, which decoding errors name."""


class _Unread(Exception):
    """A type with a decoder of its own cannot read its value. Decoding stops with that error."""


def _type_problem(schema: Schema, value: Json, place: Place) -> str:
    """The text of Go's decoder for values of wrong types; '' if there are none.

    The decoder continues after a wrong type, and reports the first one at the end.
    """
    try:
        problems = list(_problems(schema, value, place))
        return problems[0] if problems else ""
    except _Unread as error:
        return str(error)


def _problems(schema: Schema, value: Json, place: Place) -> Iterator[str]:
    """The errors of wrong types, in the order of the values.

    Raises:
        _Unread: a type with a decoder of its own cannot read its value.
    """
    if value is None:
        return
    if schema.format in _FORMATS:
        problem = format_problem(schema.format, value).replace(FIELD, place.field)
        if problem and schema.format != "byte":
            raise _Unread(problem)
        if problem:
            yield problem
    elif schema.type in ("object", "map") and isinstance(value, dict):
        yield from _inside_object(schema, value, place)
    elif schema.type == "array" and isinstance(value, list):
        for item in value if schema.items is not None else ():
            yield from _problems(schema.items or schema, item, place)
    elif not _fits(schema, value):
        yield _mismatch(schema, value, place)


def _inside_object(schema: Schema, value: dict[str, Json], place: Place) -> Iterator[str]:
    struct = go_name(schema.definition) or place.struct
    for key, item in value.items():
        below = schema.field(key)
        if below is None or (_fits(below, item) and below.format not in _FORMATS):
            # most fields are sound scalars, for which no place is made
            continue
        # like the decoder, count only fields in the path, not keys of maps
        path = place.path if schema.type == "map" else f"{place.path}.{key}".lstrip(".")
        if schema.definition.endswith(_CONFIGURATIONS) and key == "opaque":
            path = f"{place.path}.DeviceConfiguration.opaque"
        yield from _problems(below, item, Place(struct, path, schema.definition))


def _fits(schema: Schema, value: Json) -> bool:
    kind = schema.type
    if kind in ("object", "map", "array"):
        return False
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


def _mismatch(schema: Schema, value: Json, place: Place) -> str:
    wanted = place.named or go_type(schema)
    if schema.type == "array" and place.named:
        wanted = f"[]{place.named}"
    given = _json_name(schema, value)
    return f"json: cannot unmarshal {given} into Go {place.field} of type {wanted}"


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
    """Remove each null in ``value`` as Go does; in lists and maps it is the zero value."""
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
        if item is None and items.format == "quantity":
            value[key] = "0"
        elif item is None and items.type in _ZEROES:
            value[key] = _ZEROES[items.type]()
        else:
            drop_nulls(items, item)
