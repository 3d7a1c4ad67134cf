"""LeaveBadNodes: pods with claims leave a node or a device that would not take them any more.

The node or the device has got a taint that they do not tolerate, or the node has lost a label that
they ask for. Their claims move with them. Cordons and the taints of Kubernetes itself
(``node.kubernetes.io/``) do not count: they say that a node is in maintenance or ill, and others
evict then. A cordon counts beside the condition MaintenancePlanned: the node is to be empty before
its maintenance begins (KEP-5683, Kubernetes 1.37). Without a cordon the scheduler, which ignores
the condition, would send the pods back.
"""

from __future__ import annotations

from claimctl.reservation.facts.pods import claim_names
from claimctl.wire.meta import find_condition
from claimctl.wire.placement import admits
from claimctl.wire.traces import is_own
from claimctl_reschedule.plan.fit import matches_affinity
from claimctl_reschedule.plan.run import Context, Run
from claimctl_reschedule.plan.world import WorldNode, WorldPod

MAINTENANCE_PLANNED = "MaintenancePlanned"
_OF_KUBERNETES = "node.kubernetes.io/"


def leave_bad_nodes(run: Run, context: Context) -> None:
    """Move the pods whose node or devices do not fit them any more."""
    for pod in sorted(run.world.pods.values(), key=lambda pod: pod.key):
        if not pod.pod.spec.node_name or pod.uid in run.moved or not claim_names(pod.pod):
            continue
        if why := _fault(run.world.nodes[pod.node], pod) or run.devices.leaves_devices(pod.pod):
            run.move(pod, context, lambda steps: None, why)


def _fault(node: WorldNode, pod: WorldPod) -> str:
    """What the pod has against its node; '' if it has nothing."""
    if not matches_affinity(pod.pod, node.node):
        return f"{node.name} no longer has the labels that it asks for"
    conditions = node.node.status.conditions
    planned = find_condition(conditions, MAINTENANCE_PLANNED)
    if node.node.spec.unschedulable and planned is not None and planned.status == "True":
        return f"{node.name} is cordoned, and its maintenance is planned"
    for taint in node.node.spec.taints:
        counts = not (taint.key.startswith(_OF_KUBERNETES) or is_own(taint.key, taint.value))
        if counts and not admits((taint,), pod.pod.spec.tolerations):
            return f"it does not tolerate the taint {taint.key} of {node.name}"
    return ""
