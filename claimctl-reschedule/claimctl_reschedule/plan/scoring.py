"""How the default scheduler scores nodes that fit: least allocated, balanced, and preferences.

The weights are those of the default profile. Images on nodes are not known, so ImageLocality is
missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from claimctl.wire.nodes import Taint
from claimctl.wire.placement import matches_term, tolerates
from claimctl_reschedule.plan import spread
from claimctl_reschedule.plan.fit import wanted_nodes
from claimctl_reschedule.plan.requests import CPU, MEMORY
from claimctl_reschedule.plan.world import HOSTNAME, World, WorldNode, WorldPod, preferred_terms

TOP = 100
"""The best score of one rule (MaxNodeScore)."""
_TAINTS, _AFFINITY, _SPREAD, _PODS = 3, 2, 2, 2
ZONE = "topology.kubernetes.io/zone"
_DEFAULT_SPREAD = ((HOSTNAME, 3), (ZONE, 5))
"""The system's default constraints, with their maxSkew."""
_SPREAD_OWNERS = frozenset({"ReplicaSet", "ReplicationController", "StatefulSet"})
"""The owners whose selectors the default constraints use."""


def scores(world: World, pod: WorldPod, nodes: Sequence[WorldNode]) -> list[int]:
    """The score of each node, in the order of ``nodes``. The pod must not be on a node."""
    total = [_room(pod, node) for node in nodes]
    for weight, partial in (
        (_TAINTS, _taints(pod, nodes)),
        (_AFFINITY, _node_affinity(pod, nodes)),
        (_SPREAD, _spread(world, pod, nodes)),
        (_PODS, _pod_affinity(world, pod, nodes)),
    ):
        if partial is not None:
            for index, score in enumerate(partial):
                total[index] += weight * score
    return total


def _room(pod: WorldPod, node: WorldNode) -> int:
    """LeastAllocated and BalancedAllocation of cpu and memory."""
    cpu, memory, scored = node.cpu, node.memory, node.scored
    if not cpu or not memory:
        return _room_of_one(pod, node)
    left = _left(scored[0] + pod.scored[0], cpu) + _left(scored[1] + pod.scored[1], memory)
    asked, used = pod.requests, node.used
    if len(asked) == 1:
        # only a place: BalancedAllocation does not judge pods without requests
        return left // 2
    of_cpu = (used.get(CPU, 0) + asked.get(CPU, 0)) / cpu
    of_memory = (used.get(MEMORY, 0) + asked.get(MEMORY, 0)) / memory
    apart = abs((of_cpu if of_cpu < 1 else 1) - (of_memory if of_memory < 1 else 1)) / 2
    return left // 2 + int((1 - apart) * TOP)


def _room_of_one(pod: WorldPod, node: WorldNode) -> int:
    """The same for a node without cpu or without memory: what it lacks does not count."""
    balanced = TOP if len(pod.requests) > 1 else 0
    if node.cpu:
        return _left(node.scored[0] + pod.scored[0], node.cpu) + balanced
    if node.memory:
        return _left(node.scored[1] + pod.scored[1], node.memory) + balanced
    return balanced


def _left(used: int, allocatable: int) -> int:
    return (allocatable - used) * TOP // allocatable if used <= allocatable else 0


