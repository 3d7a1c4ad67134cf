"""Rounds of evictions for a resize: each is noted before its first eviction.

So a process that dies in between does not begin again with other victims, and a resize that was
taken back or granted meanwhile costs no pod. At the end of a run, ``see_help`` looks whether a pod
for which others were evicted has got its room.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from msgspec.structs import replace

from claimctl.kube.client import Client
from claimctl_reschedule.plan.kubelet import deferred
from claimctl_reschedule.plan.plan import PodRef, ResizeStep
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.run.evicting import present
from claimctl_reschedule.run.groups import MoveGroup
from claimctl_reschedule.run.steps import Help, HelpState, Result
from claimctl_reschedule.shapes.records import (
    MAX_RESIZES,
    MAX_VICTIMS,
    RecordedResize,
    RescheduleRecordStatus,
)
from claimctl_reschedule.shapes.scheduling import SchedulingPod


async def look(client: Client, step: ResizeStep) -> Obstacle | None:
    """Whether the resize still waits as the plan saw it: then None."""
    pod = await present(client, step.pod)
    if pod is None:
        return Obstacle(Ground.CHANGED, f"{step.pod}, which was to grow, is gone")
    if pod.metadata.generation != step.generation:
        return Obstacle(Ground.CHANGED, f"{step.pod} wants another size now")
    if deferred(pod) is None:
        return Obstacle(Ground.CHANGED, f"the resize of {step.pod} waits no longer")
    return None


def with_round(
    status: RescheduleRecordStatus, step: ResizeStep, now: datetime
) -> RescheduleRecordStatus:
    """The status with the round that is about to begin."""
    made = RecordedResize(
        pod_uid=step.pod.uid,
        namespace=step.pod.namespace,
        name=step.pod.name,
        generation=step.generation,
        since=now,
        victims=step.victims[:MAX_VICTIMS],
        free_cpu=step.free_cpu,
        free_memory=step.free_memory,
    )
    others = [resize for resize in status.resizes if resize.pod_uid != step.pod.uid]
    return replace(status, resizes=(*others, made)[-MAX_RESIZES:])


def finished(status: RescheduleRecordStatus, pods: Iterable[SchedulingPod]) -> frozenset[str]:
    """The UIDs of pods whose rounds are over: they are gone, or wait for that size no more."""
    waiting = {
        (pod.metadata.uid, pod.metadata.generation) for pod in pods if deferred(pod) is not None
    }
    return frozenset(
        resize.pod_uid
        for resize in status.resizes
        if (resize.pod_uid, resize.generation) not in waiting
    )


def without(status: RescheduleRecordStatus, over: frozenset[str]) -> RescheduleRecordStatus:
    """The status without the rounds for these pods."""
    kept = tuple(resize for resize in status.resizes if resize.pod_uid not in over)
    return replace(status, resizes=kept)


async def see_help(client: Client, group: MoveGroup, wanted: PodRef) -> Help:
    """Read the pod for which the group was to leave."""
    state, detail = _state(group, await present(client, wanted))
    hindered = {step.reason for step in group.steps} - {None, Ground.CHANGED}
    again = state is not HelpState.HELPED and not hindered
    return Help(wanted, group.moves[0].strategy, state, detail, again)


def _state(group: MoveGroup, pod: SchedulingPod | None) -> tuple[HelpState, str]:
    if pod is None:
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
