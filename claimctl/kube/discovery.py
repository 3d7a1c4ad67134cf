"""Finding any object by API group and resource name, whatever its kind and version.

References name objects like that; which version serves them, and whether they have a namespace,
only the API server's discovery tells.
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


class Discovery:
    """What is served is kept: make a new one where that may have changed."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[tuple[str, str], Resource[ObjectHeader] | None] = {}

    async def read(
        self, group: str, plural: str, name: str, namespace: str = ""
    ) -> ObjectHeader | None:
        """One object live, by its metadata; None when the server says that there is none.

        Raises:
            UnknownKind: nothing of that name is served.
            KubeError: the API server does not tell.
        """
        resource = await self.find(group, plural)
        if resource is None:
            raise UnknownKind(f"{plural}.{group}" if group else plural)
        path = resource.path(quote(namespace, safe=""), quote(name, safe=":"))
        try:
            return await self._client.get_document(path, ObjectHeader)
        except NotFound as error:
            # A path that is served no more is a 404 as well, and says nothing of the object.
            if f'"{name}" not found' in error.message:
                return None
            raise

    async def find(self, group: str, plural: str) -> Resource[ObjectHeader] | None:
        """The resource in the first version that serves it; None where none does.

        Raises:
            KubeError: the API server does not tell.
        """
        key = (group, plural)
        if key not in self._known:
            self._known[key] = await self._look(group, plural)
        return self._known[key]

    async def _look(self, group: str, plural: str) -> Resource[ObjectHeader] | None:
        for version in await self._versions(group):
            path = f"/apis/{quote(group, safe='')}/{version}" if group else f"/api/{version}"
            listed = await self._ask(path, ApiResourceList)
            for each in (listed.resources or ()) if listed else ():
                if each.name == plural and "/" not in plural:
                    return Resource(
                        group, version, plural, each.kind, ObjectHeader, namespaced=each.namespaced
                    )
        return None

    async def _versions(self, group: str) -> tuple[str, ...]:
        """Of a group, the preferred one first, as the server orders them."""
        if not group:
            return ("v1",)
        found = await self._ask(f"/apis/{quote(group, safe='')}", ApiGroup)
        return tuple(each.version for each in found.versions or ()) if found else ()

    async def _ask(self, path: str, type_: type[T]) -> T | None:
        """The document, or None where the server has no such path."""
        try:
            return await self._client.get_document(path, type_)
        except NotFound:
            return None
