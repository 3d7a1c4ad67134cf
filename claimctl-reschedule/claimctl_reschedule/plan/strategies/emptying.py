"""HighNodeUtilization: empty nodes that are hardly used, so that an autoscaler can take them.

A node is emptied whole or not begun. Pods of DaemonSets and mirror pods do not count. The scheduler
prefers empty nodes. So all nodes that are emptied, and the empty ones that fit, are closed until
the last replacement has a node: each goes to a node that stays in use. To which of these cannot be
known. A node is emptied only if its pods find room wherever the others go.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

from msgspec.structs import replace

from claimctl.text import counted
from claimctl.wire.nodes import Taint
from claimctl.wire.placement import admits
from claimctl.wire.traces import MOVING_TAINT, TAINT_VALUE_PREFIX
from claimctl_reschedule.plan.facts import MIRROR, victim_rank
from claimctl_reschedule.plan.fit import Unknown
from claimctl_reschedule.plan.policy import HighNodeUtilization
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.plan.run import Context, Run, of_other
from claimctl_reschedule.plan.spread import HARD
from claimctl_reschedule.plan.strategies.utilization import Nodes, Usage, too_few
from claimctl_reschedule.plan.units import Unit
from claimctl_reschedule.plan.victims import Victim, loss_of, pods_of, victims_among
from claimctl_reschedule.plan.world import HOSTNAME, Relocation, WorldPod, required_anti_affinity

MOST_EMPTIED, MOST_CLOSED = 20, 100
"""So many nodes are emptied in one run, and so many empty ones are closed for one of them."""
MOST_COMBINED = 7
"""Of more pods on a node, not all the ways are looked at in which they can be on another one."""
_TAINT = Taint(key=MOVING_TAINT, value=TAINT_VALUE_PREFIX, effect="NoSchedule")


def empty_nodes(run: Run, context: Context, wanted: HighNodeUtilization) -> None:
    """Choose the nodes to empty, once in a plan: what is closed for one is closed for all."""
    if any(move.strategy == context.strategy for move in run.moves):
        return
    low = {name: Fraction(percent) for name, percent in wanted.thresholds.items()}
    usage = Usage(run.world, run.devices)
    nodes = Nodes(run, usage, low, {}, tuple(low))
    names = filter(context.protections.selects_node, run.world.nodes)
    under = [name for name in names if nodes.is_under_used(name)]
    if text := too_few(len(under), wanted.number_of_nodes):
        run.note(context, text)
    else:
        _Emptying(run, context, wanted, usage).choose(under)


@dataclass(slots=True)
class _Emptying:
    run: Run
    context: Context
    wanted: HighNodeUtilization
    usage: Usage
    used: list[str] = field(init=False)
    """The nodes with pods that count, the emptiest first."""

    def __post_init__(self) -> None:
        nodes = self.run.world.nodes.values()
        used = (node for node in nodes if any(map(self._counts, node.pods.values())))
        self.used = [node.name for node in sorted(used, key=lambda node: node.scored)]

    def _counts(self, pod: WorldPod) -> bool:
        """Whether the pod keeps its node in use."""
        meta = pod.pod.metadata
        owner = meta.controller()
        of_node = owner is not None and owner.kind in ("DaemonSet", "Node")
        if of_node or meta.annotation(MIRROR) is not None or meta.deleting:
            return False
        asked = (self.usage.requested(pod, name) for name in self.wanted.thresholds)
        return not self.wanted.eviction_modes or any(asked)

    def choose(self, under: Sequence[str]) -> None:
        """Take the node that costs least first, and each further one if all can be emptied."""
        sources = [source for name in under if (source := self._source(name)) is not None]
        chosen: list[Victim] = []
        closed: set[str] = set()
        for source in sorted(sources, key=lambda source: (loss_of(source), source.unit.id)):
            spare = self._spare(source)
            if obstacle := self._against([*chosen, source], spare):
                self._stay(source.pods, obstacle)
            else:
                chosen.append(source)
                closed.update(spare)
        made = self._made(chosen)
        assert not isinstance(made, Obstacle)
        self.run.devices.commit()
        for source, steps in zip(chosen, made, strict=True):
            why = f"{steps[0].source} is under-used, and is emptied"
            self.run.choose(source.unit, steps, source.pods[0], self.context, why)
        for name in sorted(closed):
            self.run.close(name, chosen[0].pods[0].uid, "")

    def _against(self, sources: Sequence[Victim], spare: set[str]) -> Obstacle | None:
        """Why the last of these nodes cannot be emptied beside the others."""
        if len(sources) > MOST_EMPTIED:
            return Obstacle(Ground.LIMIT_TOTAL, f"{MOST_EMPTIED} nodes are emptied in one run")
        closable = all(map(self.context.protections.selects_node, spare))
        if not closable or len(spare) > MOST_CLOSED:
            text = f"they fit on {counted(len(spare), 'empty node')} that claimctl may not close"
            return Obstacle(Ground.NO_BETTER_NODE, text)
        if obstacle := self.run.beyond(pods_of(sources), self.context):
            return obstacle
        with self.run.trial():
            made = self._made(sources)
        return made if isinstance(made, Obstacle) else None

    def _stay(self, pods: Sequence[WorldPod], obstacle: Obstacle) -> None:
        for pod in pods:
            self.run.skip(pod.pod, self.context, obstacle)

    # one node

    def _source(self, name: str) -> Victim | None:
        """The node, unless it has no pods, or one of them stays in any case."""
        evictor = self.context.profile.evictor
        here = list(filter(self._counts, self.run.world.nodes[name].pods.values()))
        victims, staying = victims_among(self.run, self.context, here, sys.maxsize, evictor)
        for victim in victims:
            if obstacle := self._obstacle(victim, name):
                staying.append((victim.pods[0], obstacle))
        for pod, obstacle in staying[:1]:
            self._stay(here, of_other(pod, obstacle))
        for pod, obstacle in staying:
            self._stay([pod], obstacle)
        if staying or not victims:
            return None
        victims.sort(key=lambda victim: (-len(victim.pods), victim_rank(victim.pods[0])))
        id_, pods = f"node {name}", tuple(pods_of(victims))
        asked = (asked for victim in victims for asked in victim.unit.reallocate)
        unit = Unit(
            pods=tuple(pod.pod for pod in pods),
            id=id_,
            close_source=True,
            reallocate=tuple(replace(claim, unit=id_) for claim in asked),
            paced=frozenset(v.pods[0].uid for v in victims if len(v.pods) == 1),
        )
        return Victim(unit, pods)

    def _obstacle(self, victim: Victim, node: str) -> Obstacle | None:
        """Why a unit that may be evicted does not leave with all others of the node."""
        for pod in victim.pods:
            if pod.namespace in self.wanted.evictable_namespaces.exclude:
                return Obstacle(Ground.NAMESPACE, pod.namespace)
            if pod.node != node:
                return Obstacle(Ground.UNIT, "a pod of its unit is on another node")
            if admits((_TAINT,), pod.pod.spec.tolerations):
                return Obstacle(Ground.STAYS, f"it tolerates {MOVING_TAINT}, so it might return")
        return self.run.ledger.resting(self.context.strategy, victim.pods)

    def _spare(self, source: Victim) -> set[str]:
        """The empty nodes that one of the pods may fit."""
        with self.run.trial():
            self.run.leave(source.pods, source.unit)
            empty = self.run.world.nodes.keys() - set(self.used)
            return {
                name
                for pod in source.pods
                for name in self._where(pod, empty)
                if self._fits((pod,), name, doubt=True)
            }

    # room

    def _made(self, sources: Sequence[Victim]) -> list[list[Relocation]] | Obstacle:
        """Move the pods of all these nodes to others, in the ``World``. The caller takes it back if
        that fails."""
        shut = {source.pods[0].node for source in sources}
        staying = [name for name in self.used if name not in shut]
        made: list[list[Relocation]] = []
        with self.run.predictor.without(self.run.world.nodes.keys() - set(staying)):
            for source in sources:
                if obstacle := self._uncertain(source, staying):
                    return obstacle
                steps = self.run.place(source.unit, source.pods, source.pods[0], self.run.unevener)
                if isinstance(steps, Obstacle):
                    return steps
                made.append(steps)
        return made

    def _uncertain(self, source: Victim, staying: Sequence[str]) -> Obstacle | None:
        """Why a replacement might find no room on the nodes that stay in use."""
        with self.run.trial():
            self.run.leave(source.pods, source.unit)
            for pod in source.pods:
                name = pod.pod.metadata.name
                others = [other for other in source.pods if other is not pod]
                if others and self._depends(pod):
                    text = f"where {name} fits depends on where others go"
                    return Obstacle(Ground.FIT_UNKNOWN, text)
                alone = pod.uid in source.unit.paced
                if not (self._fits_any if alone else self._fit_all)(pod, others, staying):
                    text = f"{name} might find no room on a node that stays in use"
                    return Obstacle(Ground.NO_BETTER_NODE, text)
        return None

    def _fits_any(self, pod: WorldPod, others: Sequence[WorldPod], staying: Sequence[str]) -> bool:
        """Whether the others are too few to take all the room: each goes to one node."""
        needed = 0
        for name in self._where(pod, staying):
            needed += self._needed(pod, others, name)
            if needed > len(others):
                return True
        return False

    def _fit_all(self, pod: WorldPod, others: Sequence[WorldPod], staying: Sequence[str]) -> bool:
        """Whether all find room together, wherever the first of them goes: those that share a claim
        follow it."""
        where = self._where(pod, staying)
        fitting = [name for name in where if self._fits((pod,), name, doubt=True)]
        return bool(fitting) and all(self._fits((pod, *others), name) for name in fitting)

    def _needed(self, pod: WorldPod, others: Sequence[WorldPod], name: str) -> int:
        """How many of the others must be on the node, so that the pod finds no room there. More
        than there are: they cannot take its room."""
        if not self._fits((pod,), name):
            return 0
        if self._fits((*others, pod), name):
            return len(others) + 1
        if len(others) >= MOST_COMBINED:
            return 1
        for number in range(1, len(others)):
            if not all(self._fits((*some, pod), name) for some in combinations(others, number)):
                return number
        return len(others)

    def _depends(self, pod: WorldPod) -> bool:
        """Whether a pod elsewhere can change where this one fits."""
        spec = pod.pod.spec
        anti = (known.term for known in self.run.world.anti_terms(pod))
        keys = {term.topology_key for term in (*anti, *required_anti_affinity(spec.affinity))}
        hard = (c for c in spec.topology_spread_constraints if c.when_unsatisfiable == HARD)
        keys.update(constraint.topology_key for constraint in hard)
        near = spec.affinity and spec.affinity.pod_affinity
        return bool(keys - {HOSTNAME} or (near and near.required))

    def _where(self, pod: WorldPod, names: Iterable[str]) -> Iterator[str]:
        """Those of the nodes that the pod may fit as they are, but for its claims."""
        nodes = self.run.world.nodes
        try:
            fitting = self.run.predictor.fitter.of(pod)
        except Unknown:
            return iter(names)
        return (name for name in names if not fitting.problem(nodes[name]))

    def _fits(self, pods: Sequence[WorldPod], name: str, *, doubt: bool = False) -> bool:
        """Whether all of them, one after the other, have room on the node; ``doubt`` if that is not
        known."""
        run = self.run
        with self.run.trial():
            for pod in pods:
                try:
                    problem = run.predictor.fitter.of(pod).problem(run.world.nodes[name])
                except Unknown:
                    return doubt
                if problem:
                    return False
                placement = run.devices.place(pod.pod, name)
                if isinstance(placement, Obstacle):
                    return doubt and placement.reason is Ground.FIT_UNKNOWN
                run.world.add(pod, name)
                run.devices.take(placement)
        return True
