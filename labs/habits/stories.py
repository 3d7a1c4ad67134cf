"""The columns of the matrix: what happens to a workload while its driver has some habits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from kube_in_process.components.kubelet.kubelet import EXIT_CODE, RUN_SECONDS
from kube_in_process.objects import Object

from claimctl.wire.resources import PODS
from labs.habits.bench import Bench
from tests.e2e import manifests

PODS_GONE = 5.0
"""Seconds in which the pods of a Deployment go."""
ALL = "*"
"""The value of the annotation ``claimctl.io/reserve`` for all claims of the workload."""


async def start(bench: Bench) -> None:
    """A Deployment is created."""
    bench.take_up(late=True)
    await bench.create(manifests.deployment(reserve=ALL))
    await bench.starts()
    await bench.rest()


async def rollout_with_surge(bench: Bench) -> None:
    """A rollout makes the new pod before the old one goes."""
    await _running(bench, {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0}})
    await bench.roll_out()
    await bench.starts()
    await bench.rest()


async def rollout_without_surge(bench: Bench) -> None:
    """A rollout makes the new pod when the old one has gone."""
    await _running(bench)
    await bench.roll_out()
    await bench.starts()
    await bench.rest()


async def scale_to_0_and_1(bench: Bench) -> None:
    """A Deployment is scaled to 0, and to 1 before its idle time is over."""
    await bench.create(manifests.deployment(reserve=ALL))
    await bench.starts()
    await bench.rest()
    await bench.scale(0)
    await bench.stage.quiet(PODS_GONE)
    await bench.changes()
    await bench.scale(1)
    await bench.starts()
    await bench.rest()


async def stateful_set(bench: Bench) -> None:
    """The pod of a StatefulSet is deleted, and made again."""
    await bench.create(manifests.stateful_set(reserve=ALL), "StatefulSet")
    await bench.starts()
    await bench.rest()
    await bench.changes()
    await bench.stage.delete(PODS, "train-0")
    await bench.starts()
    await bench.rest()


async def retry_of_a_job(bench: Bench) -> None:
    """The pod of a Job fails, and the Job tries again after 10 s."""
    body = manifests.job(reserve=ALL)
    body["spec"]["backoffLimit"] = 1
    notes = {RUN_SECONDS: "90", EXIT_CODE: "1"}
    body["spec"]["template"]["metadata"]["annotations"] = notes
    await bench.create(body, "Job")
    await bench.starts()
    await bench.rest()
    await bench.changes()
    await bench.starts()
    await bench.rest()


async def force_deletion(bench: Bench) -> None:
    """A pod is deleted by force, and the next one with its workload."""
    await _running(bench, ghosts=True)
    await bench.force_delete()
    await bench.starts()
    await bench.rest()
    await bench.delete()
    await bench.force_delete()
    await bench.is_released()


async def restart_of_the_kubelet(bench: Bench) -> None:
    """The kubelet and the driver are restarted under a pod; then comes a rollout."""
    await _running(bench)
    bench.stage.embedded.restart_kubelet(bench.node)
    await bench.stage.site.driver.restart()
    await bench.stage.quiet(30)
    await bench.roll_out()
    await bench.starts()
    await bench.rest()


async def reboot_of_the_node(bench: Bench) -> None:
    """The node is rebooted under a pod."""
    await _running(bench)
    await bench.stage.site.reboot(bench.node)
    await bench.starts()
    await bench.rest()


async def _running(bench: Bench, strategy: Object | None = None, *, ghosts: bool = False) -> None:
    """A Deployment (Recreate) whose pod runs; then the driver takes up its late habits."""
    body = manifests.deployment(reserve=ALL)
    body["spec"]["strategy"] = strategy or {"type": "Recreate"}
    await bench.create(body)
    await bench.starts()
    await bench.rest()
    await bench.changes(ghosts=ghosts)


Story = Callable[[Bench], Awaitable[None]]
STORIES: Mapping[str, Story] = {
    "start": start,
    "rollout with surge": rollout_with_surge,
    "rollout without surge": rollout_without_surge,
    "scale to 0 and 1": scale_to_0_and_1,
    "StatefulSet": stateful_set,
    "retry of a Job": retry_of_a_job,
    "force deletion": force_deletion,
    "restart of the kubelet": restart_of_the_kubelet,
    "reboot of the node": reboot_of_the_node,
}
