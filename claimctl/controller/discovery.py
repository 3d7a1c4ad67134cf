"""Which kinds a cluster serves, by its discovery."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from claimctl.kube.client import Client
from claimctl.kube.errors import BadAnswer, NotFound
from claimctl.reservation.kinds.rules import Kind
from claimctl.wire.resources import PODS, REPLICASETS, WORKLOADS, Resource, read_as
from claimctl.wire.served import ApiGroupList, ApiResourceList
from claimctl.wire.workloads import CustomWorkload

_KNOWN: tuple[Resource[Any], ...] = (PODS, REPLICASETS, *WORKLOADS.values())
_TYPED: Mapping[Kind, Resource[Any]] = {
    (resource.group, resource.kind): read_as(resource, CustomWorkload) for resource in _KNOWN
}


class Discovery:
    """One look at what the cluster serves. Each group is asked for once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._versions: dict[str, str] | None = None
        self._resources: dict[str, ApiResourceList] = {}

    async def resource(self, kind: Kind) -> Resource[CustomWorkload] | None:
        """The kind's resource in the preferred version of its group; None if it is not served.

        Raises:
            KubeError: a request failed.
        """
        if kind in _TYPED:
            return _TYPED[kind]
        group, name = kind
        version = (await self._preferred()).get(group)
        if version is None:
            return None
        for entry in await self._listed(group, version):
            if entry.kind == name and "/" not in entry.name:
                return Resource(group, version, entry.name, name, CustomWorkload, entry.namespaced)
        return None

    async def has_scale(self, resource: Resource[Any]) -> bool:
        """Whether the resource serves the subresource scale."""
        listed = await self._listed(resource.group, resource.version)
        return any(entry.name == f"{resource.plural}/scale" for entry in listed)

    async def _preferred(self) -> dict[str, str]:
        if self._versions is None:
            answer = await self._client.get_document("/apis", ApiGroupList)
            if answer.groups is None:
                raise BadAnswer("GET", "/apis", message="not a list of API groups")
            self._versions = {group.name: group.preferred for group in answer.groups}
        return self._versions

    async def _listed(self, group: str, version: str) -> tuple[Any, ...]:
        path = f"/apis/{group}/{version}"
        if path not in self._resources:
            try:
                self._resources[path] = await self._client.get_document(path, ApiResourceList)
            except NotFound:
                self._resources[path] = ApiResourceList()
        return self._resources[path].resources or ()
