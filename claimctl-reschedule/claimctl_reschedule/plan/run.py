"""The state of one planning run: the moves chosen so far, and the reasons of the pods that stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from claimctl.reservation.facts.pods import claim_names
from claimctl.wire.traces import MOVING_TAINT, TAINT_VALUE_PREFIX
from claimctl_reschedule.plan.budgets import Budgets
from claimctl_reschedule.plan.facts import facts_of, reference
from claimctl_reschedule.plan.inventory import Inventory
from claimctl_reschedule.plan.ledger import Ledger
from claimctl_reschedule.plan.observed import Observed
from claimctl_reschedule.plan.plan import (
    AvoidStep,
    Move,
    Note,
    Owner,
    Reallocation,
    Release,
    ResizeStep,
    Skipped,
    TaintStep,
)
from claimctl_reschedule.plan.policy import Policy, Profile, RemoveDuplicates
from claimctl_reschedule.plan.prediction import Landing, Predictor, is_late
from claimctl_reschedule.plan.protections import Protections
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.plan.spread import unevener
from claimctl_reschedule.plan.units import ClaimUnits, Unit
from claimctl_reschedule.plan.world import Relocation, World, WorldNode, WorldPod
from claimctl_reschedule.shapes.scheduling import SchedulingPod

MOST_AT_ONCE = 100
"""So many moves of a plan may be made side by side; later ones wait for their turn."""
MOST_LATE = 8
"""So many of them may have replacements that come late."""

Accept = Callable[[Sequence[Relocation]], Obstacle | None]
"""Judges the moves of a unit. The ``World`` already shows them as made."""


@dataclass(frozen=True, slots=True)
class Context:
    """On whose behalf pods are moved."""

    strategy: str
    profile: Profile
    protections: Protections
    limit_per_node: int | None = None


@dataclass(slots=True)
class Run:
    observed: Observed
    policy: Policy
    world: World
    predictor: Predictor
    devices: Inventory
    units: ClaimUnits
    budgets: Budgets
    ledger: Ledger
    workloads: Mapping[str, str]
    """The UID of the object above each controller owner (a ReplicaSet's Deployment)."""
    moves: list[Move] = field(default_factory=list)
    taints: list[TaintStep] = field(default_factory=list)
    reallocations: list[Reallocation] = field(default_factory=list)
    resizes: list[ResizeStep] = field(default_factory=list)
    avoidances: list[AvoidStep] = field(default_factory=list)
    releases: list[Release] = field(default_factory=list)
    next_look: datetime | None = None
    """When the next run is due at the latest; None: as the interval says."""
    notes: list[Note] = field(default_factory=list)
    skipped: dict[str, Skipped] = field(default_factory=dict)
    """The last reason for each pod, by UID."""
    moved: set[str] = field(default_factory=set)
    """The UIDs of the pods that move."""
    _made: list[Relocation] = field(default_factory=list)
    """The moves to better nodes, in their order."""

    def note(self, context: Context, text: str) -> None:
        """Say something that concerns no single pod, unless the strategy has moved pods."""
        note = Note(strategy=context.strategy, profile=context.profile.name, text=text)
        busy = {(move.strategy, move.profile) for move in self.moves}
        if (note.strategy, note.profile) not in busy and note not in self.notes:
            self.notes.append(note)

    def look_again(self, due: datetime) -> None:
        """Let the next run begin then, if not earlier."""
        self.next_look = min(due, self.next_look or due)

    def skip(self, pod: SchedulingPod, context: Context, obstacle: Obstacle) -> None:
        """The pod was considered and stays."""
        uid = pod.metadata.uid
        if uid not in self.moved:
            self.skipped[uid] = Skipped(
                pod=reference(pod),
                strategy=context.strategy,
                profile=context.profile.name,
                reason=obstacle.reason,
                detail=obstacle.detail,
            )

    def move(self, pod: WorldPod, context: Context, accept: Accept, why: str) -> None:
        """Move the pod, with its unit, to where the scheduler is expected to put it. If it stays,
        its reason is in ``skipped``."""
        if obstacle := self._attempt(pod, context, accept, why):
            self.skip(pod.pod, context, obstacle)

    def _attempt(
        self, pod: WorldPod, context: Context, accept: Accept, why: str
    ) -> Obstacle | None:
        if obstacle := context.protections.obstacle(pod):
            return obstacle
        unit = self.units.unit_of(pod.pod, context.profile.evictor)
        if unit.obstacle is not None:
            return unit.obstacle
        pods = self.members(unit)
        if obstacle := self.forbidden(unit, pods, pod, context):
            return obstacle
        if obstacle := self.ledger.resting(context.strategy, pods):
            return obstacle
        steps = self.place(unit, pods, pod, accept)
        if isinstance(steps, Obstacle):
            return steps
        self.devices.commit()
        self.choose(unit, steps, pod, context, why)
        return None

    def members(self, unit: Unit) -> list[WorldPod]:
        """The pods of the unit that are on nodes."""
        members = (self.world.pods.get(pod.metadata.uid) for pod in unit.pods)
        return [member for member in members if member is not None]

    def forbidden(
        self, unit: Unit, pods: Sequence[WorldPod], first: WorldPod, context: Context
    ) -> Obstacle | None:
        """Why the unit may not be evicted, wherever it goes: rules, limits and budgets. The rest
        after earlier moves is for moves to better nodes alone. ``first`` is the pod that is to be
        moved; the others of ``pods`` come along."""
        if len(pods) < len(unit.pods):
            return Obstacle(Ground.UNIT, "a pod of its unit is on no node")
        for pod in pods:
            problem = context.protections.obstacle(pod)
            if pod.uid in self.moved:
                problem = Obstacle(Ground.ALREADY_MOVED)
            if problem is not None:
                return problem if pod is first else of_other(pod, problem)
        return self.beyond(pods, context)

    def beyond(self, pods: Sequence[WorldPod], context: Context) -> Obstacle | None:
        """The limit, or the disruption budget, that does not allow these pods to leave."""
        strategy, limit = context.strategy, context.limit_per_node
        return self.ledger.beyond_limits(strategy, pods, limit) or self.budgets.obstacle(pods)

    @contextmanager
    def trial(self) -> Iterator[None]:
        """What is changed inside, of pods and of devices, is taken back at the end."""
        known = self.devices.mark()
        try:
            with self.world.trial():
                yield
        finally:
            self.devices.undo(known)

    def leave(self, pods: Sequence[WorldPod], unit: Unit) -> None:
        """The pods of the unit leave their nodes, in the model."""
        for pod in pods:
            self.world.remove(pod)
        self.devices.leave(unit.pods, source_closed=unit.close_source)

    def place(
        self, unit: Unit, pods: Sequence[WorldPod], first: WorldPod, accept: Accept
    ) -> list[Relocation] | Obstacle:
        """Put all pods of the unit on their new nodes; if one has none, all are back. The devices
        are to be committed then, or undone."""
        mark, known = self.world.mark(), self.devices.mark()
        sources = [pod.node for pod in pods]
        self.leave(pods, unit)
        steps: list[Relocation] = []
        obstacle: Obstacle | None = None
        also: tuple[str, ...] = ()
        for pod, source in zip(pods, sources, strict=True):
            landing = self._put(pod, source, unit, steps)
            if isinstance(landing, Obstacle):
                obstacle = landing if pod is first else of_other(pod, landing)
                break
            also = landing.also if len(pods) == 1 else ()
        obstacle = obstacle or accept(steps) or self._against_others(steps, also, accept)
        if obstacle is not None:
            self.world.rollback(mark)
            self.devices.undo(known)
            return obstacle
        return steps

    def _put(
        self, pod: WorldPod, source: str, unit: Unit, steps: list[Relocation]
    ) -> Landing | Obstacle:
        landing = self.predictor.landing(pod, source, closed=unit.close_source)
        if isinstance(landing, Obstacle):
            return landing
        if obstacle := self.ledger.returns(pod, source, landing.node):
            return obstacle
        self.world.add(pod, landing.node)
        self.devices.take(landing.placement)
        steps.append(Relocation(pod, source, landing.node))
        return landing

    def _against_others(
        self, steps: Sequence[Relocation], names: Sequence[str], accept: Accept
    ) -> Obstacle | None:
        """Why the move of a pod is no gain on another node that the scheduler may take."""
        for name in names:
            pod, source = steps[0].pod, steps[0].source
            other = Relocation(pod, source, name)
            with self.world.trial():
                self.world.remove(pod)
                self.world.add(pod, name)
                obstacle = self.ledger.returns(pod, source, name) or accept([other])
            if obstacle is not None:
                return obstacle
        return None

    def unevener(self, steps: Sequence[Relocation]) -> Obstacle | None:
        """Whether the moves would leave RemoveDuplicates of the policy more to do."""
        spreads = self.policy.names(RemoveDuplicates)
        return unevener(self.world, steps, strictly=False) if spreads else None

    def _waits(self, steps: Sequence[Relocation]) -> bool:
        """Whether replacements may go elsewhere if the move is made beside those before it.

        Until all is over, pods that were evicted before still end on their nodes, and late
        replacements are not there yet. Those may come after this one. A Job pauses before it makes
        one: that is not waited for as long as it will not return.
        """
        late = [past for past in self._made if is_late(past.pod)]
        (step, *others), world = steps, self.world
        unknown = any(claim_names(past.pod.pod) for past in (step, *late))
        if others or unknown or len(self._made) > MOST_AT_ONCE or len(late) > MOST_LATE:
            return True
        with world.trial():
            world.remove(step.pod)
            for past in self._made:
                if past in late:
                    world.remove(past.pod)
                world.add(past.pod.ending(), past.source)
            node = self.predictor.node_of(step.pod, step.source)
        if node != step.destination:
            return True
        for past in late:
            with world.trial():
                world.remove(past.pod)
                node = self.predictor.node_of(past.pod, past.source)
            owner = past.pod.pod.metadata.controller()
            if not node or (node != past.destination and (not owner or owner.kind != "Job")):
                return True
        return False

    def choose(
        self, unit: Unit, steps: Sequence[Relocation], first: WorldPod, context: Context, why: str
    ) -> None:
        """Write the moves of a unit down, and what they need."""
        waits = self._waits(steps)
        source = next(step.source for step in steps if step.pod is first)
        closes = source if unit.close_source else ""
        if unit.close_source:
            self.close(source, first.uid, unit.id)
        self.reallocations += unit.reallocate
        for step in steps:
            paced = step.pod.uid in unit.paced
            self.chosen(step, context, why, unit.id, closes=closes, waits=waits, paced=paced)
        self._made += steps

    def close(self, node: str, uid: str, unit: str, key: str = MOVING_TAINT, **more: Any) -> None:
        """Taint the node for the pod with this UID, while the unit leaves; ``more`` are fields of a
        ``TaintStep``."""
        self.taints.append(taint_step(self.world.nodes[node], key, uid, unit, **more))

    def chosen(
        self,
        step: Relocation,
        context: Context,
        why: str,
        unit: str = "",
        **more: Any,
    ) -> None:
        """The pod moves: count it and write it down, with ``more`` fields of its ``Move``. The
        ``World`` is changed by the caller."""
        pod = step.pod
        self.budgets.spend(pod)
        self.ledger.count(context.strategy, pod, step.source, step.destination)
        move = self._move(pod.pod, context, why)
        place = replace(move.pod, node=step.source)
        move = replace(move, pod=place, destination=step.destination, unit=unit)
        self.moves.append(replace(move, **more))

    def _move(self, pod: SchedulingPod, context: Context, why: str) -> Move:
        """Write down that the pod leaves its node."""
        self.moved.add(pod.metadata.uid)
        self.skipped.pop(pod.metadata.uid, None)
        return Move(
            strategy=context.strategy,
            profile=context.profile.name,
            pod=reference(pod),
            owner=self._owner(pod),
            facts=facts_of(pod),
            why=why,
        )

    def _owner(self, pod: SchedulingPod) -> Owner | None:
        owner = pod.metadata.controller()
        if owner is None:
            return None
        above = self.workloads.get(owner.uid, "")
        return Owner(kind=owner.kind, name=owner.name, uid=owner.uid, workload=above)

    def cleaned(self, pod: SchedulingPod, context: Context, why: str) -> None:
        """Remove a pod that has ended. Limits and budgets do not concern it."""
        self.moves.append(replace(self._move(pod, context, why), cleans=True))


def taint_step(node: WorldNode, key: str, uid: str, unit: str, **more: Any) -> TaintStep:
    """Taint the node for a pod or an owner with this UID."""
    value, meta = TAINT_VALUE_PREFIX + uid, node.node.metadata
    return TaintStep(node=node.name, node_uid=meta.uid, key=key, value=value, unit=unit, **more)


def of_other(pod: WorldPod, obstacle: Obstacle) -> Obstacle:
    name = f"{pod.namespace}/{pod.pod.metadata.name}"
    detail = f": {obstacle.detail}" if obstacle.detail else ""
    return Obstacle(Ground.UNIT, f"{name} moves along: {obstacle.reason}{detail}")
