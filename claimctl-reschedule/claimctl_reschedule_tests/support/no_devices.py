"""What planning is told of a cluster without devices."""

from __future__ import annotations

from claimctl_reschedule.plan.claims import Claims
from claimctl_reschedule.plan.inventory import Inventory
from claimctl_reschedule.plan.observed import Observed
from claimctl_reschedule.plan.policy import Evictor
from claimctl_reschedule.plan.units import ClaimUnits, Unit
from claimctl_reschedule.shapes.scheduling import SchedulingPod
from claimctl_reschedule_tests.support.scheduling import NOW

NOTHING = Observed(now=NOW)


class NoDevices(Inventory):
    """The inventory of a cluster where no pod has claims."""

    def __init__(self) -> None:
        super().__init__(NOTHING)


class PodsAlone(ClaimUnits):
    """The units of a cluster where no pods belong together."""

    def __init__(self) -> None:
        super().__init__(NOTHING, Claims(NOTHING), NoDevices())

    def unit_of(self, pod: SchedulingPod, evictor: Evictor) -> Unit:
        return Unit(pods=(pod,))
