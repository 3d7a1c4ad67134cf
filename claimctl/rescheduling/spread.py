"""Topology spread constraints, as the scheduler's plugin PodTopologySpread judges them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from claimctl.rescheduling.labels import selects
from claimctl.rescheduling.world import World, WorldNode, WorldPod
from claimctl.reservation.reachability import admits, taints_of
from claimctl.wire.scheduling import (
    LabelSelector,
    LabelSelectorRequirement,
    TopologySpreadConstraint,
)

HARD = "DoNotSchedule"
Matches = Callable[[WorldNode], bool]
"""Whether a node matches the pod's node selector and required node affinity."""


@dataclass(slots=True)
class SpreadCheck:
    """One hard constraint: the number of matching pods in each domain."""

    key: str
    max_skew: int
    counts: Mapping[str, int]
    least: int
    own: int
    """1 if the pod itself matches the selector."""

    def problem(self, node: WorldNode) -> str:
        """Why the pod cannot be on the node; '' if it can."""
        value = node.labels.get(self.key)
        if value is None:
            return "topology spread: missing label"
        over = self.counts.get(value, 0) + self.own - self.least
        return "topology spread" if over > self.max_skew else ""


def checks_of(world: World, pod: WorldPod, matches: Matches) -> tuple[SpreadCheck, ...]:
    """The checks of the hard constraints of an incoming pod."""
    hard = [
        each for each in pod.pod.spec.topology_spread_constraints if each.when_unsatisfiable == HARD
    ]
    keys = [each.topology_key for each in hard]
    return tuple(_check(world, pod, each, keys, matches) for each in hard)


def selector_of(constraint: TopologySpreadConstraint, pod: WorldPod) -> LabelSelector | None:
    """The selector of the pods that count, with the pod's values of ``matchLabelKeys``."""
    selector = constraint.label_selector
    keys = [key for key in constraint.match_label_keys if key in pod.labels]
    if selector is None or not keys:
        return selector
    added = (
        LabelSelectorRequirement(key=key, operator="In", values=(pod.labels[key],)) for key in keys
    )
    return replace(selector, match_expressions=(*selector.match_expressions, *added))


def counts_by_domain(
    nodes: Iterable[WorldNode], key: str, per_node: Mapping[str, int]
) -> dict[str, int]:
    """The number of pods in each domain of these nodes, also where there are none."""
    counts: dict[str, int] = {}
    for node in nodes:
        value = node.labels.get(key)
        if value is not None:
            counts[value] = counts.get(value, 0) + per_node.get(node.name, 0)
    return counts


def counting_nodes(
    world: World,
    pod: WorldPod,
    constraint: TopologySpreadConstraint,
    keys: Iterable[str],
    matches: Matches,
) -> list[WorldNode]:
    """The nodes whose pods and domains count for the constraint."""
    honors_affinity = constraint.node_affinity_policy != "Ignore"
    honors_taints = constraint.node_taints_policy == "Honor"
    wanted = tuple(keys)
    return [
        node
        for node in world.nodes.values()
        if all(key in node.labels for key in wanted)
        and (not honors_affinity or matches(node))
        and (not honors_taints or admits(taints_of(node.node), pod.pod.spec.tolerations))
    ]


def _check(
    world: World,
    pod: WorldPod,
    constraint: TopologySpreadConstraint,
    keys: list[str],
    matches: Matches,
) -> SpreadCheck:
    selector = selector_of(constraint, pod)
    per_node = world.matching(frozenset({pod.namespace}), selector, staying=True)
    nodes = counting_nodes(world, pod, constraint, keys, matches)
    counts = counts_by_domain(nodes, constraint.topology_key, per_node)
    enough = len(counts) >= (constraint.min_domains or 1)
    return SpreadCheck(
        key=constraint.topology_key,
        max_skew=constraint.max_skew,
        counts=counts,
        least=min(counts.values(), default=0) if enough else 0,
        own=int(selects(selector, pod.labels)),
    )
