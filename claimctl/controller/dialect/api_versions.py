"""Which versions a cluster serves of the API groups that differ between Kubernetes releases."""

from __future__ import annotations

from dataclasses import dataclass

from claimctl.kube.client import Client
from claimctl.kube.errors import BadAnswer, NotFound
from claimctl.wire.resources import PODGROUPS, RESOURCECLAIMS
from claimctl.wire.served import ApiGroup, ApiResourceList

KNOWN = {
    RESOURCECLAIMS.group: ("v1", "v1beta2", "v1beta1"),
    PODGROUPS.group: ("v1beta1", "v1alpha2"),
}
"""The versions that claimctl supports, preferred first: DRA from 1.32, PodGroups from 1.36."""


@dataclass(frozen=True, slots=True)
class Served:
    claims: tuple[str, ...]
    """Served versions of resource.k8s.io that claimctl supports, preferred first."""
    groups: tuple[str, ...] = ()
    """Served versions of scheduling.k8s.io that have PodGroups, preferred first."""


async def look(client: Client) -> Served:
    """Ask which versions are served, and make the client use the preferred one of each group."""
    claims = await _versions(client, RESOURCECLAIMS.group)
    groups = tuple(
        [
            version
            for version in await _versions(client, PODGROUPS.group)
            if await _has_pod_groups(client, version)
        ]
    )
    for resource, versions in ((RESOURCECLAIMS, claims), (PODGROUPS, groups)):
        if versions:
            client.use_version(resource.group, versions[0])
    return Served(claims, groups)


async def _versions(client: Client, group: str) -> tuple[str, ...]:
    path = f"/apis/{group}"
    try:
        answer = await client.get_document(path, ApiGroup)
    except NotFound:
        return ()
    if answer.versions is None:
        raise BadAnswer("GET", path, message="not an API group")
    served = {entry.version for entry in answer.versions}
    return tuple(version for version in KNOWN[group] if version in served)


async def _has_pod_groups(client: Client, version: str) -> bool:
    served = await resources(client, f"/apis/{PODGROUPS.group}/{version}")
    return PODGROUPS.plural in served


async def resources(client: Client, path: str) -> frozenset[str]:
    """The names of the resources in a group's version; empty if the version is not served.

    Raises:
        BadAnswer: the answer is not a list of resources.
    """
    try:
        answer = await client.get_document(path, ApiResourceList)
    except NotFound:
        return frozenset()
    if answer.resources is None:
        raise BadAnswer("GET", path, message="not a list of resources")
    return frozenset(resource.name for resource in answer.resources)
