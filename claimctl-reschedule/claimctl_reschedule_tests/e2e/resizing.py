"""Pods that are resized in place, in scenarios of ``claimctl reschedule``."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from claimctl.kube.errors import AlreadyExists, ApiError
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.resources import DEPLOYMENTS, PODS, Resource
from claimctl_demo.documents import DocumentClient
from claimctl_reschedule.plan.kubelet import deferred
from claimctl_reschedule.shapes.scheduling import SCHEDULING_PODS, SchedulingPod
from claimctl_reschedule_tests.e2e.rescheduling import app_of, closed, workload
from tests.e2e.harness import NAMESPACE, Stage
from tests.e2e.site import PEOPLE

PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", ObjectHeader, namespaced=False
)
CLASSES = {"resize-low": 10, "resize-mid": 100, "resize-high": 1000, "resize-never": 1000}


def resizes(**args: Any) -> str:
    """A policy that makes room for resizes."""
    given = {"deferredSeconds": 1, "settleSeconds": 20, **args}
    shown = ", ".join(f"{key}: {value}" for key, value in given.items())
    return f"""
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: resizes
  pluginConfig:
  - {{name: DefaultEvictor, args: {{}}}}
  - {{name: DeferredResizes, args: {{{shown}}}}}
  plugins:
    deschedule: {{enabled: [DeferredResizes]}}
"""


async def classes(stage: Stage) -> None:
    """Three PriorityClasses. Scenarios share them on a real cluster."""
    for name, value in CLASSES.items():
        with suppress(AlreadyExists):
            policy = "Never" if name.endswith("never") else "PreemptLowerPriority"
            body: dict[str, Any] = {"metadata": {"name": name}, "value": value}
            body["preemptionPolicy"] = policy
            await stage.client.create(PRIORITY_CLASSES, body)


async def started(stage: Stage, name: str, cpu: int, kind: str = "low", **spec: Any) -> None:
    """A Deployment of one pod on the first node."""
    wanted = {"priorityClassName": f"resize-{kind}", **spec}
    body = workload(name, 1, requests={"cpu": str(cpu)}, spec=wanted)

    async def made() -> bool:
        # the API server knows a new class only after a moment
        with suppress(ApiError):
            await stage.create(DEPLOYMENTS, body)
            return True
        return False

    await stage.until(made, f"{name} is there")


async def node_with(stage: Stage, **pods: tuple[int, str]) -> None:
    """The first node runs these pods, by the name of their Deployment: cpus and priority."""
    others = range(1, len(stage.site.nodes))
    await classes(stage)
    await closed(stage, *others)
    for name, (cpu, kind) in pods.items():
        await started(stage, name, cpu, kind)
    await stage.until_running(len(pods))
    await closed(stage, *others, unschedulable=False)


async def pod_of(stage: Stage, name: str) -> SchedulingPod:
    """The oldest pod of a Deployment that is not going."""
    found = (await stage.client.list(SCHEDULING_PODS, NAMESPACE)).items
    mine = [pod for pod in found if app_of(pod) == name and not pod.metadata.deleting]
    return min(mine, key=lambda pod: (not pod.spec.node_name, pod.metadata.name))


async def resize(stage: Stage, name: str, cpu: int) -> None:
    """Ask for another size of the Deployment's pod."""
    pod = await pod_of(stage, name)
    container = {"name": "main", "resources": {"requests": {"cpu": str(cpu)}}}
    client = DocumentClient(stage.site.connection(PEOPLE))
    space = pod.metadata.namespace
    await client.resize(space, pod.metadata.name, {"spec": {"containers": [container]}})


async def refused(stage: Stage, name: str, cpu: int) -> str:
    """The message with which the API server refuses a size."""
    try:
        await resize(stage, name, cpu)
    except ApiError as error:
        return error.message
    return ""


async def waits(stage: Stage, name: str) -> bool:
    return deferred(await pod_of(stage, name)) is not None


async def until_deferred(stage: Stage, *names: str) -> None:
    """Wait until the resizes are deferred, and a little longer."""

    async def holds() -> bool:
        return all([await waits(stage, name) for name in names])

    await stage.until(holds, f"the resizes of {', '.join(names)} wait")
    await stage.clock.sleep(3)


async def cpu_of(stage: Stage, name: str) -> str:
    """The cpus that are in force."""
    status = (await pod_of(stage, name)).status.container_statuses[0]
    found = status.resources.requests if status.resources is not None else None
    return str((found or {}).get("cpu", ""))


async def until_cpu(stage: Stage, name: str, cpu: int) -> None:
    async def holds() -> bool:
        return await cpu_of(stage, name) == str(cpu)

    await stage.until(holds, f"{name} has {cpu} cpus")


async def uids(stage: Stage) -> set[str]:
    """The UIDs of all pods of the scenario."""
    return {pod.metadata.uid for pod in (await stage.client.list(PODS, NAMESPACE)).items}
