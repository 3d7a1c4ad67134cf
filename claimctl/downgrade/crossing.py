"""The PodGroups that have to be gone before Kubernetes 1.37, which does not serve v1alpha2.

The release notes of 1.37 say it: remove all v1alpha2 objects while the cluster is updated.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from claimctl.kube.client import Client
from claimctl.kube.codec import Listing
from claimctl.kube.errors import Conflict, NotFound
from claimctl.live_objects import change_object, list_if_served
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.resources import PODGROUPS, Resource

T = TypeVar("T")

TARGET = "1.37"
"""The one version that needs preparation."""
OLD = "v1alpha2"
_GROUPS = Resource(PODGROUPS.group, OLD, PODGROUPS.plural, PODGROUPS.kind, PodGroup)
_OTHERS = Resource(PODGROUPS.group, OLD, "workloads", "Workload", ObjectHeader)


@dataclass(frozen=True, slots=True)
class OldObjects:
    """The objects of scheduling.k8s.io/v1alpha2."""

    own: tuple[PodGroup, ...] = ()
    """The PodGroups that claimctl made."""
    foreign: tuple[str, ...] = ()
    """The other objects, for people: ``PodGroup ml/gang``."""


async def read_old_objects(client: Client) -> OldObjects:
    """List them. A version that is not served has none. KubeError if they cannot be listed."""
    groups = await _list(client, _GROUPS)
    workloads = await _list(client, _OTHERS)
    foreign = [group.metadata for group in groups.items if not group.made_by_claimctl]
    return OldObjects(
        tuple(group for group in groups.items if group.made_by_claimctl),
        (
            *(f"PodGroup {it.namespace}/{it.name}" for it in foreign),
            *(f"PodGroup {it.namespace}/{it.name}" for it in groups.unreadable),
            *(f"Workload {it.metadata.namespace}/{it.metadata.name}" for it in workloads.items),
        ),
    )


async def _list(client: Client, resource: Resource[T]) -> Listing[T]:
    exact = client.in_version(resource.group, resource.version)
    return await list_if_served(exact, resource)


async def own_groups(client: Client) -> dict[str, PodGroup]:
    """The PodGroups of v1alpha2 that claimctl made, by UID. The controller may not list Workloads,
    so this reads less than ``read_old_objects``."""
    return {
        group.metadata.uid: group
        for group in (await _list(client, _GROUPS)).items
        if group.made_by_claimctl
    }


async def remove_group(client: Client, group: PodGroup) -> None:
    """Delete a PodGroup of v1alpha2 that claimctl made, although pods of it run.

    Call it when the claims list these pods. From then on, new pods of the group wait.
    kube-controller-manager keeps the object of a group by a finalizer of its own until the pods
    have ended, which may be long after the upgrade. So all finalizers are removed. The deletion
    comes first: no finalizer is added after it. After an error, another call goes on.
    """
    exact, meta = client.in_version(PODGROUPS.group, OLD), group.metadata

    def freed(current: PodGroup) -> dict[str, Any]:
        ours = current.metadata.uid == meta.uid and current.metadata.finalizers
        return {"metadata": {"finalizers": None}} if ours else {}

    with suppress(Conflict, NotFound):
        await exact.delete(_GROUPS, meta.name, meta.namespace, uid=meta.uid)
        await change_object(exact, _GROUPS, meta.name, freed, meta.namespace)
