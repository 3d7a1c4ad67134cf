"""Read watch streams: decode lines into events, and give up a silent stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import msgspec

from claimctl.kube.codec import decode_object, lines
from claimctl.kube.errors import LostEvent, from_status
from claimctl.wire.base import decode
from claimctl.wire.meta import Status, WatchLine
from claimctl.wire.resources import Resource
from claimctl.wire.seams import Query
from claimctl.wire.unreadable import Unreadable

T = TypeVar("T")

EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
_CHANGES: dict[str, EventType] = {"ADDED": "ADDED", "MODIFIED": "MODIFIED", "DELETED": "DELETED"}


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


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one stream, in seconds.

    Attributes:
        timeout: after this time, the server is asked to close the stream.
        silence: after this time without data, the stream counts as dead. Servers send a bookmark
            about once a minute.
        grace: if the server does not close it, we close the stream this long after ``timeout``.
    """

    timeout: int = 300
    silence: float = 150.0
    grace: float = 15.0

    def query(self, resource_version: str) -> Query:
        return (
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", resource_version),
            ("timeoutSeconds", str(self.timeout)),
        )


async def events(
    method: str, path: str, resource: Resource[T], body: AsyncIterator[bytes], limits: Limits
) -> AsyncGenerator[WatchEvent[T], None]:
    """Yield the events of a stream, until it ends, reaches its time limit or falls silent.

    Raises:
        ApiError: the server sent an ERROR event; the error class is the one for its status code.
        LostEvent: a line is not an event.
    """
    async with aclosing(lines(_until(body, limits))) as stream:
        async for line in stream:
            try:
                yield _event(method, path, resource, line)
            except msgspec.MsgspecError as error:
                raise LostEvent(method, path, message=f"not a watch event: {error}") from error


async def _until(body: AsyncIterator[bytes], limits: Limits) -> AsyncGenerator[bytes, None]:
    loop = asyncio.get_running_loop()
    end = loop.time() + limits.timeout + limits.grace
    while True:
        try:
            async with asyncio.timeout_at(min(end, loop.time() + limits.silence)):
                chunk = await anext(body, None)
        except TimeoutError:
            return
        if chunk is None:
            return
        yield chunk


def _event(method: str, path: str, resource: Resource[T], line: bytes) -> WatchEvent[T]:
    found = decode(line, WatchLine)
    if found.type in _CHANGES:
        return _change(resource, _CHANGES[found.type], found.object)
    if found.type == "BOOKMARK":
        at = Unreadable.of(resource, bytes(found.object), "").resource_version
        return WatchEvent("BOOKMARK", None, at)
    if found.type == "ERROR":
        told = decode(found.object, Status)
        raise from_status(method, path, told.code or 500, told)
    raise LostEvent(method, path, message=f"unknown watch event type {found.type!r}")


def _change(resource: Resource[T], type_: EventType, raw: msgspec.Raw) -> WatchEvent[T]:
    object_: Any = decode_object(resource, raw)
    if isinstance(object_, Unreadable):
        return WatchEvent(type_, None, object_.resource_version, object_)
    return WatchEvent(type_, object_, object_.metadata.resource_version)
