"""The clusters on which installations are tried: the embedded one, or a real control plane."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kube_in_process.cluster import Cluster
from kube_in_process.options import Authorization, ClusterOptions, Preset
from kube_in_process.real.servers.kubelet import Kubelets
from kube_in_process.real.servers.nodes import Fleet
from kube_in_process.real.servers.plane import ControlPlane, running
from kube_in_process.real.servers.programs import find_programs
from kube_in_process.serving.kubeconfig import write_kubeconfig
from kube_in_process.serving.serve import listen

from claimctl.kube.clock import LoopClock
from claimctl.kube.errors import ApiError
from claimctl.kube.transport import HttpTransport
from claimctl.login.connect import load_connection
from claimctl.wire.seams import Transport
from claimctl_demo.documents import DocumentClient
from claimctl_demo.story import objects
from tests.chart import containers
from tests.chart.containers import Containers

ASSETS = os.environ.get("KUBEBUILDER_ASSETS", "")
CLUSTERS = ["embedded", *(["real"] if ASSETS else [])]
PATIENCE = 60.0
Json = dict[str, Any]
TRAIN = objects.Workload("ml", "train", "slice", 2, reserve=True)


@dataclass
class ChartSite:
    """A cluster with nodes and devices, and processes for the pods of claimctl's image."""

    kubeconfig: Path
    transport: Transport
    client: DocumentClient
    containers: Containers
    resource_api: str = objects.CLAIM[0]

    async def until(self, holds: Callable[[], Awaitable[bool]], what: str) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while not await holds():  # noqa: ASYNC110 - the cluster is asked, it does not tell
                    await asyncio.sleep(0.2)
        except TimeoutError:
            told = [one.output for one in self.containers.ended[-3:]]
            raise AssertionError(f"not within {PATIENCE:g} s: {what}; ended: {told}") from None

    async def train(self) -> None:
        """A user's Deployment whose pods share a claim, with the annotation of claimctl."""
        with suppress(ApiError):  # it may be there already
            await self.client.create(objects.namespace(TRAIN.namespace))
        await self.client.create(objects.claim("ml", TRAIN.claim, self.resource_api))
        await self.client.create(objects.deployment(TRAIN))

    async def listed(self) -> list[Json]:
        """The list of the claim."""
        kind = (self.resource_api, "ResourceClaim")
        claim = await self.client.get(kind, "ml", TRAIN.claim)
        return list(claim.get("status", {}).get("reservedFor") or [])

    async def held(self) -> bool:
        return "deployments" in [each["resource"] for each in await self.listed()]

    async def pods(self) -> set[str]:
        """The UIDs of the user's running pods."""
        return {
            pod["metadata"]["uid"]
            for pod in await self.client.list(objects.POD, "ml")
            if pod["status"].get("phase") == "Running"
        }

    async def gone(self, kind: tuple[str, str], namespace: str, name: str) -> bool:
        try:
            await self.client.get(kind, namespace, name)
        except ApiError as refused:
            return refused.status == 404
        return False


@asynccontextmanager
async def site(kind: str, directory: Path) -> AsyncIterator[ChartSite]:
    """A cluster of the kind ``embedded`` or ``real``."""
    async with AsyncExitStack() as stack:
        if kind == "real":
            kubeconfig, api = await _real(stack, directory)
        else:
            kubeconfig, api = await _embedded(stack, directory / "kubeconfig"), objects.CLAIM[0]
        transport = await stack.enter_async_context(HttpTransport(load_connection(str(kubeconfig))))
        processes = Containers(transport, kubeconfig, directory)
        await stack.enter_async_context(containers.running(processes))
        client = DocumentClient(transport, "tests")
        yield ChartSite(kubeconfig, transport, client, processes, api)


async def _embedded(stack: AsyncExitStack, kubeconfig: Path) -> Path:
    options = ClusterOptions(
        preset=Preset.PLAIN, nodes=2, devices_per_node=2, authorization=Authorization.RBAC
    )
    cluster = Cluster(options, LoopClock())
    await cluster.start()
    stack.push_async_callback(cluster.stop)
    server, access = await listen(cluster, 0)
    stack.push_async_callback(server.close)
    write_kubeconfig(kubeconfig, access)
    return kubeconfig


async def _real(stack: AsyncExitStack, directory: Path) -> tuple[Path, str]:
    plane = ControlPlane(find_programs(Path(ASSETS)), directory)
    stack.enter_context(running(plane))
    kubeconfig = plane.files.kubeconfig()
    admin = await stack.enter_async_context(HttpTransport(load_connection(str(kubeconfig))))
    fleet = Fleet(plane.programs.version, count=2)
    kubelets = Kubelets(admin, fleet)
    joined = asyncio.Event()
    task = asyncio.create_task(kubelets.run(joined), name="kubelets")
    stack.push_async_callback(_ended, task)
    async with asyncio.timeout(PATIENCE):
        await joined.wait()
    return kubeconfig, fleet.resource_api


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
