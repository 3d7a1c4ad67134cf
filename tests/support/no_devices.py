"""What planning is told of a cluster without devices."""

from __future__ import annotations

from collections.abc import Mapping

from claimctl.reschedule.plan.devices import DeviceCount, Placement, Unit
from claimctl.reschedule.plan.policy import Evictor
from claimctl.reschedule.plan.reasons import Ground, Obstacle
from claimctl.reschedule.shapes.scheduling import SchedulingPod
from claimctl.reservation.facts.pods import claim_names


class NoDevices:
    """``Devices`` of a cluster where no pod has claims."""

    def leave(self, pods: tuple[SchedulingPod, ...], *, source_closed: bool = False) -> None:
        pass

    def undo(self) -> None:
        pass

    def commit(self) -> None:
        pass

    def place(self, pod: SchedulingPod, node: str) -> Placement | Obstacle:
        if pod.spec.resource_claims or claim_names(pod):
            return Obstacle(Ground.FIT_UNKNOWN, "the claims of the pod were not read")
        return Placement(pod.metadata.uid, node)

    def take(self, placement: Placement) -> None:
        pass

    def usage(self, device_class: str) -> Mapping[str, DeviceCount]:
        return {}

    def requested(self, pod: SchedulingPod, device_class: str) -> int:
        return 0


class PodsAlone:
    """``Units`` of a cluster where no pods belong together."""

    def unit_of(self, pod: SchedulingPod, evictor: Evictor) -> Unit:
        return Unit(pods=(pod,))
