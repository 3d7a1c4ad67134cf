"""The perturbations of Sieve (OSDI'22) and one more, tried at every point of the reference runs.

Intermediate state: a crash and a restart after every request. Stale state: a restart that sees an
older view of the cluster, for every older view. Unobserved state: a watch event that does not
arrive until its kind is listed anew, for every event. Refused: a conflict as the answer, for every
write.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from labs.torture.faulty_transport import FaultPlan
from labs.torture.reference import ReferenceRun, Restart, play, references
from labs.torture.testbed import RunVerdict

INTERMEDIATE, STALE, UNOBSERVED = "intermediate", "stale", "unobserved"
REFUSED = "refused"
KINDS = (INTERMEDIATE, STALE, UNOBSERVED, REFUSED)
UNDISTURBED = "undisturbed"
"""A reference run without a perturbation."""


@dataclass(frozen=True, slots=True)
class Point:
    """One perturbation of one reference run. ``number`` is its index among all of them."""

    number: int
    kind: str
    reference: int
    plan: FaultPlan | None = None
    restart: Restart | None = None

    @property
    def name(self) -> str:
        where = ""
        if self.restart is not None:
            where = f" revision {self.restart.revision} before step {self.restart.step}"
        elif self.plan is not None:
            where = f" {self.plan.dies_at or self.plan.withheld or self.plan.refused_at}"
        return f"point {self.number}: {references()[self.reference].name}, {self.kind}{where}"


@cache
def points() -> tuple[Point, ...]:
    """All points, in an order that is always the same for the same code."""
    found_points: list[Point] = []
    for index, reference in enumerate(references()):
        for kind, plan, restart in _of(reference):
            found_points.append(Point(len(found_points), kind, index, plan, restart))
    return tuple(found_points)


def _of(reference: ReferenceRun) -> Iterator[tuple[str, FaultPlan | None, Restart | None]]:
    undisturbed = play(reference)
    if not undisturbed.good:
        raise AssertionError(f"{reference.name} fails undisturbed: {undisturbed}")
    for request in range(1, undisturbed.requests + 1):
        yield INTERMEDIATE, FaultPlan(dies_at=request), None
    for step, views in enumerate(undisturbed.views):
        for revision in views:
            yield STALE, None, Restart(step, revision)
    for event in range(1, undisturbed.events + 1):
        yield UNOBSERVED, FaultPlan(withheld=event), None
    for write in range(1, undisturbed.writes + 1):
        yield REFUSED, FaultPlan(refused_at=write), None


def perturb(point: Point) -> RunVerdict:
    """Play a reference run with one perturbation."""
    verdict = play(references()[point.reference], point.plan, point.restart)
    verdict.name = point.name
    verdict.counts[point.kind] += 1
    return verdict
