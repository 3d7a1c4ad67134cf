"""Bytes to structs: single objects, pages of lists and lines of watches."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from claimctl.wire.base import Wire, decode
from claimctl.wire.meta import ListMeta, ObjectHeader
from claimctl.wire.resources import Resource

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """A list, or one page of it.

    ``continue_token`` and ``remaining`` (None: unknown) are of a page; a whole list has neither.
    """

    items: tuple[T, ...]
    resource_version: str
    continue_token: str = ""
    remaining: int | None = None


class _Page(Wire, Generic[T], frozen=True, kw_only=True):
    metadata: ListMeta = ListMeta()
    # Go writes an empty list of a kind without items as null
    items: tuple[T, ...] | None = None


_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    """The one decoder of a type; building it costs more than decoding a small object."""
    found = _decoders.get(type_)
    if found is None:
        found = _decoders[type_] = msgspec.json.Decoder(type_)
    return found


def decode_page(resource: Resource[T], body: bytes) -> Listing[T]:
    """One page of a list.

    Raises:
        msgspec.MsgspecError: not JSON, or not such a list; names the object that does not fit.
    """
    try:
        page: _Page[T] = decoder(_Page[resource.type]).decode(body)  # type: ignore[name-defined]  # a type made at run time
    except msgspec.ValidationError:
        _blame(resource, body)
        raise
    meta = page.metadata
    return Listing(
        page.items or (), meta.resource_version, meta.continue_, meta.remaining_item_count
    )


def _blame(resource: Resource[Any], body: bytes) -> None:
    """Find the one object among thousands that is not as it should be, and say which."""
    for raw in decode(body, _Page[msgspec.Raw]).items or ():
        try:
            decoder(resource.type).decode(raw)
        except msgspec.ValidationError as error:
            meta = decode(raw, ObjectHeader).metadata
            raise msgspec.ValidationError(f"{meta.namespace}/{meta.name}: {error}") from error


async def lines(body: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """The non-empty lines of a stream; what follows the last newline was cut off and is lost."""
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
