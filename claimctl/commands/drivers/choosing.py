"""Which nodes are checked, and with which DeviceClass: pure functions of what is published."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from claimctl.cli.errors import UsageError
from claimctl.text import listed
from claimctl.wire.base import Wire
from claimctl.wire.claims import Device, ResourceSlice
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.resources import kind_of

_DRIVER = re.compile(r"""\bdevice\.driver\s*==\s*(["'])([^"'\\]*)\1""")


class CelSelector(Wire, frozen=True, kw_only=True):
    expression: str = ""


class DeviceSelector(Wire, frozen=True, kw_only=True):
    cel: CelSelector | None = None


class DeviceClassSpec(Wire, frozen=True, kw_only=True):
    selectors: tuple[DeviceSelector, ...] = ()


class DeviceClass(ObjectHeader, frozen=True, kw_only=True):
    """A DeviceClass with its selectors."""

    spec: DeviceClassSpec = DeviceClassSpec()

    @property
    def drivers(self) -> frozenset[str]:
        """The drivers that its selectors name; none if it selects devices in another way."""
        sources = (each.cel.expression for each in self.spec.selectors if each.cel is not None)
        return frozenset(match[2] for source in sources for match in _DRIVER.finditer(source))


DEVICECLASSES = kind_of("resource.k8s.io/v1", DeviceClass, namespaced=False)


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
    found = published(driver, own)
    if not found:
        why = "it publishes no device for a single node"
        raise UsageError(f"{driver}: {why}, and the check tries a driver node by node")
    if wanted and wanted not in found:
        raise UsageError(
            f"--node: {driver} has no device on node {wanted}; it has some on {listed(found)}"
        )
    return {wanted: found[wanted]} if wanted else found


def choose_class(driver: str, classes: Sequence[DeviceClass], wanted: str) -> str:
    """The name of the DeviceClass to ask for, which selects devices of this driver alone.

    A class counts by the comparisons with ``device.driver`` in its selectors. One that is wanted by
    name may select other devices, too: the claim itself asks for this driver.

    Raises:
        UsageError: there is no such class, or not exactly one.
    """
    names = sorted(each.metadata.name for each in classes)
    if wanted:
        if wanted not in names:
            there = f"there are {listed(names)}" if names else "the cluster has none"
            raise UsageError(f"--class: there is no DeviceClass {wanted}; {there}")
        return wanted
    alone = sorted(each.metadata.name for each in classes if each.drivers == {driver})
    if driver in alone or len(alone) == 1:
        return driver if driver in alone else alone[0]
    if alone:
        raise UsageError(
            f"{driver} has several DeviceClasses; name one by --class: {listed(alone)}"
        )
    for each in sorted(classes, key=lambda each: each.metadata.name):
        if driver in each.drivers:
            others = listed(sorted(each.drivers - {driver}))
            name = each.metadata.name
            raise UsageError(
                f"DeviceClass {name} selects devices of {others}, too; to use it: --class {name}"
            )
    there = f"name one by --class: {listed(names)}" if names else "the cluster has no DeviceClass"
    raise UsageError(f"no DeviceClass selects the devices of {driver} by its name; {there}")
