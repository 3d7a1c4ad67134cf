"""The steps of a plan in the groups that are executed all or none, and whose turn it is."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from claimctl_reschedule.plan.plan import Move, Plan, PodRef, Reallocation, ResizeStep, TaintStep
from claimctl_reschedule.plan.policy import HighNodeUtilization
from claimctl_reschedule.plan.prediction import AT_ONCE
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.run.landings import Landings
from claimctl_reschedule.run.steps import MoveStep, Result


@dataclass(slots=True, eq=False)
class MoveGroup:
    """A unit, or one pod alone. ``retry_at`` is of the monotonic clock."""

    steps: list[MoveStep]
    taint: TaintStep | None = None
    reallocations: tuple[Reallocation, ...] = ()
    resize: ResizeStep | None = None
    """The resize for which the pods are evicted."""
    noted: bool = False
    """Whether the round of the resize is in the record."""
    retry_at: float = 0.0
    tries: int = 0
    unsure: set[str] = field(default_factory=set)
    """The UIDs of pods whose eviction had no answer."""
    before: list[MoveGroup] = field(default_factory=list)
    """The groups before this one that leave, or go to, one of its nodes.

    Each expected node was chosen in the order of the plan. In another order the scheduler finds
    other numbers of pods on these nodes, and may choose the old node again.
    """
    room: list[MoveGroup] = field(default_factory=list)
    """The groups before this one that leave a node it goes to."""
    spare: list[TaintStep] = field(default_factory=list)
    """The empty nodes that are closed while nodes are emptied."""
    emptying: list[MoveGroup] = field(default_factory=list)
    """All groups that empty a node, if this is one: their nodes are closed together, until the last
    replacement has a node."""

    @property
    def closings(self) -> list[tuple[TaintStep, list[Move]]]:
        """The nodes that are closed before the evictions, and the pods that are to leave them."""
        groups = self.emptying or [self]
        taints = [(group.taint, group.moves) for group in groups if group.taint is not None]
        return taints + [(taint, []) for taint in self.spare]

    @property
    def moves(self) -> list[Move]:
        return [step.move for step in self.steps]

    @property
    def sources(self) -> set[str]:
        return {move.pod.node for move in self.moves}

    @property
    def targets(self) -> set[str]:
        """The expected nodes."""
        return {move.destination for move in self.moves if move.destination}

    @property
    def is_unit(self) -> bool:
        return len(self.steps) > 1 or self.taint is not None

    @property
    def rescues(self) -> bool:
        """Whether it makes room for a critical pod. Nothing promises its pods another node."""
        return self.taint is not None and self.taint.pod is not None

    @property
    def needs_room(self) -> PodRef | None:
        """The pod for which the others leave."""
        if self.resize is not None:
            return self.resize.pod
        return self.taint.pod if self.taint is not None else None

    @property
    def waits(self) -> bool:
        """Whether the groups before it must have settled, and not only be on their way."""
        return self.is_unit or any(move.waits or not move.destination for move in self.moves)

    @property
    def is_late(self) -> bool:
        """Whether replacements are made only when the pods have ended, or later still."""
        return any(move.owner is None or move.owner.kind not in AT_ONCE for move in self.moves)

    @property
    def evicted(self) -> list[MoveStep]:
        return [step for step in self.steps if step.result is Result.EVICTED]

    @property
    def started(self) -> bool:
        return bool(self.evicted)

    @property
    def workloads(self) -> set[str]:
        return {move.owner.workload_uid for move in self.moves if move.owner is not None}

    def leave(self, why: Obstacle, cause: MoveStep | None = None) -> None:
        """Leave all pods alone that were not evicted, because of one of them or of all."""
        of_others = why
        if cause is not None and why.reason is Ground.CHANGED:
            # nothing was refused: the work is done, or not wanted any more
            of_others = Obstacle(Ground.CHANGED, f"{cause.move.pod}: {why.detail}")
        elif cause is not None:
            of_others = Obstacle(Ground.UNIT, f"{cause.move.pod}: {why.reason}: {why.detail}")
        for step in self.steps:
            if step.result is not Result.EVICTED:
                step.leave(why if step is cause else of_others)


def groups_of(plan: Plan, steps: list[MoveStep]) -> list[MoveGroup]:
    """The groups in the order of the plan."""
    taints = {step.unit: step for step in plan.taints}
    resizes = {step.unit: step for step in plan.resizes}
    units: dict[str, MoveGroup] = {}
    groups: list[MoveGroup] = []
    for step in steps:
        unit = step.move.unit
        if not unit:
            groups.append(MoveGroup([step]))
        elif unit in units:
            units[unit].steps.append(step)
        else:
            asked = tuple(asked for asked in plan.reallocations if asked.unit == unit)
            units[unit] = MoveGroup([step], taints.get(unit), asked, resizes.get(unit))
            groups.append(units[unit])
    emptying = [group for group in groups if group.moves[0].strategy == HighNodeUtilization.name]
    for group in emptying:
        group.emptying, group.spare = emptying, [step for step in plan.taints if not step.unit]
    _order(groups)
    return groups


def _order(groups: list[MoveGroup]) -> None:
    """Note for each group which ones come before it."""
    touching: dict[str, list[MoveGroup]] = defaultdict(list)
    leaving: dict[str, list[MoveGroup]] = defaultdict(list)
    for group in groups:
        closed = {taint.node for taint, _ in group.closings}
        touched = sorted(group.sources | group.targets | closed)
        earlier = {id(other): other for node in touched for other in touching[node]}
        group.before = [other for other in earlier.values() if group.waits or not other.is_late]
        group.room = [earlier for node in sorted(group.targets) for earlier in leaving[node]]
        for node in touched:
            touching[node].append(group)
        for node in group.sources:
            leaving[node].append(group)


def has_its_turn(group: MoveGroup, landings: Landings) -> bool:
    """Whether the groups before this one have landed, and their room is free."""
    while group.before:
        earlier = group.before[-1]
        if not has_landed(earlier, landings):
            return False
        if group.waits and landings.is_settling(earlier.moves):
            return False
        group.before.pop()
    while group.room:
        if not has_landed(group.room[-1], landings):
            return False
        if not all(landings.has_ended(step.move.pod) for step in group.room[-1].evicted):
            return False
        group.room.pop()
    return True


def has_landed(group: MoveGroup, landings: Landings) -> bool:
    """Whether no pod of the group is still to be evicted, and no replacement is on its way."""
    return not any(
        step.result is Result.PLANNED or landings.is_under_way(step.uid) for step in group.steps
    )
