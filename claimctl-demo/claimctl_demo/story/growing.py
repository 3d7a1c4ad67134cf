"""The step ``resized``: a pod is to grow on a full node, and one other pod leaves for it.

The sizes are those of the example of KEP-5836, where the scheduler would evict three pods.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from claimctl_demo.story import objects
from claimctl_demo.story.acts import Acts
from claimctl_demo.story.objects import DEPLOYMENT, PRIORITY_CLASS
from claimctl_demo.story.report import Figures
from claimctl_demo.story.rescheduling import as_planned, expect_nothing_left, policy
from claimctl_demo.story.stage import Stage, StoryFailed
from claimctl_reschedule.plan.kubelet import deferred
from claimctl_reschedule.shapes.scheduling import SCHEDULING_PODS, SchedulingPod

SPACE, LOW, BIG, PRIORITY = "sizes", "low", "big", "demo-high"
NODE_CPU, CPU, GROWN = 64, 16, 32
"""The cpus of a node, of each of four pods on it, and of the one that is to grow."""
_SECONDS, _LOOK_SECONDS = 20.0, 0.1


async def resized(acts: Acts) -> tuple[Figures, str]:
    """Play the step.

    Raises:
        StoryFailed: more or fewer pods than one had to leave, or the resize is not done.
    """
    stage = acts.stage
    await stage.user.create(objects.namespace(SPACE))
    await stage.user.create(objects.priority_class(PRIORITY, 1000))
    async with acts.only_node() as node:
        await stage.user.create(objects.plain_deployment(SPACE, LOW, 3, CPU))
        big = objects.plain_deployment(SPACE, BIG, 1, CPU, priorityClassName=PRIORITY)
        await stage.user.create(big)
        await stage.until(lambda: _running(acts) == {LOW: 3, BIG: 1}, f"4 pods run on {node}")
    before = {pod.metadata.uid for pod in acts.running(SPACE, LOW)}
    await _ask(acts)
    evicted = await as_planned(stage, policy("DeferredResizes", {"deferredSeconds": 0}))
    await _seen(stage, lambda pods: _cpu(pods) == str(GROWN), f"{BIG} has {GROWN} cpus")
    await stage.until(lambda: _running(acts) == {LOW: 3, BIG: 1}, "the replacement runs")
    gone = before - {pod.metadata.uid for pod in acts.running(SPACE, LOW)}
    if (evicted, len(gone)) != (1, 1):
        raise StoryFailed(f"{evicted} pods were evicted and {len(gone)} are gone, not 1")
    await expect_nothing_left(stage)
    for name in (LOW, BIG):
        await stage.user.delete(DEPLOYMENT, SPACE, name)
    await stage.user.delete(PRIORITY_CLASS, "", PRIORITY)
    return Figures(), (
        f"{node} is full, so a pod that is to grow from {CPU} to {GROWN} cpus waits (Deferred); "
        f"{evicted} pod of lower priority moved, and the pod has {GROWN} cpus"
    )


def _running(acts: Acts) -> dict[str, int]:
    return {name: len(acts.running(SPACE, name)) for name in (LOW, BIG)}


async def _ask(acts: Acts) -> None:
    """Ask for other sizes. The node has room for none of them, and each one waits."""
    for name, cpu in ((LOW, NODE_CPU), (BIG, GROWN)):
        resources = {"requests": {"cpu": str(cpu)}}
        body = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
        for pod in acts.running(SPACE, name):
            await acts.stage.user.resize(SPACE, pod.metadata.name, body)
    await _seen(
        acts.stage,
        lambda pods: sum(deferred(pod) is not None for pod in pods) == 4,
        "4 resizes are Deferred",
    )


def _cpu(pods: list[SchedulingPod]) -> str:
    """The cpus that are in force for the pod that grows."""
    (big,) = (pod for pod in pods if (pod.metadata.labels or {}).get("app") == BIG)
    (status,) = big.status.container_statuses
    found = status.resources.requests if status.resources is not None else None
    return str((found or {}).get("cpu", ""))


async def _seen(stage: Stage, holds: Callable[[list[SchedulingPod]], bool], what: str) -> None:
    """Wait until something holds of the pods, as the API server has them."""
    seconds = _SECONDS * stage.patience
    try:
        async with asyncio.timeout(seconds):
            while True:
                found = await stage.client.list(SCHEDULING_PODS, SPACE)
                if holds(list(found.items)):
                    return
                await asyncio.sleep(_LOOK_SECONDS)
    except TimeoutError:
        raise StoryFailed(f"not within {seconds:g} s: {what}") from None
