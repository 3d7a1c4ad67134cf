"""What planning asks about claims: where their devices are, and which pods they tie together.

``inventory`` and ``units`` answer. Planning depends on these two interfaces alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from claimctl.reschedule.plan.plan import Reallocation
from claimctl.reschedule.plan.policy import Evictor
from claimctl.reschedule.plan.reasons import Obstacle
from claimctl.reschedule.shapes.scheduling import SchedulingPod

DeviceId = tuple[str, str, str]
"""Driver, pool and device."""


@dataclass(frozen=True, slots=True)
class Placement:
    """What a replacement of a pod would use on a node."""

    pod_uid: str
    node: str
    devices: tuple[DeviceId, ...] = ()
    """Devices that are free now."""
    joins: tuple[tuple[str, str], ...] = ()
    """Namespace and name of the allocated claims whose lists get one more entry."""
    allocates: tuple[tuple[tuple[str, str], tuple[DeviceId, ...]], ...] = ()
    """The claims that the replacement is the first to use again, each with its devices. Claims that
    are generated for the replacement are not among them."""


@dataclass(frozen=True, slots=True)
class DeviceCount:
    used: int
    published: int
    """Devices that the class selects and that have no taint."""


class Devices(Protocol):
    """The devices and claims of the cluster, in the state after the moves chosen so far.

    A pod that moves first leaves: its generated claims go, and claims that are not sticky become
    free. Then ``place`` is asked for each node, and one placement is taken. If the pod
    stays after all, ``undo`` restores the state before ``leave``.
    """

    def leave(self, pods: tuple[SchedulingPod, ...], *, source_closed: bool = False) -> None:
        """These pods leave together. No other pods may have left without ``commit`` or ``undo``.

        Args:
            source_closed: whether their node is closed to their replacements, as a unit with
                ``close_source`` asks. Then claims that only these pods use become free, also held
                ones, which the controller gives up. While the node is open they stay allocated,
                because the replacements are made before the claims are free.
        """
        ...

    def undo(self) -> None:
        """Restore the state before the last ``leave``, also what was taken since."""
        ...

    def commit(self) -> None:
        """The last ``leave`` and what was taken since hold for good."""
        ...

    def place(self, pod: SchedulingPod, node: str) -> Placement | Obstacle:
        """Where the claims of a pod, or of its replacement, would be on the node.

        For a pod that has left, its replacement is meant; for a pending pod, the pod itself. The
        reason of an obstacle is ``FIT_UNKNOWN`` if this cannot be judged.
        """
        ...

    def take(self, placement: Placement) -> None:
        """The replacement uses the devices and the places in lists from now on."""
        ...

    def usage(self, device_class: str) -> Mapping[str, DeviceCount]:
        """Devices of a class by node, for the nodes that have some (KEP-5004)."""
        ...

    def requested(self, pod: SchedulingPod, device_class: str) -> int:
        """How many devices of a class a pod has."""
        ...


@dataclass(frozen=True, slots=True)
class Unit:
    """Pods that move together or not at all, sorted by namespace and name.

    ``id`` is empty for a pod alone. With ``close_source``, the node must be closed before the
    evictions, and ``reallocate`` names the held claims that the controller is to give up.
    """

    pods: tuple[SchedulingPod, ...]
    id: str = ""
    """Never empty if the unit closes its node or asks for claims to be given up."""
    close_source: bool = False
    reallocate: tuple[Reallocation, ...] = ()
    obstacle: Obstacle | None = None
    """Why the unit cannot be moved to any node."""


class Units(Protocol):
    def unit_of(self, pod: SchedulingPod, evictor: Evictor) -> Unit:
        """The unit of a bound pod."""
        ...
