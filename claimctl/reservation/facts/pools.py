"""Where a claim's devices are: in which pools, and whether those belong to a node."""

from __future__ import annotations

from collections.abc import Iterable

from claimctl.wire.claims import ResourceClaim, ResourceSlice

PoolKey = tuple[str, str]
"""Driver and name of a pool."""


def pools_of(claim: ResourceClaim) -> list[PoolKey]:
    """The pools of the allocation's devices."""
    return sorted({(device.driver, device.pool) for device in claim.devices})


def drivers_on(
    node: str, pools: Iterable[PoolKey], slices: Iterable[ResourceSlice], *, is_named: bool
) -> frozenset[str]:
    """The drivers of the pools whose devices belong to a node.

    A slice of the node shows it. A driver that is away publishes none: then the allocation alone
    shows it, unless the pool has only slices that belong to no node.

    Args:
        pools: those of the devices.
        slices: those of the pools.
        is_named: whether the allocation names the node.
    """
    places: dict[PoolKey, set[str]] = {pool: set() for pool in pools}
    for piece in slices:
        pool = (piece.spec.driver, piece.spec.pool.name)
        if pool in places:
            places[pool].add(piece.spec.node_name)
    return frozenset(
        driver
        for (driver, _), nodes in places.items()
        if node in nodes or (is_named and nodes != {""})
    )
