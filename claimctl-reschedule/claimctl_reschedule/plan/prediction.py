"""Where the scheduler is expected to put the replacement of a pod.

The scheduler of a large cluster looks at some of the nodes that fit, at least at 100, and takes the
best of these. Which ones cannot be known. ``Predictor`` looks at the pod's own node and at 100
others, beginning each time where it stopped before. So in a large cluster the destination is a
guess; that it fits is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice

from claimctl.text import counted
from claimctl_reschedule.plan.fit import Fitter, Fitting, Unknown
from claimctl_reschedule.plan.inventory import Inventory, Placement
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.plan.scoring import scores
from claimctl_reschedule.plan.world import World, WorldNode, WorldPod

ENOUGH = 100
"""How many nodes that fit are looked at beside the source (minFeasibleNodesToFind). If none of them
has devices for the pod's claims, the next ones are."""
AT_ONCE = frozenset({"ReplicaSet", "ReplicationController"})
"""The owners that replace a pod as soon as its deletion begins."""
_FINAL = frozenset({Ground.STAYS, Ground.FIT_UNKNOWN})


@dataclass(frozen=True, slots=True)
class Landing:
    """A node that fits, and what the pod's claims would use there."""

    node: str
    placement: Placement
    also: tuple[str, ...] = ()
    """Nodes that score alike: the scheduler takes any of them. Not told for a pod with claims."""


@dataclass(slots=True)
class Predictor:
    world: World
    fitter: Fitter
    devices: Inventory
    _shut: Collection[str] = ()
    _next: int = 0
    _names: list[str] = field(default_factory=list)

    def landing(self, pod: WorldPod, source: str, *, closed: bool = False) -> Landing | Obstacle:
        """The expected node of the replacement of a pod that has left the node ``source``.

        A replacement that is expected to return there is an obstacle, unless it leaves tainted
        devices for others. A ReplicaSet makes it at once, while the pod still ends on ``source``.
        That may make ``source`` better only where the pod's affinity is about its like. Then it
        must not come back later, either. ``closed``: no replacement can be on ``source``.
        """
        if is_late(pod):
            return self._landing(pod, source, closed=closed)
        first = self._next
        if _meets_itself(pod) and isinstance(
            gone := self._landing(pod, source, closed=closed), Obstacle
        ):
            return gone
        self._next = first
        with self.world.trial():
            self.world.add(pod.ending(), source)
            return self._landing(pod, source, closed=closed)

    def node_of(self, pod: WorldPod, source: str) -> str:
        """The same node, asked for once more; '' if the replacement would return."""
        first = self._next
        landing = self.landing(pod, source)
        self._next = first
        return landing.node if isinstance(landing, Landing) else ""

    @contextmanager
    def without(self, nodes: Collection[str]) -> Iterator[None]:
        """Inside, these nodes are closed to all pods. It always begins at the same node."""
        first, self._shut = self._next, nodes
        try:
            yield
        finally:
            self._next, self._shut = first, ()

    def _landing(self, pod: WorldPod, source: str, *, closed: bool) -> Landing | Obstacle:
        try:
            fitting = self.fitter.of(pod)
        except Unknown as unknown:
            return Obstacle(Ground.FIT_UNKNOWN, str(unknown))
        problems: Counter[str] = Counter()
        stays = not closed and not fitting.problem(self.world.nodes[source])
        here = [self.world.nodes[source]] if stays else []
        others = self._others(fitting, source, problems)
        first: Obstacle | None = None
        while batch := list(islice(others, ENOUGH)):
            best = self._best(pod, [*here, *batch], source)
            if isinstance(best, Landing) or best.reason in _FINAL:
                return best
            first = first or best
        if here and first is None and self.devices.leaves_devices(pod.pod):
            return self._best(pod, here, source)
        return first or Obstacle(Ground.NO_OTHER_NODE, describe(problems, len(self.world.nodes)))

    def _others(self, fitting: Fitting, source: str, problems: Counter[str]) -> Iterator[WorldNode]:
        """The other nodes that fit, beginning behind the last one that was looked at."""
        names = self._names = self._names or list(self.world.nodes)
        for _ in names:
            node = self.world.nodes[names[self._next]]
            self._next = (self._next + 1) % len(names)
            if node.name == source or node.name in self._shut:
                continue
            if problem := fitting.problem(node):
                problems[problem] += 1
            else:
                yield node

    def _best(self, pod: WorldPod, nodes: list[WorldNode], source: str) -> Landing | Obstacle:
        """The best node that also fits the pod's claims. Among equals the source comes first, as
        the scheduler may take it. If it is best only because better nodes lack devices, that is the
        obstacle."""
        totals = scores(self.world, pod, nodes)
        order = sorted(
            (-score, node.name != source, node.name)
            for score, node in zip(totals, nodes, strict=True)
        )
        first: Obstacle | None = None
        for score, _, name in order:
            placement = self.devices.place(pod.pod, name)
            if isinstance(placement, Obstacle):
                if placement.reason is Ground.FIT_UNKNOWN:
                    return placement
                first = first or placement
            elif name == source and not self.devices.leaves_devices(pod.pod):
                detail = f"the scheduler is expected to choose {source} again"
                return first or Obstacle(Ground.STAYS, detail)
            else:
                alike = (other for total, _, other in order if total == score and other != name)
                also = () if placement.devices or placement.joins else tuple(alike)
                return Landing(name, placement, also)
        return first or Obstacle(Ground.NO_OTHER_NODE)


def is_late(pod: WorldPod) -> bool:
    """Whether the replacement is made only when the pod has ended, or later still."""
    owner = pod.pod.metadata.controller()
    return owner is None or owner.kind not in AT_ONCE


def _meets_itself(pod: WorldPod) -> bool:
    affinity = pod.pod.spec.affinity
    return affinity is not None and bool(affinity.pod_affinity or affinity.pod_anti_affinity)


def describe(problems: Counter[str], nodes: int) -> str:
    """Why nodes do not fit, as the scheduler says it: the most frequent problem first."""
    order = sorted(problems.items(), key=lambda item: (-item[1], item[0]))
    parts = ", ".join(f"{count} {problem}" for problem, count in order)
    return f"of {counted(nodes, 'node')}{': ' if parts else ''}{parts}"
