"""RemoveDuplicates: spread the pods of one owner over the nodes that fit them.

A node should have at most ``ceil(pods / feasible nodes)`` pods of a group. All running pods count,
also those that may not be moved. A node is feasible if the pod could run there as far as no move
changes the answer, so that the number of feasible nodes is the same after the moves: room does not
count for it, but a pod moves only to a node that has room.

Each move goes to a node with fewer pods of the group than the pod's node keeps. So the sum of the
squared numbers of pods falls with each move, and the moves come to an end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import islice

from claimctl_reschedule.plan.facts import victim_rank
from claimctl_reschedule.plan.fit import Unknown
from claimctl_reschedule.plan.policy import RemoveDuplicates
from claimctl_reschedule.plan.reasons import Obstacle
from claimctl_reschedule.plan.run import Context, Run
from claimctl_reschedule.plan.spread import groups_of, on_node, unevener
from claimctl_reschedule.plan.world import Relocation, WorldPod


def remove_duplicates(run: Run, context: Context, wanted: RemoveDuplicates) -> None:
    """Move pods from nodes that have too many of a group."""
    for (namespace, _, _), pods in groups_of(run.world).items():
        owner = pods[0].pod.metadata.controller()
        kind = owner.kind if owner else ""
        per_node = Counter(pod.node for pod in pods)
        excluded = namespace not in wanted.namespaces or kind in wanted.exclude_owner_kinds
        if excluded or max(per_node.values()) <= 1:
            continue
        upper = _upper(run, pods, per_node.keys())
        for name in sorted(per_node):
            if per_node[name] > upper:
                _thin_out(run, context, [pod for pod in pods if pod.node == name], upper, len(pods))


def _upper(run: Run, pods: Sequence[WorldPod], here: Collection[str]) -> int:
    """The most pods of the group that a node should have."""
    total = len(pods)
    try:
        fits = run.predictor.fitter.still(pods[0].pod)
    except Unknown:
        feasible = len(here)
    else:
        nodes = (node for node in run.world.nodes.values() if node.name in here or not fits(node))
        # more nodes than pods make no difference
        feasible = sum(1 for _ in islice(nodes, total))
    return -(-total // feasible)


def _thin_out(run: Run, context: Context, here: Sequence[WorldPod], upper: int, total: int) -> None:
    """Move pods away from one node until it has ``upper`` of the group."""

    def accept(steps: Sequence[Relocation]) -> Obstacle | None:
        return unevener(run.world, steps, strictly=True)

    name = here[0].node
    why = f"{name} has {len(here)} of {total} pods of its owner; {upper} would be even"
    for pod in sorted(here, key=victim_rank):
        if on_node(run.world, pod, name) <= upper:
            return
        if pod.node == name:
            run.move(pod, context, accept, why)
