"""LowNodeUtilization: move pods from over-used nodes to under-used ones.

A node is under-used if it can take pods and is below the thresholds in all resources that it has,
and over-used if it is above a target threshold in any. A pod moves if the expected node stays at or
below every target, so each move lowers what nodes have above their targets.

Use is counted by requests, pods, and devices of a class, and compared exactly: a use is whole, and
a threshold is a fraction of the capacity.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from claimctl.text import counted
from claimctl_reschedule.plan.facts import victim_rank
from claimctl_reschedule.plan.inventory import Inventory
from claimctl_reschedule.plan.policy import DEVICE_CLASS_PREFIX, LowNodeUtilization
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.plan.requests import CPU, MEMORY, PODS
from claimctl_reschedule.plan.run import Context, Run
from claimctl_reschedule.plan.world import Relocation, World, WorldPod

_BASIC = (CPU, MEMORY, PODS)
"""Without thresholds for these, a node counts as below 100 %."""
_FULL = Fraction(100)


def balance_usage(run: Run, context: Context, wanted: LowNodeUtilization) -> None:
    """Move pods away from over-used nodes."""
    if not wanted.thresholds:
        run.note(context, "there are no thresholds, so there is nothing to compare nodes with")
        return
    names = [name for name in run.world.nodes if context.protections.selects_node(name)]
    usage = Usage(run.world, run.devices)
    low, high = _thresholds(wanted, usage, names)
    nodes = Nodes(run, usage, low, high, tuple(sorted(wanted.thresholds)))
    under = [name for name in names if nodes.is_under_used(name)]
    over = {name: max(excess.values()) for name in names if (excess := nodes.excess(name))}
    if text := _nothing_to_do(len(under), len(over), len(names), wanted.number_of_nodes):
        run.note(context, text)
        return
    balancing = _Balancing(run, context, wanted, nodes, under)
    for name in sorted(over, key=lambda name: (-over[name], name)):
        balancing.relieve(name)


def _nothing_to_do(under: int, over: int, total: int, number_of_nodes: int) -> str:
    if text := too_few(under, number_of_nodes):
        return text
    if under == total:
        return "all nodes are under-used"
    return "" if over else "no node is over-used"


def too_few(under: int, number_of_nodes: int) -> str:
    """Why so many under-used nodes are no reason to act."""
    if not under:
        return "no node is under-used"
    if under > number_of_nodes:
        return ""
    known = counted(under, "under-used node") + (" is" if under == 1 else " are")
    return f"numberOfNodes is {number_of_nodes}: {known} not enough to act"


Thresholds = dict[str, Fraction]
"""Percent by resource name."""


def _thresholds(
    wanted: LowNodeUtilization, usage: Usage, nodes: Sequence[str]
) -> tuple[Thresholds, Thresholds]:
    low = {name: Fraction(percent) for name, percent in wanted.thresholds.items()}
    high = {name: Fraction(percent) for name, percent in wanted.target_thresholds.items()}
    if not wanted.use_deviation_thresholds:
        rest = {name: _FULL for name in _BASIC if name not in low}
        return low | rest, high | rest
    means = {name: usage.mean(nodes, name) for name in low}
    known = {name: mean for name, mean in means.items() if mean is not None}
    below = {name: max(Fraction(0), mean - low[name]) for name, mean in known.items()}
    return below, {name: min(_FULL, mean + high[name]) for name, mean in known.items()}


@dataclass(frozen=True, slots=True)
class Nodes:
    run: Run
    usage: Usage
    low: Thresholds
    high: Thresholds
    named: tuple[str, ...]
    """The resources that the policy names: an under-used node has at least one of them."""

    def is_under_used(self, name: str) -> bool:
        node = self.run.world.nodes[name]
        if node.node.spec.unschedulable or node.closed:
            return False
        percentages = {resource: self.usage.percent(name, resource) for resource in self.low}
        return any(percentages.get(resource) is not None for resource in self.named) and all(
            percent < self.low[name] for name, percent in percentages.items() if percent is not None
        )

    def excess(self, name: str) -> Thresholds:
        """By how many percentage points the node is above its targets."""
        percentages = ((resource, self.usage.percent(name, resource)) for resource in self.high)
        return {
            resource: percent - self.high[resource]
            for resource, percent in percentages
            if percent is not None and percent > self.high[resource]
        }

    def takes(self, name: str, asked: dict[str, int]) -> bool:
        """Whether the node stays at or below every target with so much more."""
        for resource, number in asked.items():
            usage = self.usage.of(name, resource)
            if usage and (usage[0] + number) * 100 > self.high[resource] * usage[1]:
                return False
        return True


@dataclass(frozen=True, slots=True)
class _Balancing:
    run: Run
    context: Context
    wanted: LowNodeUtilization
    nodes: Nodes
    under: Sequence[str]

    def relieve(self, name: str) -> None:
        """Move pods from the node until it is not over-used any more."""
        pods = sorted(self.run.world.nodes[name].pods.values(), key=victim_rank)
        for pod in pods:
            exceeded = self.nodes.excess(name)
            if not exceeded:
                return
            usage = self.nodes.usage
            asked = {resource: usage.requested(pod, resource) for resource in self.nodes.high}
            if pod.node != name or not any(asked[resource] for resource in exceeded):
                continue
            if obstacle := self._out_of_scope(pod, asked):
                self.run.skip(pod.pod, self.context, obstacle)
            else:
                why = f"{name} is over-used in {', '.join(exceeded)}"
                self.run.move(pod, self.context, self._accept, why)

    def _out_of_scope(self, pod: WorldPod, asked: dict[str, int]) -> Obstacle | None:
        if pod.namespace not in self.wanted.evictable_namespaces:
            return Obstacle(Ground.NAMESPACE, pod.namespace)
        if obstacle := self.context.protections.obstacle(pod):
            return obstacle
        if any(self.nodes.takes(name, asked) for name in self.under):
            return None
        return Obstacle(Ground.NO_BETTER_NODE, "no under-used node would stay below its targets")

    def _accept(self, steps: Sequence[Relocation]) -> Obstacle | None:
        for name in sorted({step.destination for step in steps}):
            if exceeded := self.nodes.excess(name):
                detail = f"the expected node {name} would be over-used in {', '.join(exceeded)}"
                return Obstacle(Ground.NO_BETTER_NODE, detail)
        return self.run.unevener(steps)


@dataclass(frozen=True, slots=True)
class Usage:
    """Use and capacity of resources on each node, as they are now. A node that has nothing of a
    resource is left out of that resource."""

    world: World
    devices: Inventory

    def of(self, node: str, resource: str) -> tuple[int, int] | None:
        """Use and capacity; None if the node has nothing of the resource."""
        if resource.startswith(DEVICE_CLASS_PREFIX):
            counts = self.devices.usage(resource.removeprefix(DEVICE_CLASS_PREFIX))
            count = counts.get(node)
            return (count.used, count.published) if count and count.published else None
        state = self.world.nodes[node]
        capacity = state.allocatable.get(resource, 0)
        return (state.used.get(resource, 0), capacity) if capacity else None

    def percent(self, node: str, resource: str) -> Fraction | None:
        usage = self.of(node, resource)
        return Fraction(usage[0] * 100, usage[1]) if usage else None

    def requested(self, pod: WorldPod, resource: str) -> int:
        """How much of the resource the pod uses."""
        if resource.startswith(DEVICE_CLASS_PREFIX):
            name = resource.removeprefix(DEVICE_CLASS_PREFIX)
            return self.devices.requested(pod.pod, name)
        return pod.requests.get(resource, 0)

    def mean(self, nodes: Iterable[str], resource: str) -> Fraction | None:
        """The mean percentage of the nodes that have the resource."""
        every = (self.percent(node, resource) for node in nodes)
        known = [percent for percent in every if percent is not None]
        return sum(known, Fraction(0)) / len(known) if known else None
