"""The base of all wire structs and the conversions between structs and JSON bytes."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """An immutable piece of a Kubernetes object; field names are camelCase on the wire."""


_encoder = msgspec.json.Encoder()


def encode(value: object) -> bytes:
    """Encode a struct or plain JSON value as compact JSON bytes."""
    return _encoder.encode(value)


def decode(data: bytes | str | msgspec.Raw, type_: type[T]) -> T:
    """Decode JSON bytes to ``type_``.

    Raises:
        msgspec.ValidationError: the JSON does not have the shape of ``type_``.
        msgspec.DecodeError: the bytes are not JSON.
    """
    return msgspec.json.decode(data, type=type_)


def to_plain(value: object) -> Any:
    """A struct as plain dicts and lists with JSON names, for patches and for printing."""
    return msgspec.to_builtins(value)


def from_plain(value: object, type_: type[T]) -> T:
    """Plain dicts and lists as ``type_``; raises ``msgspec.ValidationError`` on a bad shape."""
    return msgspec.convert(value, type_)
