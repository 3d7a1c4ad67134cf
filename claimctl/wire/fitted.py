"""Makes a status fit the schema of its own CRD, so that the API server accepts it.

A status has values that others chose: names, times, grace periods of pods. The limits are those in
``wire.limits``, from which the CRDs are made, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from operator import is_
from typing import Any, TypeVar

import msgspec
from msgspec.inspect import (
    Field,
    IntType,
    Metadata,
    NoneType,
    StrType,
    StructType,
    Type,
    UnionType,
    VarTupleType,
    type_info,
)

from claimctl.wire.base import Object, to_plain
from claimctl.wire.limits import PRESENCE, WHOLE

S = TypeVar("S", bound=msgspec.Struct)
Fit = Callable[[Any], Any]
Limits = Mapping[str, Any]
_LEAST, _MOST = -(2**63), 2**63 - 1


class OutOfBounds(Exception):
    """The value cannot be made to fit: a name or a UID means nothing when it is cut."""


def fitted(status: S) -> S:
    """The struct with every value, also of nested structs, within the limits of its schema.

    A number becomes the nearest one that is allowed, a text is shortened, a list loses what is too
    much or there twice. A name, a UID or a word that does not fit becomes the default of its field.
    If the field has none, the struct around it goes. The same object comes back if all of it fits.

    Raises:
        OutOfBounds: a required field of ``status`` itself does not fit.
    """
    changed = {}
    for field in _fields(type(status)):
        value = getattr(status, field.name)
        try:
            fit = field.fit(value)
        except OutOfBounds:
            if field.required or field.default is msgspec.NODEFAULT:
                raise
            fit = field.default
        if fit is not value:
            changed[field.name] = fit
    return msgspec.structs.replace(status, **changed) if changed else status


def status_body(status: msgspec.Struct) -> Object:
    """A status as JSON, with the empty fields that its schema requires, and each number: where a
    merge patch says null, it is not seen what the number became."""
    body: Object = to_plain(status)
    for field in _fields(type(status)):
        value = getattr(status, field.name)
        if isinstance(value, msgspec.Struct):
            body[field.key] = status_body(value)
        elif isinstance(value, tuple) and value and isinstance(value[0], msgspec.Struct):
            body[field.key] = [status_body(item) for item in value]
        elif field.shown and value is not None:
            body.setdefault(field.key, to_plain(value))
    return body


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    key: str
    """The name in JSON."""
    required: bool
    shown: bool
    """Whether its default stands in the JSON, too."""
    default: Any
    fit: Fit


@cache
def _fields(struct: type[msgspec.Struct]) -> tuple[_Field, ...]:
    described = type_info(struct)
    assert isinstance(described, StructType)
    return tuple(map(_field, described.fields))


def _field(field: Field) -> _Field:
    kind, limits = _limits(field.type)
    presence = limits.get(PRESENCE)
    required = presence == "required"
    return _Field(
        name=field.name,
        key=field.encode_name,
        required=required,
        shown=required or (isinstance(kind, IntType) and presence is None),
        default=field.default,
        fit=_fit(kind, limits, required=required),
    )


def _limits(type_: Type) -> tuple[Type, Limits]:
    """The type without its metadata, and the keywords of its schema."""
    limits: dict[str, Any] = {}
    while isinstance(type_, Metadata):
        limits = {**(type_.extra_json_schema or {}), **limits}
        type_ = type_.type
    return type_, limits


def _fit(type_: Type, limits: Limits, *, required: bool = False) -> Fit:
    """What makes a value of the type fit; it raises OutOfBounds."""
    match type_:
        case UnionType(types=(inner, NoneType())):
            fit = _fit(*_limits(inner))
            return (
                _never_none(fit)
                if required
                else lambda value: None if value is None else fit(value)
            )
        case VarTupleType(item_type=item):
            return _items(_fit(*_limits(item)), limits, _key_of(item, limits))
        case StructType():
            return fitted
        case IntType():
            return _number(limits.get("minimum", _LEAST), limits.get("maximum", _MOST))
        case StrType():
            return _text(limits)
    return lambda value: value


def _never_none(fit: Fit) -> Fit:
    def never_none(value: Any) -> Any:
        if value is None:
            raise OutOfBounds
        return fit(value)

    return never_none


def _number(least: int, most: int) -> Fit:
    return lambda value: value if least <= value <= most else min(max(value, least), most)


def _text(limits: Limits) -> Fit:
    most, least = limits.get("maxLength"), limits.get("minLength", 0)
    allowed, pattern = limits.get("enum"), re.compile(limits.get("pattern", "(?s:.*)"))

    def text(value: str) -> str:
        if most is not None and len(value) > most:
            if limits.get(WHOLE):
                raise OutOfBounds
            value = f"{value[: most - 3]}..."
        if len(value) < least or not pattern.fullmatch(value):
            raise OutOfBounds
        if allowed is not None and value not in allowed:
            raise OutOfBounds
        return value

    return text


def _key_of(item: Type, limits: Limits) -> Fit | None:
    """What tells the items of a list apart; None if equal ones may be there."""
    if keys := limits.get("x-kubernetes-list-map-keys"):
        assert isinstance(item, StructType)
        names = [field.name for field in item.fields if field.encode_name in keys]
        return lambda value: tuple(getattr(value, name) for name in names)
    return (lambda value: value) if limits.get("x-kubernetes-list-type") == "set" else None


def _items(fit: Fit, limits: Limits, key_of: Fit | None) -> Fit:
    most = limits.get("maxItems")

    def items(values: tuple[Any, ...]) -> tuple[Any, ...]:
        fit_ones = list(_those_that_fit(fit, values))
        if key_of is not None:
            first: dict[Any, Any] = {}
            for item in fit_ones:
                first.setdefault(key_of(item), item)
            fit_ones = list(first.values())
        same = len(fit_ones[:most]) == len(values) and all(map(is_, fit_ones, values))
        return values if same else tuple(fit_ones[:most])

    return items


def _those_that_fit(fit: Fit, values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        with suppress(OutOfBounds):
            yield fit(value)
