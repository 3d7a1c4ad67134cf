"""Duplicates: pods of one owner with the same images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from claimctl.reschedule.plan.reasons import Obstacle, Reason
from claimctl.reschedule.plan.world import GroupKey, Step, World, WorldPod


def groups_of(world: World) -> dict[GroupKey, list[WorldPod]]:
    """The pods of each group, groups and pods in their order."""
    found: dict[GroupKey, list[WorldPod]] = {}
    for pod in sorted(world.pods.values(), key=lambda pod: pod.key):
        if pod.group is not None:
            found.setdefault(pod.group, []).append(pod)
    return dict(sorted(found.items()))


def on_node(world: World, pod: WorldPod, node: str) -> int:
    """How many pods of the pod's group are on the node now."""
    return world.groups[pod.group].get(node, 0) if pod.group is not None else 0


def unevener(world: World, steps: Sequence[Step], *, strictly: bool) -> Obstacle | None:
    """Whether the moves make the numbers of pods by node less even, so that they are no gain.

    Without such an obstacle the sum of the squared numbers has not grown.

    Args:
        strictly: also moves that leave all numbers as even as they were are no gain.
    """
    gone = Counter((step.pod.group, step.source) for step in steps)
    detail, gain = "", not strictly
    for step in steps:
        there = on_node(world, step.pod, step.destination)
        here = on_node(world, step.pod, step.source) + gone[step.pod.group, step.source]
        detail = f"{step.destination} would have {there} pods of the owner, {step.source} {here}"
        if there > here:
            return Obstacle(Reason.NO_BETTER_NODE, detail)
        gain = gain or there < here
    return None if gain else Obstacle(Reason.NO_BETTER_NODE, detail)
