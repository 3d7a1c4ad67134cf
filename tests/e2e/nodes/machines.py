"""The real nodes of a scenario, with a DRA driver of its own, and the judgment of its calls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from kube_in_process.components.kubelet.nodes import device_class
from kube_in_process.device_witness import DeviceFault, judge
from kube_in_process.real.nodes.cluster import NodeCluster, RealNode
from kube_in_process.real.nodes.drivers import DriverProcess, slice_of
from kube_in_process.real.nodes.enclosure import HOME
from kube_in_process.real.servers.nodes import FLEET_LABEL, NODE, Fleet
from msgspec.structs import replace

from claimctl.kube.errors import KubeError
from claimctl.wire.base import Object
from claimctl_demo.documents import DocumentClient
from tests.e2e.habits import NodeDriver
from tests.e2e.places import ScenarioPlaces
from tests.e2e.watched import History

_POD = ("v1", "Pod")
_GONE_SECONDS, _LOOK_SECONDS = 40.0, 0.2


@dataclass(slots=True)
class NodeMachines:
    """The nodes that scenarios share, and the scenario's driver on them."""

    cluster: NodeCluster
    driver: DriverProcess

    @property
    def played(self) -> NodeDriver:
        return NodeDriver(self.driver)

    def node(self, name: str) -> RealNode:
        (found,) = [each for each in self.cluster.nodes if each.name == name]
        return found

    async def lose(self, node: str) -> None:
        self.node(node).kill_kubelet()

    async def stop_kubelet(self, node: str, seconds: float) -> None:
        """Stop a kubelet (SIGSTOP) for some seconds: it hears nothing and sends no sign of life."""
        server = self.node(node).kubelet.server
        server.pause()
        try:
            await asyncio.sleep(seconds)
        finally:
            server.resume()

    async def switch_off(self, node: str) -> None:
        self.node(node).die()

    async def recover(self, node: str, *, rebooted: bool) -> None:
        found = self.node(node)
        if rebooted:
            found.die()
            found.boot()
        elif not found.is_up():
            found.start_kubelet()
        await asyncio.to_thread(self.cluster.wait_until_ready)

    async def findings(self, watched: History) -> Sequence[DeviceFault]:
        """What the witness of devices says. The calls have times of the clock on the wall."""
        shift = time.time() - asyncio.get_running_loop().time()
        history = [replace(each, at=each.at + shift) for each in await watched.since(0)]
        deaths = {node.name: node.deaths for node in self.cluster.nodes}
        return judge(self.driver.calls(), history, deaths)


@asynccontextmanager
async def node_machines(
    cluster: NodeCluster,
    documents: DocumentClient,
    places: ScenarioPlaces,
    fleet: Fleet,
    *,
    alone: bool,
) -> AsyncIterator[NodeMachines]:
    """Start a driver for a scenario. At the end, wait until its devices are given back.

    Args:
        alone: whether the scenario may disturb the nodes; then they are put right at the end.
    """
    await documents.create(device_class(fleet.resource_api, fleet.device_class, fleet.driver))
    names = [f"dev-{index}" for index in range(fleet.devices)]
    labels = {FLEET_LABEL: places.prefix}
    nodes = [node for node in cluster.nodes if node.name in fleet.names]
    driver = DriverProcess(
        fleet.driver,
        cluster.plane.files,
        fleet.resource_api,
        {node.name: node.kubelet.root for node in nodes},
        {
            node.name: slice_of(node.name, fleet.driver, names, fleet.resource_api, labels)
            for node in nodes
        },
        HOME / "drivers" / places.suffix,
    )
    await asyncio.to_thread(driver.start)
    try:
        await _published(documents, fleet)
        yield NodeMachines(cluster, driver)
    finally:
        if alone:
            await _put_right(cluster, documents)
        driver.drop()
        if not driver.server.running:
            await asyncio.to_thread(driver.start)
        await _clear(documents, places)
        driver.server.stop()
        for name in fleet.names:
            slice_name = f"{name}-{fleet.driver}-0"
            await documents.delete((fleet.resource_api, "ResourceSlice"), "", slice_name)
        await documents.delete((fleet.resource_api, "DeviceClass"), "", fleet.device_class)


async def _put_right(cluster: NodeCluster, documents: DocumentClient) -> None:
    """Start what a scenario has left dead, and open the nodes."""
    there = {each["metadata"]["name"] for each in await documents.list(NODE)}
    for node in cluster.nodes:
        if node.name in there:
            patch = {"spec": {"unschedulable": None, "taints": None}}
            await documents.patch(NODE, "", node.name, patch)
        else:
            # a kubelet registers its node only when it starts
            node.kill_kubelet()
        if not node.is_up():
            node.start_kubelet()
    await asyncio.to_thread(cluster.wait_until_ready)


async def _published(documents: DocumentClient, fleet: Fleet) -> None:
    """Wait until the kubelets have registered the driver, and the devices are published."""
    async with asyncio.timeout(_GONE_SECONDS):
        while True:
            found = await documents.list((fleet.resource_api, "ResourceSlice"))
            if sum(each["spec"]["driver"] == fleet.driver for each in found) == fleet.count:
                return
            await asyncio.sleep(_LOOK_SECONDS)


async def _clear(documents: DocumentClient, places: ScenarioPlaces) -> None:
    """Delete the scenario's pods and wait until they are gone: a kubelet cannot end them later.

    Without its driver, it would ask for ever to unprepare their devices.
    """
    end = time.monotonic() + _GONE_SECONDS
    while time.monotonic() < end:
        pods = await documents.list(_POD, places.namespace)
        if not pods:
            return
        for pod in pods:
            with suppress(KubeError):
                await _delete(documents, pod)
        await asyncio.sleep(_LOOK_SECONDS)


async def _delete(documents: DocumentClient, pod: Object) -> None:
    meta = pod["metadata"]
    if meta.get("finalizers"):
        patch = {"metadata": {"finalizers": None}}
        await documents.patch(_POD, meta["namespace"], meta["name"], patch)
    if not meta.get("deletionTimestamp"):
        options = {"gracePeriodSeconds": 1}
        await documents.delete(_POD, meta["namespace"], meta["name"], options)
