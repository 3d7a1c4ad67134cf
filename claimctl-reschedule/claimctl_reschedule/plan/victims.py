"""The pods that are evicted so that another one gets their room: whole units of lower priority.

``fewest`` finds the cheapest set that is enough. First all candidates are taken, and then one after
the other is left alone, if the rest is still enough: once in the order of their worth, once the
smallest first. The cheaper result is then compared with every smaller set, as long as the steps
last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice
from typing import Any, TypeVar

from claimctl_reschedule.plan.policy import Evictor
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.plan.run import Context, Run
from claimctl_reschedule.plan.units import Unit
from claimctl_reschedule.plan.world import WorldPod

Loss = tuple[int, int, int, int, float]
"""The highest priority, holds to be released, workloads hit, pods, and the age of the oldest: the
less, the better."""
T = TypeVar("T")
Enough = Callable[[Sequence[T]], bool]
MOST_STEPS = 20_000
"""So many sets are looked at."""


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


def loss_of(*victims: Victim) -> Loss:
    pods = pods_of(victims)
    asked = (asked for victim in victims for asked in victim.unit.reallocate)
    claims = {(reallocation.namespace, reallocation.claim) for reallocation in asked}
    created = [pod.pod.metadata.creation_timestamp for pod in pods]
    return (
        max(victim.priority for victim in victims),
        len(claims),
        len({pod.owner_uid for pod in pods}),
        len(pods),
        max((-moment.timestamp() for moment in created if moment), default=0.0),
    )


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


def victims_among(
    run: Run, context: Context, pods: Iterable[WorldPod], below: int, evictor: Evictor
) -> tuple[list[Victim], list[tuple[WorldPod, Obstacle]]]:
    """The units of these pods that may be evicted, and why the other pods may not."""
    victims: list[Victim] = []
    obstacles: list[tuple[WorldPod, Obstacle]] = []
    seen: set[str] = set()
    for pod in sorted(pods, key=lambda pod: pod.key):
        if pod.uid not in seen:
            victim = victim_of(run, context, pod, below, evictor)
            if isinstance(victim, Obstacle):
                obstacles.append((pod, victim))
            else:
                victims.append(victim)
                seen |= victim.uids
    return victims, obstacles


def pods_of(victims: Iterable[Victim]) -> list[WorldPod]:
    return [pod for victim in victims for pod in victim.pods]


def reprieve(candidates: Sequence[T], enough: Enough[T]) -> tuple[T, ...] | None:
    """Drop each candidate in turn if the others still suffice; the rest, or None if all are not
    enough."""
    if not enough(candidates):
        return None
    left = list(candidates)
    for candidate in candidates:
        rest = [other for other in left if other is not candidate]
        if enough(rest):
            left = rest
    return tuple(left)


def fewest(
    orders: Sequence[Sequence[T]],
    enough: Enough[T],
    cost: Callable[[Sequence[T]], Any],
    size: Callable[[Sequence[T]], int],
) -> tuple[T, ...] | None:
    """The cheapest set of candidates that is enough; None if no set is.

    Args:
        orders: the candidates in several orders, in each the first to be spared first.
        enough: whether a set is enough. A larger set need not be.
        cost: the least is taken; ``size`` must be its first part.
        size: at least the number of candidates.
    """
    sets = [left for order in orders if (left := reprieve(order, enough)) is not None]
    best = min(sets, key=cost, default=None)
    candidates = orders[0]
    largest = len(candidates) if best is None else min(size(best), len(candidates))
    smaller = (combinations(candidates, number) for number in range(1, largest + 1))
    for chosen in islice(chain.from_iterable(smaller), MOST_STEPS):
        if (best is None or cost(chosen) < cost(best)) and enough(chosen):
            best = chosen
    return best
