"""The pods that are evicted so that another one gets their room: whole units of lower priority."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from claimctl.reschedule.plan.policy import Evictor
from claimctl.reschedule.plan.reasons import Ground, Obstacle
from claimctl.reschedule.plan.run import Context, Run
from claimctl.reschedule.plan.units import Unit
from claimctl.reschedule.plan.world import WorldPod


def priority(pod: WorldPod) -> int:
    return pod.pod.spec.priority or 0


@dataclass(frozen=True, slots=True)
class Victim:
    """A unit that may be evicted."""

    unit: Unit
    pods: tuple[WorldPod, ...]

    @property
    def uids(self) -> frozenset[str]:
        return frozenset(pod.uid for pod in self.pods)

    @property
    def priority(self) -> int:
        return max(map(priority, self.pods))


def victim_of(
    run: Run, context: Context, pod: WorldPod, below: int, evictor: Evictor
) -> Victim | Obstacle:
    """The unit of a pod, or why it may not be evicted for a pod with the priority ``below``."""
    if obstacle := context.protections.obstacle(pod):
        return obstacle
    unit = run.units.unit_of(pod.pod, evictor)
    if unit.obstacle is not None:
        return unit.obstacle
    pods = tuple(run.members(unit))
    if obstacle := run.forbidden(unit, pods, pod, context):
        return obstacle
    if any(priority(member) >= below for member in pods):
        return Obstacle(Ground.UNIT, "a pod of its unit is as critical")
    return Victim(unit, pods)


def pods_of(victims: Iterable[Victim]) -> list[WorldPod]:
    return [pod for victim in victims for pod in victim.pods]
