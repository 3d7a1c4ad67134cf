"""How pods of one owner are spread: duplicates on nodes, and topology spread constraints.

Constraints are judged as the scheduler's plugin PodTopologySpread does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from claimctl.label_selectors import LabelSelector, LabelSelectorRequirement, selects
from claimctl.wire.placement import admits, taints_of
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.plan.world import Domains, GroupKey, Relocation, World, WorldNode, WorldPod
from claimctl_reschedule.shapes.scheduling import TopologySpreadConstraint

HARD = "DoNotSchedule"


@dataclass(frozen=True, slots=True)
class NodeWishes:
    """The nodes that match a pod's node selector and required node affinity. ``shape`` is equal for
    pods with equal wishes."""

    shape: Hashable
    matches: Callable[[WorldNode], bool]


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


@dataclass(frozen=True, slots=True)
class Spreading:
    """Constraints of an incoming pod. A node counts only if it has the topology keys of all."""

    world: World
    pod: WorldPod
    constraints: Sequence[TopologySpreadConstraint]
    wanted: NodeWishes

    def check(self, constraint: TopologySpreadConstraint) -> SpreadCheck:
        """A constraint as a hard one."""
        numbers = self.counts(constraint)
        enough = len(numbers) >= (constraint.min_domains or 1)
        return SpreadCheck(
            key=constraint.topology_key,
            max_skew=constraint.max_skew,
            counts=numbers,
            least=min(numbers.values(), default=0) if enough else 0,
            own=int(selects(selector_of(constraint, self.pod), self.pod.labels)),
        )

    def counts(self, constraint: TopologySpreadConstraint) -> dict[str, int]:
        """How many matching pods each domain of a constraint has, also where there are none."""
        selector = selector_of(constraint, self.pod)
        here = frozenset({self.pod.namespace})
        per_node = self.world.matching(here, selector, staying=True)
        domains = self._domains(constraint)
        inside = {name: count for name, count in per_node.items() if name in domains.nodes}
        return {**domains.none, **by_domain(self.world, constraint.topology_key, inside)}

    def _domains(self, constraint: TopologySpreadConstraint) -> Domains:
        keys = tuple(known.topology_key for known in self.constraints)
        honors_affinity = constraint.node_affinity_policy != "Ignore"
        honors_taints = constraint.node_taints_policy == "Honor"
        tolerations = self.pod.pod.spec.tolerations if honors_taints else None
        shape = self.wanted.shape if honors_affinity else None
        question = (keys, constraint.topology_key, shape, tolerations)
        domains = self.world.domains.get(question)
        if domains is None:
            nodes = [
                node
                for node in self.world.nodes.values()
                if all(key in node.labels for key in keys)
                and (not honors_affinity or self.wanted.matches(node))
                and (tolerations is None or admits(taints_of(node.node), tolerations))
            ]
            names = frozenset(node.name for node in nodes)
            none = {node.labels[constraint.topology_key]: 0 for node in nodes}
            domains = self.world.domains[question] = Domains(names, none)
        return domains


def checks_of(world: World, pod: WorldPod, wanted: NodeWishes) -> tuple[SpreadCheck, ...]:
    """The checks of the hard constraints of an incoming pod."""
    constraints = pod.pod.spec.topology_spread_constraints
    hard = [constraint for constraint in constraints if constraint.when_unsatisfiable == HARD]
    return tuple(map(Spreading(world, pod, hard, wanted).check, hard))


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


def by_domain(world: World, key: str, per_node: Mapping[str, int]) -> dict[str, int]:
    """The sums of numbers of pods over the nodes of each domain."""
    numbers: dict[str, int] = {}
    for name, count in per_node.items():
        value = world.nodes[name].labels.get(key)
        if value is not None:
            numbers[value] = numbers.get(value, 0) + count
    return numbers


def groups_of(world: World) -> dict[GroupKey, list[WorldPod]]:
    """The pods of each group, groups and pods in their order."""
    groups: dict[GroupKey, list[WorldPod]] = {}
    for pod in sorted(world.pods.values(), key=lambda pod: pod.key):
        if pod.group is not None:
            groups.setdefault(pod.group, []).append(pod)
    return dict(sorted(groups.items()))


def on_node(world: World, pod: WorldPod, node: str) -> int:
    """How many pods of the pod's group are on the node now."""
    return world.groups[pod.group].get(node, 0) if pod.group is not None else 0


def unevener(world: World, steps: Sequence[Relocation], *, strictly: bool) -> Obstacle | None:
    """Whether the moves make the numbers of pods by node less even (``strictly``: or leave them as
    they are), so that they are no gain. Otherwise the sum of the squared numbers has not grown."""
    gone = Counter((step.pod.group, step.source) for step in steps)
    detail, gain = "", not strictly
    for step in steps:
        there = on_node(world, step.pod, step.destination)
        here = on_node(world, step.pod, step.source) + gone[step.pod.group, step.source]
        detail = f"{step.destination} would have {there} pods of the owner, {step.source} {here}"
        if there > here:
            return Obstacle(Ground.NO_BETTER_NODE, detail)
        gain = gain or there < here
    return None if gain else Obstacle(Ground.NO_BETTER_NODE, detail)
