"""Decode request bodies in protobuf, which Go's clients send for built-in kinds.

Answers are always JSON, which these clients accept, too. ``protobuf_fields.txt`` has the numbers of
the fields: a message per line, ``name=number:type``. Without a type it is str. ``[T]`` is a list,
``{T}`` a map with string keys, and ``<T>`` a message whose fields are in the JSON object around it.
A body with a field that is not in the table is refused: no part of it is ever lost. Go sends zeros
and empty strings, too: what decodes JSON drops those that Go leaves out.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib.resources import files
from typing import Any

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_PACKAGES = {"": "core", "meta.k8s.io": "meta"}

Json = Any
Wire = int | bytes


class ProtobufError(ValueError):
    """The bytes are broken, or of an unknown kind."""


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: str
    form: str
    """one, list, map or inline."""


def decode_body(data: bytes) -> dict[str, Json]:
    """Decode a body: the envelope with apiVersion and kind, and the object in it.

    Raises:
        ProtobufError: the bytes make no sense, or the kind or a field is not in the table.
    """
    if not data.startswith(_MAGIC):
        raise ProtobufError("the body does not begin as Kubernetes' protobuf does")
    try:
        envelope = dict(_fields(data[len(_MAGIC) :]))
        kind = {number: _text(value) for number, value in _fields(_raw(envelope.get(1, b"")))}
        version, name = kind.get(1, ""), kind.get(2, "")
        obj = _message(_message_name(version, name), _raw(envelope.get(2, b"")))
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise ProtobufError(f"the body ends too early or is broken: {error}") from error
    return {"apiVersion": version, "kind": name, **obj}


def _message_name(version: str, kind: str) -> str:
    group, _, short = version.rpartition("/")
    package = _PACKAGES.get(group, group.partition(".")[0])
    name = "meta.DeleteOptions" if kind == "DeleteOptions" else f"{package}.{kind}"
    if name not in _table() or (short != "v1" and kind != "DeleteOptions"):
        raise ProtobufError(f"{kind} of {version} is not understood in protobuf; send JSON")
    return name


@lru_cache(maxsize=1)
def _table() -> dict[str, dict[int, Field]]:
    text = files("kube_in_process.http").joinpath("protobuf_fields.txt").read_text("utf-8")
    table = {}
    for line in text.splitlines():
        name, _, fields = line.partition(":")
        table[name] = dict(_field(part) for part in fields.split())
    return table


def _field(text: str) -> tuple[int, Field]:
    name, _, rest = text.partition("=")
    number, _, kind = rest.partition(":")
    form = {"[": "list", "{": "map", "<": "inline"}.get(kind[:1], "one")
    inner = kind if form == "one" else kind[1:-1]
    return int(number), Field(name, inner or "str", form)


def _message(name: str, data: bytes) -> dict[str, Json]:
    known = _table().get(name, {})
    message: dict[str, Json] = {}
    for number, value in _fields(data):
        field = known.get(number)
        if field is not None:
            _put(message, field, value)
        elif value not in _SAYS_NOTHING:
            raise ProtobufError(
                f"field {number} of {name} is not understood in protobuf; send JSON"
            )
    return message


_SAYS_NOTHING = (0, b"")
"""Go sends each field that is no pointer, so also those that are not set."""


def _put(message: dict[str, Json], field: Field, value: Wire) -> None:
    if field.form == "inline":
        message |= _message(field.type, _raw(value))
        return
    if field.form == "map":
        pair = dict(_fields(_raw(value)))
        key = _text(pair.get(1, b""))
        message.setdefault(field.name, {})[key] = _value(field.type, pair.get(2, b""))
        return
    decoded = _value(field.type, value)
    if field.form == "list":
        message.setdefault(field.name, []).append(decoded)
    elif decoded is not None:
        message[field.name] = decoded


def _value(kind: str, value: Wire) -> Json:
    scalar = _SCALARS.get(kind)
    if scalar is not None:
        return scalar(value)
    message = _message(kind, _raw(value))
    if kind in _METADATA:
        unset = {"generation": 0}
        return {key: part for key, part in message.items() if part not in ("", unset.get(key, ""))}
    return message.get("items", []) if kind.endswith(".ExtraValue") else message


def _raw(value: Wire) -> bytes:
    if isinstance(value, int):
        raise ProtobufError("a number stands where a message was expected")
    return value


def _text(value: Wire) -> str:
    return _raw(value).decode("utf-8")


def _integer(value: Wire) -> int:
    """An integer. Negative numbers are 64-bit complements."""
    number = value if isinstance(value, int) else struct.unpack("<q", value.ljust(8, b"\0"))[0]
    return number - (1 << 64) if number >= 1 << 63 else int(number)


def _time(value: Wire) -> str | None:
    parts = dict(_fields(_raw(value)))
    if not parts:
        return None
    moment = datetime.fromtimestamp(_integer(parts.get(1, 0)), UTC)
    nanos = _integer(parts.get(2, 0))
    fraction = f".{nanos // 1000:06d}" if nanos else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def _quantity(value: Wire) -> str:
    return _text(dict(_fields(_raw(value))).get(1, b""))


def _int_or_string(value: Wire) -> int | str:
    parts = dict(_fields(_raw(value)))
    return _text(parts.get(3, b"")) if parts.get(1) == 1 else _integer(parts.get(2, 0))


def _embedded(value: Wire) -> Json:
    raw = _raw(dict(_fields(_raw(value))).get(1, b""))
    return json.loads(raw) if raw else None


def _double(value: Wire) -> float:
    return float(struct.unpack("<d", value)[0]) if isinstance(value, bytes) else float(value)


_METADATA = ("meta.ObjectMeta", "meta.ManagedFieldsEntry")
"""Messages whose zeros are dropped here, since metadata is decoded by rules of its own."""
_SCALARS: dict[str, Callable[[Wire], Json]] = {
    "str": _text,
    "int": _integer,
    "bool": bool,
    "double": _double,
    "bytes": lambda value: base64.b64encode(_raw(value)).decode(),
    "time": _time,
    "quantity": _quantity,
    "intorstr": _int_or_string,
    "raw": _embedded,
}


def _fields(data: bytes) -> Iterator[tuple[int, Wire]]:
    """Yield the field numbers and values of one message, in order."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == _BYTES:
            size, at = _varint(data, at)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ProtobufError(f"wire type {wire} is not used by Kubernetes")
        if at + size > len(data):
            raise ProtobufError("a field is longer than the body")
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
        shift += 7
