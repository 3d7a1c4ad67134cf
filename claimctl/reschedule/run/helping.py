"""Whether a pod for which others were evicted has got its room."""

from __future__ import annotations

from claimctl.kube.client import Client
from claimctl.kube.errors import NotFound
from claimctl.reschedule.plan.kubelet import deferred
from claimctl.reschedule.plan.plan import PodRef
from claimctl.reschedule.plan.reasons import Ground
from claimctl.reschedule.run.evicting import SCHEDULING_PODS
from claimctl.reschedule.run.groups import MoveGroup
from claimctl.reschedule.run.steps import Help, HelpState, Result
from claimctl.reschedule.shapes.scheduling import SchedulingPod


async def see_help(client: Client, group: MoveGroup, wanted: PodRef) -> Help:
    """Read the pod for which the group was to leave."""
    try:
        pod = await client.get(SCHEDULING_PODS, wanted.name, wanted.namespace)
    except NotFound:
        pod = None
    state, detail = _state(group, wanted, pod)
    return Help(wanted, group.moves[0].strategy, state, detail)


def _state(group: MoveGroup, wanted: PodRef, pod: SchedulingPod | None) -> tuple[HelpState, str]:
    if pod is None or pod.metadata.uid != wanted.uid or pod.metadata.deleting:
        return HelpState.CHANGED, "it is gone"
    if group.resize is None:
        lacks = "it still has no node"
        if pod.spec.node_name:
            return HelpState.HELPED, f"it is bound to {pod.spec.node_name}"
    else:
        lacks = "its resize still waits"
        if pod.metadata.generation != group.resize.generation:
            return HelpState.CHANGED, "it asks for another size now"
        if deferred(pod) is None:
            return HelpState.HELPED, "its resize was granted"
    stayed = next((step for step in group.steps if step.result is Result.LEFT), None)
    if stayed is None:
        return HelpState.WAITS, f"{lacks}, although its victims are evicted"
    overtaken = stayed.reason is Ground.CHANGED and not group.started
    state = HelpState.CHANGED if overtaken else HelpState.WAITS
    return state, f"{lacks}: {stayed.reason}: {stayed.detail}"
