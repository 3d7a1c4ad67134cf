"""Removes nulls that a type does not allow, since null means absent in Kubernetes' JSON.

Servers write null for fields that are not set (1.32 writes ``adminAccess: null``). Strict decoding
is fast but refuses such a null. So only refused JSON comes here, and is decoded again without its
nulls. A field whose type allows None keeps its null. It means absent there as well, unless the
field has another default (``reallocateTimeoutSeconds``, where the schema says ``nullable``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

_NULL = b"null"


def without_nulls(data: bytes, type_: Any) -> bytes:
    """The JSON without the nulls that ``type_`` does not allow.

    The other bytes stay as they are. Values that do not match ``type_`` stay, and the decoder
    refuses them. Fields that ``type_`` does not have may be dropped.

    Raises:
        msgspec.DecodeError: ``data`` is not JSON.
    """
    return _prune(data.strip(), _shape(type_))


@cache
def _shape(type_: Any) -> inspect.Type:
    return inspect.type_info(type_)


@cache
def _fields(struct: Any) -> Mapping[str, inspect.Type]:
    """The types of a struct's fields, by their JSON names."""
    shape = _shape(struct)
    assert isinstance(shape, inspect.StructType)
    return {field.encode_name: field.type for field in shape.fields}


def _prune(data: bytes, shape: inspect.Type) -> bytes:
    if _NULL not in data:
        return data
    shape = _present(shape)
    if isinstance(shape, inspect.StructType) and data.startswith(b"{"):
        return _object(_members(data, _fields(shape.cls)))
    if isinstance(shape, inspect.DictType) and data.startswith(b"{"):
        members = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        return _object(_members(data, dict.fromkeys(members, shape.value_type)))
    if isinstance(shape, inspect.VarTupleType | inspect.ListType) and data.startswith(b"["):
        entries = map(bytes, msgspec.json.decode(data, type=list[msgspec.Raw]))
        kept = (_prune(entry, shape.item_type) for entry in entries if entry != _NULL)
        return b"[" + b",".join(kept) + b"]"
    return data


def _members(data: bytes, types: Mapping[str, inspect.Type]) -> Iterator[tuple[str, bytes]]:
    members = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    for name, raw in members.items():
        shape, value = types.get(name), bytes(raw)
        if shape is not None and (value != _NULL or takes_null(shape)):
            yield name, _prune(value, shape)


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
