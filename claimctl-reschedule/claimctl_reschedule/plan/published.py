"""The devices that ResourceSlices publish: the newest complete generation of each pool.

The rules are those of the scheduler's allocator (dynamic-resource-allocation/structured): devices
of an incomplete pool are not allocated, and a request for all devices fails beside such a pool.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from claimctl.wire.claims import NodeSelector
from claimctl.wire.nodes import Node, Taint
from claimctl.wire.placement import BLOCKING_EFFECTS, selects
from claimctl_reschedule.plan.selectors import Described, describe
from claimctl_reschedule.shapes.devices import (
    DeviceTaintRule,
    PublishedDevice,
    SchedulingSlice,
    SchedulingSliceSpec,
)

DeviceId = tuple[str, str, str]
"""Driver, pool and device."""


@dataclass(frozen=True, slots=True, eq=False)
class PublishedOn:
    """A device, and the nodes on which it can be used."""

    id: DeviceId
    described: Described
    taints: tuple[Taint, ...]
    """Those that keep claims away that do not tolerate them, also by a DeviceTaintRule."""
    simple: bool
    """Whether its use depends on nothing but itself: it shares no counters, serves one claim at a
    time and has no binding conditions."""
    node: str = ""
    """The only node, or '' if ``selector`` says which ones; without a selector: all."""
    selector: NodeSelector | None = None

    def on(self, node: Node) -> bool:
        return _reaches(self.node, self.selector, node)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All published devices."""

    by_id: dict[DeviceId, PublishedOn] = field(default_factory=dict)
    by_node: dict[str, list[PublishedOn]] = field(default_factory=lambda: defaultdict(list))
    """Devices that can be used on one node only, by node, in the order of the slices."""
    of_many: list[PublishedOn] = field(default_factory=list)
    """Devices that several nodes can reach."""
    incomplete: list[SchedulingSlice] = field(default_factory=list)
    """Slices of incomplete pools."""
    drivers: set[str] = field(default_factory=set)
    """Drivers that publish anything."""

    def on(self, node: Node) -> list[PublishedOn]:
        local = self.by_node.get(node.metadata.name, ())
        return [*local, *(device for device in self.of_many if device.on(node))]

    def complete_on(self, node: Node) -> bool:
        """Whether no incomplete pool has slices for the node."""
        specs = (slice_.spec for slice_ in self.incomplete)
        return not any(_reaches(spec.node_name, spec.node_selector, node) for spec in specs)


def catalogue(
    slices: Iterable[SchedulingSlice], rules: Sequence[DeviceTaintRule] = ()
) -> Catalogue:
    published = Catalogue()
    for (driver, _), pool in sorted(_pools(slices).items()):
        published.drivers.add(driver)
        complete = len(pool) == pool[0].spec.pool.resource_slice_count
        parts = ((part, device) for part in pool for device in part.spec.devices or ())
        every = (_publish(part, device, rules) for part, device in parts if complete)
        devices = [device for device in every if device]
        if not complete or len({device.id for device in devices}) < len(devices):
            published.incomplete.extend(pool)
            continue
        for device in devices:
            published.by_id[device.id] = device
            (published.by_node[device.node] if device.node else published.of_many).append(device)
    return published


def _pools(slices: Iterable[SchedulingSlice]) -> dict[tuple[str, str], list[SchedulingSlice]]:
    """The slices of the newest generation of each pool, sorted by name."""
    pools: dict[tuple[str, str], list[SchedulingSlice]] = {}
    for slice_ in sorted(slices, key=lambda slice_: slice_.metadata.name):
        key = slice_.spec.driver, slice_.spec.pool.name
        known = pools.setdefault(key, [])
        newest = known[0].spec.pool.generation if known else slice_.spec.pool.generation
        if slice_.spec.pool.generation > newest:
            known.clear()
        if slice_.spec.pool.generation >= newest:
            known.append(slice_)
    return pools


def _publish(
    of: SchedulingSlice, device: PublishedDevice, rules: Sequence[DeviceTaintRule]
) -> PublishedOn | None:
    """The device; None if no node can use it."""
    spec = of.spec
    place: SchedulingSliceSpec | PublishedDevice = (
        device if spec.per_device_node_selection else spec
    )
    if not place.node_name and place.node_selector is None and not place.all_nodes:
        return None
    try:
        seen, readable = describe(spec.driver, device), True
    except (msgspec.DecodeError, msgspec.ValidationError):
        seen, readable = Described(spec.driver, {}, {}), False
    id_ = (spec.driver, spec.pool.name, device.name)
    ruled = (rule.spec.taint for rule in rules if rule.concerns(*id_))
    taints = (taint for taint in (*device.all_taints, *ruled) if taint.effect in BLOCKING_EFFECTS)
    shared = device.consumes_counters or (device.basic and device.basic.consumes_counters)
    several = device.allow_multiple_allocations or device.binding_conditions
    return PublishedOn(
        id=id_,
        described=seen,
        taints=tuple(taints),
        simple=readable and not shared and not several,
        node=place.node_name or "",
        selector=place.node_selector,
    )


def _reaches(name: str | None, selector: NodeSelector | None, node: Node) -> bool:
    return name == node.metadata.name if name else selector is None or selects(selector, node)
