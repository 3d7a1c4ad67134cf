"""Decode what the server sends into structs: single objects, pages of lists, and watch streams.

A watch stream that falls silent is given up.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, Literal, TypeVar

import msgspec

from claimctl.kube.errors import LostEvent, from_status
from claimctl.wire.base import Body, Wire, decode
from claimctl.wire.meta import ListMeta, Status
from claimctl.wire.nesting import members, parts
from claimctl.wire.resources import Resource
from claimctl.wire.unreadable import Unreadable

T = TypeVar("T")

EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
_CHANGES: dict[str, EventType] = {"ADDED": "ADDED", "MODIFIED": "MODIFIED", "DELETED": "DELETED"}


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """A list, or one page of a list.

    Only a page has ``continue_token``. ``unreadable`` has objects that exist and cannot be
    decoded: a caller that treats an object as gone because ``items`` lacks it must look there too.
    """

    items: tuple[T, ...]
    resource_version: str
    continue_token: str = ""
    unreadable: tuple[Unreadable, ...] = ()


class _Page(Wire, Generic[T], frozen=True, kw_only=True):
    metadata: ListMeta = ListMeta()
    # Go encodes an empty list as null
    items: tuple[T, ...] | None = None


def decode_page(resource: Resource[T], body: Body) -> Listing[T]:
    """Decode one page of a list. An object that cannot be decoded does not affect the others.

    Raises:
        msgspec.MsgspecError: the body is not JSON, or not a list.
    """
    try:
        page: _Page[T] = decode(body, _Page[resource.type], mend=False)  # type: ignore[name-defined]  # a type made at run time
        items = page.items or ()
        if all(item.metadata.name for item in items):  # type: ignore[attr-defined]  # all that can be listed have metadata
            return Listing(items, page.metadata.resource_version, page.metadata.continue_)
    except msgspec.MsgspecError:
        pass
    raw = raw_page(body)
    objects: list[Any] = [decode_object(resource, item) for item in raw.items or ()]
    read = tuple(obj for obj in objects if not isinstance(obj, Unreadable))
    unread = tuple(obj for obj in objects if isinstance(obj, Unreadable))
    return Listing(read, raw.metadata.resource_version, raw.metadata.continue_, unread)


def raw_page(body: Body) -> _Page[msgspec.Raw]:
    """One page of a list, with undecoded objects. Raises MsgspecError if it is none."""
    try:
        return decode(body, _Page[msgspec.Raw])
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError as error:
        with suppress(msgspec.DecodeError):
            fields = dict(members(bytes(body)))
            items = tuple(map(msgspec.Raw, parts(bytes(fields.get("items", b"")), b"[")))
            return _Page(metadata=decode(fields.get("metadata", b""), ListMeta), items=items)
        raise error


def decode_object(resource: Resource[T], raw: bytes | msgspec.Raw) -> T | Unreadable:
    """Decode one object of a list or a watch; ``Unreadable`` if it cannot be decoded."""
    try:
        obj: T = decode(raw, resource.type)
    except msgspec.MsgspecError as error:
        return Unreadable.of(resource, bytes(raw), str(error))
    if obj.metadata.name:  # type: ignore[attr-defined]  # all that can be listed have metadata
        return obj
    return Unreadable.of(resource, bytes(raw), "metadata.name is missing")


LONGEST_LINE = 16_000_000
"""Bytes. An object of 1.5 MB, as etcd takes it, may have six times as many in JSON."""


async def lines(body: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the non-empty lines of a stream. An incomplete last line is dropped.

    Raises:
        msgspec.DecodeError: a line is too long.
    """
    pieces: list[bytes] = []
    size = 0
    async for chunk in body:
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            joined = b"".join((*pieces, line)) if pieces else line
            pieces.clear()
            size = 0
            if joined.strip():
                yield joined
        if rest:
            pieces.append(rest)
            size += len(rest)
            if size > LONGEST_LINE:
                raise msgspec.DecodeError(f"a line has more than {LONGEST_LINE / 1e6:g} MB")


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[T]):
    """One event of a watch.

    ``object`` is None for a BOOKMARK, which has only a version. To resume after the event, watch
    from ``resource_version``; for DELETED it is the version of the deletion. If the object cannot
    be decoded, ``unreadable`` is set instead of ``object``, and the version may be ''.
    """

    type: EventType
    object: T | None
    resource_version: str
    unreadable: Unreadable | None = None


