"""What the cluster publishes: nodes, devices and their classes, and the plans under way for its
claims, as far as the user may list them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from claimctl.commands.claims.device_classes import PUBLISHED_DEVICES, CountedSlice
from claimctl.kube.client import Client
from claimctl.kube.codec import Listing
from claimctl.kube.errors import Forbidden, NotFound
from claimctl.live_objects import list_if_served
from claimctl.parallel import side_by_side
from claimctl.wire.claims import ResourceClaim, ResourceSlice
from claimctl.wire.device_classes import DeviceClass
from claimctl.wire.nodes import Node
from claimctl.wire.reservations import DowngradePlan
from claimctl.wire.resources import DEVICECLASSES, DOWNGRADEPLANS, NODES, Resource

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Places:
    """What the cluster publishes; None if the user may not list it."""

    slices: tuple[ResourceSlice, ...] | None
    nodes: Mapping[str, Node] | None
    classes: Mapping[str, DeviceClass] | None = None
    plans: tuple[DowngradePlan, ...] | None = None
    complete: bool = True
    """Whether every ResourceSlice can be read."""


async def read_places(client: Client) -> Places:
    """The nodes, the ResourceSlices, the DeviceClasses and the plans, side by side."""
    async with side_by_side() as group:
        slices = group.create_task(_listed(client, PUBLISHED_DEVICES))
        nodes = group.create_task(_listed(client, NODES))
        classes = group.create_task(_listed(client, DEVICECLASSES))
        plans = group.create_task(read_plans(client))
    return places_of(slices.result(), nodes.result(), classes.result(), plans.result())


def places_of(
    slices: Listing[CountedSlice] | None,
    nodes: Listing[Node] | None,
    classes: Listing[DeviceClass] | None,
    plans: tuple[DowngradePlan, ...] | None,
) -> Places:
    """What was listed; None for what the user may not list. A node or a class that cannot be read
    is there, so nothing is known of the others."""
    known = classes is not None and not classes.unreadable
    return Places(
        slices=None if slices is None else slices.items,
        nodes=None if nodes is None else {node.metadata.name: node for node in nodes.items},
        classes={it.metadata.name: it for it in classes.items} if classes and known else None,
        plans=plans,
        complete=slices is None or not slices.unreadable,
    )


async def _listed(client: Client, resource: Resource[T]) -> Listing[T] | None:
    try:
        return await client.list(resource, partial=True)
    except (Forbidden, NotFound):
        return None


async def read_plans(client: Client) -> tuple[DowngradePlan, ...] | None:
    """The plans there are; None if the caller may not list them."""
    try:
        return (await list_if_served(client, DOWNGRADEPLANS)).items
    except Forbidden:
        return None


def not_known(claim: ResourceClaim, places: Places) -> tuple[str, ...]:
    """What cannot be said about an allocated claim, because the user may not list something."""
    if claim.status.allocation is None:
        return ()
    missing = (
        ("resourceslices", "whether its devices are published", places.slices),
        ("nodes", "whether its node takes pods", places.nodes),
    )
    return tuple(
        f"you may not list {plural}: it is not known {what}"
        for plural, what, known in missing
        if known is None
    )
