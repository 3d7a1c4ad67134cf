"""How much of a node is used, for LowNodeUtilization: by requests, pods, and devices of a class.

Numbers are compared exactly: a use is whole, and a threshold is a fraction of the capacity.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from claimctl.reschedule.plan.devices import Devices
from claimctl.reschedule.plan.policy import DEVICE_CLASS_PREFIX
from claimctl.reschedule.plan.world import World, WorldPod


@dataclass(frozen=True, slots=True)
class Usage:
    """Use and capacity of resources on each node, as they are now.

    A node that has nothing of a resource is left out of that resource.
    """

    world: World
    devices: Devices

    def of(self, node: str, resource: str) -> tuple[int, int] | None:
        """Use and capacity; None if the node has nothing of the resource."""
        if resource.startswith(DEVICE_CLASS_PREFIX):
            counts = self.devices.usage(resource.removeprefix(DEVICE_CLASS_PREFIX))
            count = counts.get(node)
            return (count.used, count.published) if count and count.published else None
        state = self.world.nodes[node]
        capacity = state.allocatable.get(resource, 0)
        return (state.used.get(resource, 0), capacity) if capacity else None

    def percent(self, node: str, resource: str) -> Fraction | None:
        found = self.of(node, resource)
        return Fraction(found[0] * 100, found[1]) if found else None

    def requested(self, pod: WorldPod, resource: str) -> int:
        """How much of the resource the pod uses."""
        if resource.startswith(DEVICE_CLASS_PREFIX):
            name = resource.removeprefix(DEVICE_CLASS_PREFIX)
            return self.devices.requested(pod.pod, name)
        return pod.requests.get(resource, 0)

    def mean(self, nodes: Iterable[str], resource: str) -> Fraction | None:
        """The mean percentage of the nodes that have the resource."""
        found = [each for node in nodes if (each := self.percent(node, resource)) is not None]
        return sum(found, Fraction(0)) / len(found) if found else None