_SILENCE_SECONDS = 150.0
"""After this time without data, a stream counts as dead. Servers send a bookmark about once a
minute."""
_GRACE_SECONDS = 15.0
"""If the server does not close a stream when its time is over, we close it so much later."""


async def watch_events(
    method: str, path: str, resource: Resource[T], body: AsyncIterator[bytes], seconds: int
) -> AsyncGenerator[WatchEvent[T], None]:
    """Yield the events of a stream, until it ends, reaches its time limit or falls silent.

    Raises:
        ApiError: the server sent an ERROR event; the error class is the one for its status code.
        LostEvent: a line is not an event.
    """
    async with aclosing(lines(_until(body, seconds))) as stream:
        try:
            async for line in stream:
                yield _event(method, path, resource, line)
        except msgspec.MsgspecError as error:
            raise LostEvent(method, path, message=f"not a watch event: {error}") from error


async def _until(body: AsyncIterator[bytes], seconds: int) -> AsyncGenerator[bytes, None]:
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds + _GRACE_SECONDS
    while True:
        try:
            async with asyncio.timeout_at(min(end, loop.time() + _SILENCE_SECONDS)):
                chunk = await anext(body, None)
        except TimeoutError:
            return
        if chunk is None:
            return
        yield chunk


class _Line(Wire, Generic[T], frozen=True, kw_only=True):
    """A line with its object, which is decoded at once in nearly all lines."""

    type: str
    object: T


@cache
def _line_type(type_: Any) -> Any:
    return _Line[type_]


def _event(method: str, path: str, resource: Resource[T], line: bytes) -> WatchEvent[T]:
    type_: Any = resource.type
    try:
        whole = decode(line, _line_type(type_), mend=False)
    except msgspec.MsgspecError:
        return _rare_event(method, path, resource, line)
    if whole.type in _CHANGES and whole.object.metadata.name:
        version = whole.object.metadata.resource_version
        return WatchEvent(_CHANGES[whole.type], whole.object, version)
    return _rare_event(method, path, resource, line)


def _rare_event(method: str, path: str, resource: Resource[T], line: bytes) -> WatchEvent[T]:
    """A bookmark, an error, or an object with nulls or that cannot be decoded."""
    event = _raw_line(line)
    if event.type in _CHANGES:
        return _change(resource, _CHANGES[event.type], event.object)
    if event.type == "BOOKMARK":
        at = Unreadable.of(resource, bytes(event.object), "").resource_version
        return WatchEvent("BOOKMARK", None, at)
    if event.type == "ERROR":
        status = decode(event.object, Status)
        raise from_status(method, path, status.code or 500, status)
    raise LostEvent(method, path, message=f"unknown watch event type {event.type!r}")


_PARTED = re.compile(rb'\s*{\s*"type"\s*:\s*"(\w+)"\s*,\s*"object"\s*:\s*(.*)}\s*', re.DOTALL)
"""An event as servers write it. A split by brackets would take 0.4 s for the largest objects."""


def _raw_line(line: bytes) -> _Line[msgspec.Raw]:
    try:
        return decode(line, _Line[msgspec.Raw])
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        parted = _PARTED.fullmatch(line)
        if parted is None:
            raise
        return _Line(type=parted[1].decode(), object=msgspec.Raw(parted[2]))


def _change(resource: Resource[T], type_: EventType, raw: msgspec.Raw) -> WatchEvent[T]:
    object_: Any = decode_object(resource, raw)
    if isinstance(object_, Unreadable):
        return WatchEvent(type_, None, object_.resource_version, object_)
    return WatchEvent(type_, object_, object_.metadata.resource_version)
