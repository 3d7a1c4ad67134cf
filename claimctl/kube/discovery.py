"""Find out by the API server's discovery where it serves a resource or a kind.

References in a claim's list name an API group and a resource; manifests name a version and a kind.
Only discovery knows the rest, and whether the objects have a namespace.
"""

from __future__ import annotations

from typing import TypeVar
from urllib.parse import quote

from claimctl.kube.client import Client
from claimctl.kube.errors import NotFound, NotServed
from claimctl.wire.base import Object
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.resources import Resource
from claimctl.wire.served import ApiGroup, ApiResource, ApiResourceList

T = TypeVar("T")


class UnknownKind(Exception):
    """No version of the group serves such a resource."""


class ResourceDiscovery:
    """Answers of the API server's discovery. They are cached for the life of this object."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[tuple[str, str], Resource[ObjectHeader] | None] = {}
        self._kinds: dict[tuple[str, str], Resource[Object]] = {}

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
            for entry in await self._resources(group, version):
                if entry.name == plural:
                    kind, where = entry.kind, entry.namespaced
                    return Resource(group, version, plural, kind, ObjectHeader, namespaced=where)
        return None

    async def of_kind(self, api_version: str, kind: str) -> Resource[Object]:
        """The resource whose objects have this kind; a kind that is missing is asked for again.

        Raises:
            NotServed: the server does not serve the kind.
            KubeError: a request failed.
        """
        if (api_version, kind) not in self._kinds:
            group, _, version = api_version.rpartition("/")
            for entry in await self._resources(group, version):
                self._kinds[api_version, entry.kind] = Resource(
                    group, version, entry.name, entry.kind, Object, entry.namespaced
                )
        try:
            return self._kinds[api_version, kind]
        except KeyError:
            raise NotServed(api_version, kind) from None

    async def _resources(self, group: str, version: str) -> list[ApiResource]:
        """The resources of a version, without subresources."""
        path = f"/apis/{quote(group, safe='')}/{version}" if group else f"/api/{version}"
        listed = await self._ask(path, ApiResourceList)
        resources = (listed.resources or ()) if listed else ()
        return [entry for entry in resources if "/" not in entry.name]

    async def _versions(self, group: str) -> tuple[str, ...]:
        """The versions of a group in the order of the server: the preferred one first."""
        if not group:
            return ("v1",)
        document = await self._ask(f"/apis/{quote(group, safe='')}", ApiGroup)
        return tuple(version.version for version in (document and document.versions) or ())

    async def _ask(self, path: str, type_: type[T]) -> T | None:
        """Read a document; None if the server has no such path."""
        try:
            return await self._client.get_document(path, type_)
        except NotFound:
            return None
