"""A cluster with real nodes on which claimctl is installed, and what one can see of it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kube_in_process.components.kubelet.nodes import device_class
from kube_in_process.real.nodes.cluster import NodeCluster, RealNode
from kube_in_process.real.nodes.drivers import DriverProcess, slice_of
from kube_in_process.real.nodes.enclosure import HOME
from kube_in_process.real.nodes.images import IMAGE as SLEEPER
from kube_in_process.real.servers.features import resource_api

from claimctl import __version__
from claimctl.kube.errors import NotFound, TooManyRequests
from claimctl.kube.transport import HttpTransport
from claimctl.login.connect import load_connection
from claimctl_demo.documents import DocumentClient
from claimctl_demo.story import objects
from tests.e2e.commands import CommandAnswer, claimctl

NAME, NEXT = f"claimctl:{__version__}", "claimctl:next"
"""The image, and the same image under another name, as an upgrade."""
REFERENCE, UPGRADE = f"docker.io/library/{NAME}", f"docker.io/library/{NEXT}"
NAMESPACE = "claimctl-system"
LABELS = {"app.kubernetes.io/name": "claimctl", "app.kubernetes.io/component": "controller"}
LEASE = ("coordination.k8s.io/v1", "Lease")
PATIENCE = 90.0
_DRIVER = objects.DEVICE_CLASS
_LOOK_SECONDS = 0.2
Json = dict[str, Any]
Check = Callable[[], Awaitable[bool]]
_clusters: list[NodeCluster] = []


def use(cluster: NodeCluster) -> None:
    """Play the scenarios on this cluster."""
    _clusters.append(cluster)


@dataclass
class InstalledSite:
    """The cluster, as an administrator sees it."""

    cluster: NodeCluster
    client: DocumentClient
    claims: tuple[str, str]

    @property
    def kubeconfig(self) -> Path:
        return self.cluster.plane.files.kubeconfig()

    async def claimctl(self, *arguments: str) -> CommandAnswer:
        return await claimctl(*arguments, "--kubeconfig", str(self.kubeconfig))

    async def install(self, image: str = NAME) -> None:
        done = await self.claimctl(
            "install", "--image", image, "--wait", "--timeout", f"{PATIENCE:g}"
        )
        assert done.code == 0, f"{done.out}{done.err}"

    async def until(self, check: Check, what: str) -> None:
        """Wait until something is so; fails after ``PATIENCE``."""
        end = time.monotonic() + PATIENCE
        while not await check():
            assert time.monotonic() < end, f"not within {PATIENCE:g} s: {what}"
            await asyncio.sleep(_LOOK_SECONDS)

    async def controllers(self, namespace: str = NAMESPACE) -> list[Json]:
        """The controller's pods that are not being deleted."""
        return [
            pod
            for pod in await self.client.list(objects.POD, namespace)
            if LABELS.items() <= pod["metadata"]["labels"].items()
            and "deletionTimestamp" not in pod["metadata"]
        ]

    async def ready(self, namespace: str = NAMESPACE) -> list[Json]:
        return [
            pod for pod in await self.controllers(namespace) if condition(pod, "Ready") == "True"
        ]

    async def two_are_ready(self) -> bool:
        return len(await self.ready()) == 2

    async def leader(self) -> Json | None:
        """The pod that leads: the Lease names it."""
        for lease in await self.client.list(LEASE, NAMESPACE):
            holder = str(lease["spec"].get("holderIdentity") or "")
            for pod in await self.controllers():
                if pod["metadata"]["name"] in holder or pod["metadata"]["uid"] in holder:
                    return pod
        return None

    async def evict(self, pod: Json) -> bool:
        """Evict a pod through the API; returns whether the budget allows it now."""
        meta = pod["metadata"]
        place = (meta["namespace"], meta["name"])
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": place[0], "name": place[1]},
        }
        try:
            await self.client.post(objects.POD, *place, "eviction", body)
        except TooManyRequests:
            return False
        return True

    async def train(self, name: str, pods: int = 2) -> None:
        """A user's Deployment whose pods share a claim that claimctl shall hold."""
        workload = objects.Workload("default", name, name, pods, reserve=True)
        await self.client.create(objects.claim("default", name, self.claims[0]))
        body = objects.deployment(workload)
        spec = body["spec"]["template"]["spec"]
        spec["terminationGracePeriodSeconds"] = 1
        spec["containers"][0] |= {"image": SLEEPER, "imagePullPolicy": "Never"}
        await self.client.create(body)
        await self.until(lambda: self.is_held(name), f"{name} is held")

    async def is_held(self, name: str) -> bool:
        """Whether the claim is allocated and lists the Deployment."""
        status = (await self.client.get(self.claims, "default", name)).get("status") or {}
        kinds = [each["resource"] for each in status.get("reservedFor") or ()]
        return "allocation" in status and "deployments" in kinds

    async def is_free(self, name: str) -> bool:
        status = (await self.client.get(self.claims, "default", name)).get("status") or {}
        return "allocation" not in status

    async def is_gone(self, kind: tuple[str, str], namespace: str, name: str) -> bool:
        try:
            await self.client.get(kind, namespace, name)
        except NotFound:
            return True
        return False

    async def finish(self, name: str) -> float:
        """Delete a Deployment; returns how many seconds later its claim is free."""
        began = time.monotonic()
        await self.client.delete(objects.DEPLOYMENT, "default", name)
        await self.until(lambda: self.is_free(name), f"{name} is free")
        took = time.monotonic() - began
        await self.client.delete(self.claims, "default", name)
        return took

    def process(self, pod: Json) -> int:
        """The number of the process of a pod's container, as this machine sees it."""
        [status] = pod["status"]["containerStatuses"]
        return self.node(pod).containerd.process(status["containerID"].partition("://")[2])

    def node(self, pod: Json) -> RealNode:
        [node] = [each for each in self.cluster.nodes if each.name == pod["spec"]["nodeName"]]
        return node

    def pause(self, pod: Json) -> None:
        """Let a container hang."""
        os.kill(self.process(pod), signal.SIGSTOP)


def condition(pod: Json, kind: str) -> str:
    conditions = pod.get("status", {}).get("conditions") or ()
    return next((each["status"] for each in conditions if each["type"] == kind), "")


@asynccontextmanager
async def site() -> AsyncIterator[InstalledSite]:
    """The cluster that ``use`` was called with."""
    [cluster] = _clusters
    connection = load_connection(str(cluster.plane.files.kubeconfig()))
    async with HttpTransport(connection) as transport:
        client = DocumentClient(transport, "people")
        yield InstalledSite(cluster, client, (resource_api_of(cluster), "ResourceClaim"))


def start_driver(cluster: NodeCluster) -> DriverProcess:
    """Give each node devices. The driver ends with the thread that calls this."""
    api = resource_api_of(cluster)
    devices = [f"dev-{index}" for index in range(4)]
    roots = {node.name: node.kubelet.root for node in cluster.nodes}
    slices = {name: slice_of(name, _DRIVER, devices, api, {}) for name in roots}
    body = json.dumps(device_class(api, _DRIVER, _DRIVER)).encode()
    cluster.plane.request("POST", f"/apis/{api}/deviceclasses", body)
    driver = DriverProcess(_DRIVER, cluster.plane.files, api, roots, slices, HOME / "driver")
    driver.start()
    return driver


def resource_api_of(cluster: NodeCluster) -> str:
    return f"resource.k8s.io/{resource_api(cluster.tools.programs.version)}"
