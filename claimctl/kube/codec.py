"""Decode bytes into structs: single objects, pages of lists, and lines of watches."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from claimctl.wire.base import Wire, decode
from claimctl.wire.meta import ListMeta
from claimctl.wire.resources import Resource
from claimctl.wire.unreadable import Unreadable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """A list, or one page of a list.

    Only a page has ``continue_token`` and ``remaining`` (None: unknown). ``unreadable`` has
    objects that exist and cannot be decoded: a caller that treats an object as gone because
    ``items`` lacks it must look there too.
    """

    items: tuple[T, ...]
    resource_version: str
    continue_token: str = ""
    remaining: int | None = None
    unreadable: tuple[Unreadable, ...] = ()


class _Page(Wire, Generic[T], frozen=True, kw_only=True):
    metadata: ListMeta = ListMeta()
    # Go encodes an empty list as null
    items: tuple[T, ...] | None = None


class _RawPage(Wire, frozen=True, kw_only=True):
    metadata: ListMeta = ListMeta()
    items: tuple[msgspec.Raw, ...] | None = None


def decode_page(resource: Resource[T], body: bytes) -> Listing[T]:
    """Decode one page of a list. An object that cannot be decoded does not affect the others.

    Raises:
        msgspec.MsgspecError: the body is not JSON, or not a list.
    """
    try:
        page: _Page[T] = decode(body, _Page[resource.type], nulls=False)  # type: ignore[name-defined]  # a type made at run time
        items = page.items or ()
        if all(item.metadata.name for item in items):  # type: ignore[attr-defined]  # all that can be listed have metadata
            return _listing(page.metadata, items)
    except msgspec.MsgspecError:
        pass
    raw = decode(body, _RawPage)
    read: list[T] = []
    unread: list[Unreadable] = []
    for each in raw.items or ():
        found = decode_object(resource, each)
        if isinstance(found, Unreadable):
            unread.append(found)
        else:
            read.append(found)
    return _listing(raw.metadata, tuple(read), tuple(unread))


def _listing(
    meta: ListMeta, items: tuple[T, ...], unreadable: tuple[Unreadable, ...] = ()
) -> Listing[T]:
    return Listing(
        items, meta.resource_version, meta.continue_, meta.remaining_item_count, unreadable
    )


def decode_object(resource: Resource[T], raw: bytes | msgspec.Raw) -> T | Unreadable:
    """Decode one object of a list or a watch; ``Unreadable`` if it cannot be decoded."""
    try:
        found: T = decode(raw, resource.type)
    except msgspec.MsgspecError as error:
        return Unreadable.of(resource, bytes(raw), str(error))
    if found.metadata.name:  # type: ignore[attr-defined]  # all that can be listed have metadata
        return found
    return Unreadable.of(resource, bytes(raw), "metadata.name is missing")


async def lines(body: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the non-empty lines of a stream. An incomplete last line is dropped."""
    pieces: list[bytes] = []
    async for chunk in body:
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            joined = b"".join((*pieces, line)) if pieces else line
            pieces.clear()
            if joined.strip():
                yield joined
        if rest:
            pieces.append(rest)
