"""Read and change objects as the server has them now, for commands, plans and runs.

The controller decides on its caches, and does without these requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar
from urllib.parse import quote

from claimctl.kube.client import Client
from claimctl.kube.codec import Listing
from claimctl.kube.discovery import Discovery
from claimctl.kube.errors import Conflict, Forbidden, NotFound
from claimctl.wire.coordination import Lease, renewed_at
from claimctl.wire.meta import HasMetadata, ObjectHeader
from claimctl.wire.resources import Resource

T = TypeVar("T")
W = TypeVar("W", bound=HasMetadata)

CHANGE_TRIES = 10
"""How often a change is decided anew because another client was faster."""
CHANGE_PAUSE_SECONDS = 0.02


class Changed(StrEnum):
    """What became of a change."""

    GONE = "Gone"
    """There is no such object."""
    SAME = "Same"
    """The object needs no change."""
    WRITTEN = "Written"


async def change_object(
    client: Client,
    resource: Resource[W],
    name: str,
    change: Callable[[W], Mapping[str, Any]],
    namespace: str = "",
    *,
    subresource: str = "",
) -> Changed:
    """Change an object as it is now, and decide anew if another client was faster.

    Args:
        change: the merge patch for the object that was read; empty if it needs none. It may be
            called several times: a write without an answer may have been applied.

    Raises:
        Conflict: another client changed the object each time between the read and the write.
    """
    for attempt in range(CHANGE_TRIES):
        try:
            present = await client.get(resource, name, namespace)
            patch = change(present)
            if not patch:
                return Changed.SAME
            await client.merge_patch(resource, present.metadata, patch, subresource=subresource)
        except NotFound:
            return Changed.GONE
        except Conflict:
            if attempt == CHANGE_TRIES - 1:
                raise
            longest = min(CHANGE_PAUSE_SECONDS * 2**attempt, 1.0)
            await client.clock.sleep(client.rng.uniform(0, longest))
        else:
            return Changed.WRITTEN
    raise AssertionError("the last attempt returns or raises")


async def list_if_served(client: Client, resource: Resource[T], namespace: str = "") -> Listing[T]:
    """List objects with ``partial``; empty if the cluster does not serve the resource."""
    with suppress(NotFound):
        return await client.list(resource, namespace, partial=True)
    return Listing((), "")


async def list_if_allowed(
    client: Client, resource: Resource[T], namespace: str = "", *, field_selector: str = ""
) -> Listing[T]:
    """The same; also empty if the caller may not list the resource."""
    with suppress(Forbidden, NotFound):
        return await client.list(resource, namespace, field_selector=field_selector, partial=True)
    return Listing((), "")


class UnknownKind(Exception):
    """No version of the group serves such a resource."""


async def read_header(
    client: Client, discovery: Discovery, group: str, plural: str, name: str, namespace: str = ""
) -> ObjectHeader | None:
    """Read the metadata of one object, in the first version of its group that serves it.

    Returns:
        None if the server says that the object does not exist.

    Raises:
        UnknownKind: the cluster does not serve the resource.
    """
    resource = await served_resource(discovery, group, plural)
    if resource is None:
        raise UnknownKind(f"{plural}.{group}" if group else plural)
    path = resource.path(quote(namespace, safe=""), quote(name, safe=":"))
    try:
        return await client.get_document(path, ObjectHeader)
    except NotFound as error:
        # The answer for a path that is no longer served is 404 too, and the object may exist.
        if f'"{name}" not found' in error.message:
            return None
        raise


async def served_resource(
    discovery: Discovery, group: str, plural: str
) -> Resource[ObjectHeader] | None:
    """The resource in the first version of its group that serves it; None if none does."""
    for version in await discovery.versions(group):
        for entry in await discovery.resources(group, version):
            if entry.name == plural and "/" not in plural:
                names = group, version, entry.name, entry.kind
                return Resource(*names, ObjectHeader, entry.namespaced)
    return None


def is_held(lease: Lease, now: datetime, skew_seconds: float = 0.0) -> bool:
    """Whether the Lease has a holder that renewed it in time.

    Args:
        skew_seconds: how many seconds the holder's clock may be behind.
    """
    seconds = (lease.spec.lease_duration_seconds or 0) + skew_seconds
    return bool(lease.spec.holder_identity) and now <= renewed_at(lease) + timedelta(
        seconds=seconds
    )
