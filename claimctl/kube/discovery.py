"""What an API server serves, by its discovery: versions of groups, resources and kinds.

References in a claim's list name an API group and a resource; manifests name a version and a kind.
Only discovery knows the rest, and whether the objects have a namespace.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

from claimctl.kube.client import Client
from claimctl.kube.errors import BadAnswer, NotFound, NotServed
from claimctl.parallel import side_by_side
from claimctl.wire.base import Object, decode
from claimctl.wire.resources import (
    PODGROUPS,
    PODS,
    REPLICASETS,
    RESOURCECLAIMS,
    WORKLOADS,
    Resource,
    read_as,
)
from claimctl.wire.served import ApiGroup, ApiGroupList, ApiResource, ApiResourceList, ServerVersion
from claimctl.wire.workloads import CustomWorkload

T = TypeVar("T")

KNOWN = {
    RESOURCECLAIMS.group: ("v1", "v1beta2", "v1beta1"),
    PODGROUPS.group: ("v1", "v1beta1", "v1alpha3", "v1alpha2"),
}
"""The versions that claimctl supports, preferred first: DRA from 1.32, PodGroups from 1.36."""
_EVERYWHERE: tuple[Resource[Any], ...] = (PODS, REPLICASETS, *WORKLOADS.values())
_TYPED: Mapping[tuple[str, str], Resource[CustomWorkload]] = {
    (resource.group, resource.kind): read_as(resource, CustomWorkload) for resource in _EVERYWHERE
}
"""Kinds in every cluster, for which nothing has to be asked."""
RENEW_SECONDS = 5.0
"""The least age of answers that are asked for again."""


@dataclass(frozen=True, slots=True)
class Served:
    claims: tuple[str, ...]
    """Served versions of resource.k8s.io that claimctl supports, preferred first."""
    groups: tuple[str, ...] = ()
    """Served versions of scheduling.k8s.io that have PodGroups, preferred first."""


async def server_version(client: Client) -> tuple[int, int]:
    """(major, minor) of the API server, (0, 0) if it does not say. Some providers append a sign to
    the minor version ("36+")."""
    with suppress(ValueError):
        answer = decode(await client.get_raw("/version"), ServerVersion)
        major, minor = re.match(r"\d+", answer.major), re.match(r"\d+", answer.minor)
        if major and minor:
            return int(major[0]), int(minor[0])
    return (0, 0)


async def use_served_versions(client: Client) -> Served:
    """Ask which versions are served, and make the client use the preferred one of each group."""
    discovery = Discovery(client)
    async with side_by_side() as group:
        asked = group.create_task(discovery.supported_versions(RESOURCECLAIMS.group))
        groups = tuple(
            [
                version
                for version in await discovery.supported_versions(PODGROUPS.group)
                if PODGROUPS.plural in await discovery.plurals(PODGROUPS.group, version)
            ]
        )
    claims = asked.result()
    for resource, versions in ((RESOURCECLAIMS, claims), (PODGROUPS, groups)):
        if versions:
            client.use_version(resource.group, versions[0])
    return Served(claims, groups)


class Discovery:
    """Answers of the API server's discovery. They are cached for the life of this object.

    Every method raises KubeError if a request fails.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._answers: dict[str, Any] = {}
        self.since = 0.0
        """The time on the client's clock before which no answer was given."""

    async def versions(self, group: str) -> tuple[str, ...]:
        """The versions of a group in the order of the server: the preferred one first."""
        if not group:
            return ("v1",)
        path = f"/apis/{quote(group, safe='')}"
        answer = await self._ask(path, ApiGroup)
        if answer is None:
            return ()
        if answer.versions is None:
            raise BadAnswer("GET", path, message="not an API group")
        return tuple(entry.version for entry in answer.versions)

    async def supported_versions(self, group: str) -> tuple[str, ...]:
        """Those of ``KNOWN`` that the server serves."""
        served = await self.versions(group)
        return tuple(version for version in KNOWN[group] if version in served)

    async def resources(self, group: str, version: str) -> tuple[ApiResource, ...]:
        """The resources of a version, with subresources; none if the version is not served."""
        path = _path(group, version)
        answer = await self._ask(path, ApiResourceList)
        if answer is None:
            return ()
        if answer.resources is None:
            raise BadAnswer("GET", path, message="not a list of resources")
        return answer.resources

    async def plurals(self, group: str, version: str) -> frozenset[str]:
        """The names of the resources of a version."""
        return frozenset(entry.name for entry in await self.resources(group, version))

    async def of_kind(self, api_version: str, kind: str) -> Resource[Object]:
        """The resource whose objects have this kind; a kind that is missing is asked for again.

        Raises:
            NotServed: the server does not serve the kind.
        """
        group, _, version = api_version.rpartition("/")
        cached = _path(group, version) in self._answers
        resource = await self._find_kind(group, version, kind, Object)
        if resource is None and cached:
            del self._answers[_path(group, version)]
            resource = await self._find_kind(group, version, kind, Object)
        if resource is None:
            raise NotServed(api_version, kind)
        return resource

    async def workload(self, kind: tuple[str, str]) -> Resource[CustomWorkload] | None:
        """The kind's resource in the first version of its group that serves it, the preferred one
        first; None if it is not served.

        Args:
            kind: API group and kind.
        """
        if kind in _TYPED:
            return _TYPED[kind]
        answer = await self._ask("/apis", ApiGroupList)
        if answer is None or answer.groups is None:
            raise BadAnswer("GET", "/apis", message="not a list of API groups")
        group = next((group for group in answer.groups if group.name == kind[0]), ApiGroup())
        for version in group.in_order:
            resource = await self._find_kind(kind[0], version, kind[1], CustomWorkload)
            if resource is not None:
                return resource
        return None

    def renew(self) -> bool:
        """Ask again from now on: a server may begin or stop to serve a version at any time. False
        if the answers are too young for that."""
        now = self._client.clock.monotonic()
        if now - self.since < RENEW_SECONDS:
            return False
        self._answers.clear()
        self.since = now
        return True

    async def has_scale(self, resource: Resource[Any]) -> bool:
        """Whether the resource serves the subresource scale."""
        return f"{resource.plural}/scale" in await self.plurals(resource.group, resource.version)

    async def _find_kind(
        self, group: str, version: str, kind: str, type_: type[T]
    ) -> Resource[T] | None:
        for entry in await self.resources(group, version):
            if entry.kind == kind and "/" not in entry.name:
                return _resource(group, version, entry, type_)
        return None

    async def _ask(self, path: str, type_: type[T]) -> T | None:
        """Read a document; None if the server has no such path."""
        if path not in self._answers:
            if not self._answers:
                self.since = self._client.clock.monotonic()
            try:
                self._answers[path] = await self._client.get_document(path, type_)
            except NotFound:
                self._answers[path] = None
        answer: T | None = self._answers[path]
        return answer


def _path(group: str, version: str) -> str:
    return f"/apis/{quote(group, safe='')}/{version}" if group else f"/api/{version}"


def _resource(group: str, version: str, entry: ApiResource, type_: type[T]) -> Resource[T]:
    return Resource(group, version, entry.name, entry.kind, type_, entry.namespaced)
