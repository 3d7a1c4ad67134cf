"""Watch streams: lines to events, and when a silent stream is given up."""

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
    """One event; ``object`` is None for a BOOKMARK, which only moves the version on.

    ``resource_version`` is where to resume after this event; for DELETED it is the version of
    the deletion. In place of an object that cannot be decoded there is ``unreadable``; its
    version may be ''.
    """

    type: EventType
    object: T | None
    resource_version: str
    unreadable: Unreadable | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """How long one stream may go on. Seconds.

    Attributes:
        timeout: after this the server is asked to close the stream.
        silence: after this long without a single line the stream is given up for dead. Servers
            send a bookmark about once a minute.
        grace: how much later than ``timeout`` the stream is cut from this side.
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
    """The events of a stream, ending quietly with it, with its time or with its silence.

    Raises:
        ApiError: what an ERROR event stands for, as if it had been an HTTP status.
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
