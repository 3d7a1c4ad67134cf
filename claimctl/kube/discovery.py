"""Read any object by its API group and resource name, by the API server's discovery.

References in a claim's list name objects in this way. Only discovery knows which version serves
them and whether they have a namespace.
"""

from __future__ import annotations

from typing import TypeVar
from urllib.parse import quote

from claimctl.kube.client import Client
from claimctl.kube.errors import NotFound
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.resources import Resource
from claimctl.wire.served import ApiGroup, ApiResourceList

T = TypeVar("T")


class UnknownKind(Exception):
    """No version of the group serves such a resource."""


class ResourceDiscovery:
    """Answers of the API server's discovery. They are cached for the life of this object."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[tuple[str, str], Resource[ObjectHeader] | None] = {}

    async def read(
        self, group: str, plural: str, name: str, namespace: str = ""
    ) -> ObjectHeader | None:
        """Read the metadata of one object live; None if the server says that it does not exist.

        Raises:
            UnknownKind: the cluster does not serve the resource.
            KubeError: a request failed.
        """
        resource = await self.find(group, plural)
        if resource is None:
            raise UnknownKind(f"{plural}.{group}" if group else plural)
        path = resource.path(quote(namespace, safe=""), quote(name, safe=":"))
        try:
            return await self._client.get_document(path, ObjectHeader)
        except NotFound as error:
            # The answer for a path that is no longer served is 404 too, and the object may exist.
            if f'"{name}" not found' in error.message:
                return None
            raise

    async def find(self, group: str, plural: str) -> Resource[ObjectHeader] | None:
        """The resource in the first version that serves it; None if no version does.

        Raises:
            KubeError: a request failed.
        """
        key = (group, plural)
        if key not in self._known:
            self._known[key] = await self._search(group, plural)
        return self._known[key]

    async def _search(self, group: str, plural: str) -> Resource[ObjectHeader] | None:
        for version in await self._versions(group):
            path = f"/apis/{quote(group, safe='')}/{version}" if group else f"/api/{version}"
            listed = await self._ask(path, ApiResourceList)
            for entry in (listed.resources or ()) if listed else ():
                if entry.name == plural and "/" not in plural:
                    return Resource(
                        group,
                        version,
                        plural,
                        entry.kind,
                        ObjectHeader,
                        namespaced=entry.namespaced,
                    )
        return None

    async def _versions(self, group: str) -> tuple[str, ...]:
        """The versions of a group in the order of the server: the preferred one first."""
        if not group:
            return ("v1",)
        group_document = await self._ask(f"/apis/{quote(group, safe='')}", ApiGroup)
        return (
            tuple(version.version for version in group_document.versions or ())
            if group_document
            else ()
        )

    async def _ask(self, path: str, type_: type[T]) -> T | None:
        """Read a document; None if the server has no such path."""
        try:
            return await self._client.get_document(path, type_)
        except NotFound:
            return None
