"""Mends JSON that a type does not allow, where it is clear what the value has to count as.

- A null means absent in Kubernetes' JSON. Servers write null for fields that are not set (1.32
  writes ``adminAccess: null``). A field whose type allows None keeps its null. It means absent
  there as well, unless the field has another default (``reallocateTimeoutSeconds``, where the
  schema says ``nullable``).
- A time that cannot be computed with (see ``times``) is absent, too. But an object that is being
  deleted stays so, whenever that began.
- A whole number beyond the limits of its type counts as the limit.

Strict decoding is fast and refuses such values. So only refused JSON comes here, and is decoded
again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from claimctl.wire.times import EARLIEST, moment

_NULL = b"null"
_TIME = rb'"-?\d{3,6}-\d\d-\d\d[Tt ][^"]*"'
_TIMES = re.compile(_TIME)
_NUMBER = re.compile(rb"-?\d+")
_SUSPECT = re.compile(_NULL + b"|" + _TIME + rb"|(?:^|[:\[,])\s*(?:-|\d{10})")
"""Whatever is mended has such a part."""
_ALWAYS: Mapping[str, bytes] = {"deletionTimestamp": msgspec.json.encode(EARLIEST)}
"""Fields whose presence counts, and what stands there for a time that cannot be computed with."""


def mended(data: bytes, type_: Any) -> bytes:
    """The JSON with the values that ``type_`` allows.

    The other bytes stay as they are. Values that do not match ``type_`` in another way stay, and
    the decoder refuses them. Fields that ``type_`` does not have may be dropped.

    Raises:
        msgspec.DecodeError: ``data`` is not JSON.
    """
    return _mend(data.strip(), _shape(type_))


@cache
def _shape(type_: Any) -> inspect.Type:
    return inspect.type_info(type_)


@cache
def _fields(struct: Any) -> Mapping[str, inspect.Type]:
    """The types of a struct's fields, by their JSON names."""
    shape = _shape(struct)
    assert isinstance(shape, inspect.StructType)
    return {field.encode_name: field.type for field in shape.fields}


def _mend(data: bytes, shape: inspect.Type) -> bytes:
    if not _SUSPECT.search(data):
        return data
    shape = _present(shape)
    if isinstance(shape, inspect.StructType) and data.startswith(b"{"):
        return _object(_members(data, _fields(shape.cls)))
    if isinstance(shape, inspect.DictType) and data.startswith(b"{"):
        members = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        return _object(_members(data, dict.fromkeys(members, shape.value_type)))
    if isinstance(shape, inspect.VarTupleType | inspect.ListType) and data.startswith(b"["):
        entries = map(bytes, msgspec.json.decode(data, type=list[msgspec.Raw]))
        kept = (_mend(entry, shape.item_type) for entry in entries if entry != _NULL)
        return b"[" + b",".join(kept) + b"]"
    if isinstance(shape, inspect.IntType) and _NUMBER.fullmatch(data):
        return _within(data, shape)
    return data


def _members(data: bytes, types: Mapping[str, inspect.Type]) -> Iterator[tuple[str, bytes]]:
    members = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    for name, raw in members.items():
        shape, value = types.get(name), bytes(raw)
        if shape is not None and isinstance(_present(shape), inspect.DateTimeType):
            value = value if _can_be(value) else _ALWAYS.get(name, _NULL)
        if shape is not None and (value != _NULL or takes_null(shape)):
            yield name, _mend(value, shape)


def _can_be(value: bytes) -> bool:
    """Whether the value of a time can be computed with; True for what looks like no time at all."""
    return not _TIMES.fullmatch(value) or moment(value[1:-1].decode(errors="replace")) is not None


def _within(number: bytes, shape: inspect.IntType) -> bytes:
    """The number, or the limit of its type that it exceeds."""
    # so many digits are enough to see that
    value, least, most = int(number[:30]), shape.ge, shape.le
    if least is not None and value < least:
        return str(least).encode()
    return str(most).encode() if most is not None and value > most else number


def _object(members: Iterator[tuple[str, bytes]]) -> bytes:
    encode = msgspec.json.encode
    return b"{" + b",".join(encode(name) + b":" + value for name, value in members) + b"}"


def takes_null(shape: inspect.Type) -> bool:
    """Whether None is a value of the type."""
    shape = without_metadata(shape)
    return isinstance(shape, inspect.UnionType) and shape.includes_none


def _present(shape: inspect.Type) -> inspect.Type:
    """The type without None."""
    shape = without_metadata(shape)
    if not isinstance(shape, inspect.UnionType):
        return shape
    types = map(without_metadata, shape.types)
    return next(type_ for type_ in types if not isinstance(type_, inspect.NoneType))


def without_metadata(shape: inspect.Type) -> inspect.Type:
    """The type without its limits."""
    while isinstance(shape, inspect.Metadata):
        shape = shape.type
    return shape
