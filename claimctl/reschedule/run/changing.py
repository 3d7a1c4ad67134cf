"""Changes one object under the version that was read, and reads it anew if it has changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from claimctl.kube.client import Client
from claimctl.kube.errors import Conflict, NotFound
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.resources import Resource

TRIES = 10
"""How often a change is decided anew because another client was faster."""


class Changed(StrEnum):
    """What became of a change."""

    GONE = "Gone"
    """There is no such object."""
    SAME = "Same"
    """The object needs no change."""
    WRITTEN = "Written"


class _Object(Protocol):
    @property
    def metadata(self) -> ObjectMeta: ...


T = TypeVar("T", bound=_Object)


async def change_object(
    client: Client,
    resource: Resource[T],
    name: str,
    namespace: str,
    change: Callable[[T], Mapping[str, Any]],
) -> Changed:
    """Change an object as it is now.

    Args:
        namespace: "" for an object without a namespace.
        change: the merge patch for the object that was read; empty if it needs none.

    Raises:
        Conflict: another client changed the object each time between the read and the write.
        KubeError: a request failed.
    """
    for attempt in range(TRIES):
        try:
            found = await client.get(resource, name, namespace)
            patch = change(found)
            if not patch:
                return Changed.SAME
            version = found.metadata.resource_version
            await client.merge_patch(resource, name, patch, namespace, resource_version=version)
        except NotFound:
            return Changed.GONE
        except Conflict:
            if attempt == TRIES - 1:
                raise
        else:
            return Changed.WRITTEN
    raise AssertionError("the last attempt returns or raises")
