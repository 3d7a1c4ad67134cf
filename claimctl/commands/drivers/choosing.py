"""Which nodes are checked, and with which DeviceClass: pure functions of what is published."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from claimctl.cli.errors import UsageError
from claimctl.commands.claims.device_classes import drivers_in
from claimctl.text import listed
from claimctl.wire.claims import Device, ResourceSlice
from claimctl.wire.device_classes import DeviceClass


@dataclass(frozen=True, slots=True)
class Published:
    """What a driver publishes for one node, in the newest generation of each pool."""

    node: str
    devices: tuple[Device, ...]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(device.name for device in self.devices)

    @property
    def effects(self) -> frozenset[str]:
        """The effects of the taints of its devices."""
        return frozenset(taint.effect for device in self.devices for taint in device.all_taints)


def published(driver: str, slices: Iterable[ResourceSlice]) -> dict[str, Published]:
    """What a driver publishes, by node; a node without devices is absent."""
    pieces = [
        piece.spec for piece in slices if piece.spec.driver == driver and piece.spec.node_name
    ]
    newest: dict[tuple[str, str], int] = {}
    for piece in pieces:
        pool = (piece.node_name, piece.pool.name)
        newest[pool] = max(newest.get(pool, 0), piece.pool.generation)
    devices: dict[str, list[Device]] = {}
    for piece in pieces:
        if piece.pool.generation == newest[piece.node_name, piece.pool.name]:
            devices.setdefault(piece.node_name, []).extend(piece.devices or ())
    return {
        node: Published(node, tuple(devices[node])) for node in sorted(devices) if devices[node]
    }


def choose_nodes(driver: str, slices: Sequence[ResourceSlice], wanted: str) -> dict[str, Published]:
    """The nodes to check: the one that is wanted, or '' for each that has a device.

    Raises:
        UsageError: there is no such driver, it has no devices, or none on that node.
    """
    own = [piece for piece in slices if piece.spec.driver == driver]
    if not own:
        names = sorted({piece.spec.driver for piece in slices})
        there = f"these have: {listed(names)}" if names else "the cluster has no ResourceSlice"
        raise UsageError(f"{driver}: no ResourceSlice is of this driver; {there}")
    by_node = published(driver, own)
    if not by_node:
        why = "it publishes no device for a single node"
        raise UsageError(f"{driver}: {why}, and the check tries a driver node by node")
    if wanted and wanted not in by_node:
        raise UsageError(
            f"--node: {driver} has no device on node {wanted}; it has some on {listed(by_node)}"
        )
    return {wanted: by_node[wanted]} if wanted else by_node


def drivers_of(device_class: DeviceClass) -> frozenset[str]:
    """The drivers that the selectors name; none if they select devices in another way."""
    selectors = device_class.spec.selectors
    sources = (it.cel.expression for it in selectors if it.cel is not None)
    return frozenset[str]().union(*map(drivers_in, sources))


def choose_class(driver: str, classes: Sequence[DeviceClass], wanted: str) -> str:
    """The name of the DeviceClass to ask for, which selects devices of this driver alone.

    A class counts by the comparisons with ``device.driver`` in its selectors. One that is wanted by
    name may select other devices, too: the claim itself asks for this driver.

    Raises:
        UsageError: there is no such class, or not exactly one.
    """
    names = sorted(it.metadata.name for it in classes)
    if wanted:
        if wanted not in names:
            there = f"there are {listed(names)}" if names else "the cluster has none"
            raise UsageError(f"--class: there is no DeviceClass {wanted}; {there}")
        return wanted
    alone = sorted(it.metadata.name for it in classes if drivers_of(it) == {driver})
    if driver in alone or len(alone) == 1:
        return driver if driver in alone else alone[0]
    if alone:
        raise UsageError(
            f"{driver} has several DeviceClasses; name one by --class: {listed(alone)}"
        )
    for it in sorted(classes, key=lambda it: it.metadata.name):
        if driver in drivers_of(it):
            others = listed(sorted(drivers_of(it) - {driver}))
            name = it.metadata.name
            raise UsageError(
                f"DeviceClass {name} selects devices of {others}, too; to use it: --class {name}"
            )
    there = f"name one by --class: {listed(names)}" if names else "the cluster has no DeviceClass"
    raise UsageError(f"no DeviceClass selects the devices of {driver} by its name; {there}")