def _taints(pod: WorldPod, nodes: Sequence[WorldNode]) -> list[int] | None:
    """Fewer PreferNoSchedule taints that the pod does not tolerate are better."""
    if not any(node.warnings for node in nodes):
        return None
    tolerations = pod.pod.spec.tolerations

    def minds(taint: Taint) -> bool:
        return not any(tolerates(toleration, taint) for toleration in tolerations)

    counts = [sum(map(minds, node.warnings)) for node in nodes]
    most = max(counts)
    return [TOP - TOP * count // most for count in counts] if most else None


def _node_affinity(pod: WorldPod, nodes: Sequence[WorldNode]) -> list[int] | None:
    """The weights of the preferred terms that the node meets."""
    affinity = pod.pod.spec.affinity.node_affinity if pod.pod.spec.affinity else None
    terms = affinity.preferred if affinity else ()
    if not terms:
        return None
    sums = [
        sum(term.weight for term in terms if matches_term(term.preference, node.node))
        for node in nodes
    ]
    most = max(sums)
    return [TOP * total // most for total in sums] if most else None


# topology spread


def _spread(world: World, pod: WorldPod, nodes: Sequence[WorldNode]) -> list[int] | None:
    """Fewer matching pods in the node's domains are better."""
    soft = [
        constraint
        for constraint in pod.pod.spec.topology_spread_constraints
        if constraint.when_unsatisfiable != spread.HARD
    ]
    spreading = spread.Spreading(world, pod, soft, wanted_nodes(pod.pod))
    judged = [
        _judge(nodes, wanted.topology_key, wanted.max_skew, spreading.counts(wanted))
        for wanted in soft
    ]
    if not pod.pod.spec.topology_spread_constraints:
        judged = list(_default_spread(world, pod, nodes))
    if not judged:
        return None
    parts = [_shares(nodes, *rule) for rule in judged]
    sums = [round(sum(shares)) for shares in zip(*parts, strict=True)]
    keys = [key for key, _, _ in judged] if soft else []
    known = [all(key in node.labels for key in keys) for node in nodes]
    counted = [total for total, counts in zip(sums, known, strict=True) if counts]
    most, least = max(counted, default=0), min(counted, default=0)
    if not most:
        return [TOP * counts for counts in known]
    return [
        TOP * (most + least - total) // most if counts else 0
        for total, counts in zip(sums, known, strict=True)
    ]


Judged = tuple[str, Mapping[str, int], Callable[[int], float]]
"""A topology key, the pods of each domain, and the score that a number of pods gives."""


def _shares(
    nodes: Sequence[WorldNode], key: str, counts: Mapping[str, int], score: Callable[[int], float]
) -> list[float]:
    """The part of one constraint in each node's score; 0 for a node without the label."""
    empty = score(0)
    filled = {value: score(count) for value, count in counts.items() if count}
    values = [node.labels.get(key) for node in nodes]
    return [0.0 if value is None else filled.get(value, empty) for value in values]


def _default_spread(world: World, pod: WorldPod, nodes: Sequence[WorldNode]) -> Iterator[Judged]:
    """The default constraints, which spread the pods of one owner over hosts and zones."""
    owner = pod.pod.metadata.controller()
    if owner is None or owner.kind not in _SPREAD_OWNERS:
        return
    per_node = world.owned.get(owner.uid, {})
    for key, skew in _DEFAULT_SPREAD:
        if any(key in node.labels for node in nodes):
            yield _judge(nodes, key, skew, spread.by_domain(world, key, per_node))


def _judge(
    nodes: Sequence[WorldNode], key: str, max_skew: int, counts: Mapping[str, int]
) -> Judged:
    domains = {node.labels[key] for node in nodes if key in node.labels}
    weight = math.log(len(domains) + 2)
    return key, counts, lambda count: count * weight + max_skew - 1


# preferred affinity between pods


def _pod_affinity(world: World, pod: WorldPod, nodes: Sequence[WorldNode]) -> list[int] | None:
    """The weights of preferred terms, by the domains of the pods they mean. The terms of the
    incoming pod count, and those of pods on nodes that mean the incoming pod."""
    sums = [0] * len(nodes)
    affinity = pod.pod.spec.affinity
    for term, weight in preferred_terms(affinity) if affinity else ():
        namespaces = world.namespaces_of(term, pod.namespace)
        per_node = world.matching(namespaces, term.label_selector)
        _add(world, sums, nodes, term.topology_key, weight, per_node)
    for wish in world.wishes(pod):
        _add(world, sums, nodes, wish.term.topology_key, wish.weight, wish.per_node)
    least, most = min(sums), max(sums)
    if least == most:
        return None
    return [TOP * (total - least) // (most - least) for total in sums]


def _add(
    world: World,
    sums: list[int],
    nodes: Sequence[WorldNode],
    key: str,
    weight: int,
    per_node: Mapping[str, int],
) -> None:
    counts = spread.by_domain(world, key, per_node)
    for index, node in enumerate(nodes):
        sums[index] += weight * counts.get(node.labels.get(key, ""), 0)
