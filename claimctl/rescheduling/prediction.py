"""Where the scheduler is expected to put the replacement of a pod.

The scheduler of a large cluster looks at some of the nodes that fit and takes the best of these.
So does ``Predictor``, beginning each time where it stopped before. Which nodes a scheduler looks at
cannot be known, so in a large cluster the destination is a guess; that it fits is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from claimctl.rescheduling.devices import Devices, Placement
from claimctl.rescheduling.fit import Fitter, Fitting, Unknown
from claimctl.rescheduling.reasons import Obstacle, Reason
from claimctl.rescheduling.scoring import scores
from claimctl.rescheduling.world import World, WorldNode, WorldPod
from claimctl.reservation.pods import claim_names

_ALL_BELOW, _LEAST_PERCENT = 100, 5
"""minFeasibleNodesToFind and minFeasibleNodesPercentageToFind of kube-scheduler."""


@dataclass(frozen=True, slots=True)
class Landing:
    """A node that fits, and what the pod's claims would use there."""

    node: str
    placement: Placement


@dataclass(slots=True)
class Predictor:
    world: World
    fitter: Fitter
    devices: Devices
    _next: int = 0
    _names: list[str] = field(default_factory=list)

    def landing(self, pod: WorldPod, source: str, *, closed: bool = False) -> Landing | Obstacle:
        """The expected node of the replacement of a pod that has left the node ``source``.

        A replacement that is expected to return there is an obstacle.

        Args:
            closed: whether ``source`` is closed to the replacement.
        """
        try:
            fitting = self.fitter.of(pod)
        except Unknown as unknown:
            return Obstacle(Reason.FIT_UNKNOWN, str(unknown))
        has_claims = bool(pod.pod.spec.resource_claims or claim_names(pod.pod))
        problems: Counter[str] = Counter()
        nodes = self._fitting(fitting, "" if has_claims else source, problems)
        if closed:
            nodes = [node for node in nodes if node.name != source]
        if all(node.name == source for node in nodes):
            return Obstacle(Reason.NO_OTHER_NODE, describe(problems, len(self.world.nodes)))
        ranked = self._ranked(pod, nodes, source)
        if has_claims:
            return self._with_claims(pod, ranked, source)
        if ranked[0].name == source:
            return _returns(source)
        placement = self.devices.place(pod.pod, ranked[0].name)
        return placement if isinstance(placement, Obstacle) else Landing(ranked[0].name, placement)

    def _fitting(self, fitting: Fitting, source: str, problems: Counter[str]) -> list[WorldNode]:
        """The nodes that fit: ``source``, and as many others as the scheduler looks at.

        With an empty ``source``, all nodes that fit.
        """
        wanted = _enough(len(self.world.nodes)) if source else len(self.world.nodes)
        found = []
        if source and not fitting.problem(self.world.nodes[source]):
            found.append(self.world.nodes[source])
        for node in self._from_next():
            if len(found) >= wanted:
                break
            if source:
                self._next += 1
            if node.name == source:
                continue
            if problem := fitting.problem(node):
                problems[problem] += 1
            else:
                found.append(node)
        return found

    def _from_next(self) -> Iterator[WorldNode]:
        if not self._names:
            self._names = list(self.world.nodes)
        start, count = self._next, len(self._names)
        for index in range(count):
            yield self.world.nodes[self._names[(start + index) % count]]

    def _ranked(self, pod: WorldPod, nodes: list[WorldNode], source: str) -> list[WorldNode]:
        """The best node first. Among equals the source comes first, as it may be taken."""
        found = scores(self.world, pod, nodes)
        pairs = zip(found, nodes, strict=True)
        order = sorted(pairs, key=lambda pair: (-pair[0], pair[1].name != source, pair[1].name))
        return [node for _, node in order]

    def _with_claims(
        self, pod: WorldPod, ranked: list[WorldNode], source: str
    ) -> Landing | Obstacle:
        """The first node that also fits the pod's claims."""
        first: Obstacle | None = None
        for node in ranked:
            placement = self.devices.place(pod.pod, node.name)
            if isinstance(placement, Placement):
                return _returns(source) if node.name == source else Landing(node.name, placement)
            if placement.reason is Reason.FIT_UNKNOWN:
                return placement
            first = first or placement
        return first or Obstacle(Reason.NO_OTHER_NODE)


def describe(problems: Counter[str], nodes: int) -> str:
    """Why nodes do not fit, as the scheduler says it: the most frequent problem first."""
    order = sorted(problems.items(), key=lambda item: (-item[1], item[0]))
    parts = ", ".join(f"{count} {problem}" for problem, count in order)
    return f"of {nodes} nodes: {parts}" if parts else f"of {nodes} nodes"


def _returns(source: str) -> Obstacle:
    return Obstacle(Reason.STAYS, f"the scheduler is expected to choose {source} again")


def _enough(nodes: int) -> int:
    """How many nodes that fit the scheduler looks at (numFeasibleNodesToFind)."""
    if nodes < _ALL_BELOW:
        return nodes
    percent = max(50 - nodes // 125, _LEAST_PERCENT)
    return max(nodes * percent // 100, _ALL_BELOW)
