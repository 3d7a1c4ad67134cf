"""Whether the devices of an idle claim can be what a pod lacks, by their number on the node."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from claimctl.commands.claims.device_classes import device_classes
from claimctl.reschedule.shapes.devices import SchedulingClaim, SchedulingSlice
from claimctl.text import counted
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.resources import RESOURCESLICES, read_as

PUBLISHED_DEVICES = read_as(RESOURCESLICES, SchedulingSlice)


def shortfall(
    wanted: Iterable[SchedulingClaim],
    idle: SchedulingClaim,
    busy: Iterable[ResourceClaim],
    slices: Iterable[SchedulingSlice],
) -> str | None:
    """Why a pod would not get all devices on the node of an idle claim, if all idle ones were free.

    Only the scheduler knows whether devices are enough. This says when their number cannot be.

    Args:
        wanted: the pod's claims that have no devices.
        busy: the claims whose devices pods use.

    Returns:
        None if the devices may be enough, or if their number is not known.
    """
    drivers = {device.driver for device in idle.devices}
    pools = {(device.driver, device.pool) for device in idle.devices}
    published = [piece.spec for piece in slices if piece.spec.driver in drivers]
    nodes = {spec.node_name for spec in published if (spec.driver, spec.pool.name) in pools}
    shared = (device.allow_multiple_allocations for it in published for device in it.devices or ())
    if len(nodes) != 1 or not all(spec.node_name for spec in published) or any(shared):
        return None
    (node,) = nodes
    here = {
        (spec.driver, spec.pool.name, device.name)
        for spec in published
        if spec.node_name == node
        for device in spec.devices or ()
    }
    used = {
        (it.driver, it.pool, it.device)
        for claim in busy
        for it in claim.devices
        if not it.admin_access
    }
    asked = sum(_least(claim, device_classes(idle)) for claim in wanted)
    if asked <= len(here - used):
        return None
    return (
        f"the pod asks for {counted(asked, 'such device')}, and node {node} has "
        f"{len(here)}, {len(here & used)} of them in use"
    )


def _least(claim: SchedulingClaim, classes: Collection[str]) -> int:
    """How many devices of these classes the claim takes at least, whatever alternative it gets."""
    exact = (request.exactly or request for request in claim.spec.devices.requests)
    return sum(it.count for it in exact if it.device_class_name in classes and not it.admin_access)
