"""Which versions of the API groups that change between releases a cluster serves."""

from __future__ import annotations

import json
from dataclasses import dataclass

from claimctl.kube.client import Client
from claimctl.kube.errors import BadAnswer, NotFound
from claimctl.wire.resources import PODGROUPS, RESOURCECLAIMS

KNOWN = {
    RESOURCECLAIMS.group: ("v1", "v1beta2", "v1beta1"),
    PODGROUPS.group: ("v1beta1", "v1alpha2"),
}
"""Versions that claimctl speaks, preferred first: DRA from 1.32 on, PodGroups from 1.36 on."""


@dataclass(frozen=True, slots=True)
class Served:
    claims: tuple[str, ...]
    """Served versions of resource.k8s.io that are known here, preferred first."""
    groups: tuple[str, ...] = ()
    """Served versions of scheduling.k8s.io that have PodGroups, preferred first."""


async def look(client: Client) -> Served:
    """Ask what is served, and have the client speak the preferred version of each group."""
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
            client.speak(resource.group, versions[0])
    return Served(claims, groups)


async def _versions(client: Client, group: str) -> tuple[str, ...]:
    path = f"/apis/{group}"
    try:
        body = await client.get_raw(path)
    except NotFound:
        return ()
    try:
        served = {each["version"] for each in json.loads(body)["versions"]}
    except (ValueError, KeyError, TypeError) as error:
        raise BadAnswer("GET", path, message="not an API group") from error
    return tuple(version for version in KNOWN[group] if version in served)


async def _has_pod_groups(client: Client, version: str) -> bool:
    path = f"/apis/{PODGROUPS.group}/{version}"
    try:
        body = await client.get_raw(path)
    except NotFound:
        return False
    try:
        return any(each["name"] == PODGROUPS.plural for each in json.loads(body)["resources"])
    except (ValueError, KeyError, TypeError) as error:
        raise BadAnswer("GET", path, message="not a list of resources") from error
