"""The controller is stopped, and its Lease is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from kube_in_process.cluster import Cluster
from kube_in_process.options import ClusterOptions, Preset
from kube_in_process.storage.requests import Fault, FaultPoint

from claimctl.cli.errors import CommandFailed
from claimctl.commands.uninstall.stopping import (
    CONTROLLER,
    STOP_SECONDS,
    stop_controller,
)
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.leases import LeaderElection, LeaderElectionSettings
from claimctl.wire.resources import DEPLOYMENTS

HERE = "claimctl-system"


class StoppingWorld:
    def __init__(self, cluster: Cluster) -> None:
        self.clock = cluster.clock
        self.handler = cluster.handler
        self.client = Client(cluster.transport(), cluster.clock)
        self.leads = asyncio.Event()
        self.steps_down = asyncio.Event()

    async def install(self) -> None:
        labels = {"app": "claimctl"}
        pod = {"containers": [{"name": "controller", "image": "claimctl"}]}
        spec = {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        }
        await self.client.create(
            DEPLOYMENTS, {"metadata": {"name": CONTROLLER}, "spec": spec}, HERE
        )

    async def replicas(self) -> int | None:
        return (await self.client.get(DEPLOYMENTS, CONTROLLER, HERE)).spec.replicas

    async def lead(self) -> None:
        """Hold the controller's Lease until ``steps_down``."""
        settings = LeaderElectionSettings(name=CONTROLLER, namespace=HERE)
        await LeaderElection(self.client, self.clock, settings, "one").run(self._work)

    async def _work(self) -> None:
        self.leads.set()
        await self.steps_down.wait()


@pytest.fixture
@asynccontextmanager
async def world() -> AsyncIterator[StoppingWorld]:
    cluster = Cluster(ClusterOptions(preset=Preset.RESERVED_FOR_ANY_POD, nodes=1), LoopClock())
    await cluster.start()
    cluster.admin.create("namespaces", {"metadata": {"name": HERE}})
    yield StoppingWorld(cluster)
    await cluster.stop()


async def test_without_a_deployment_there_is_nothing_to_stop(world: StoppingWorld) -> None:
    assert not await stop_controller(world.client, world.clock, HERE)


async def test_it_has_no_replicas_when_the_lease_is_free(world: StoppingWorld) -> None:
    await world.install()
    leader = asyncio.create_task(world.lead())
    await world.leads.wait()
    stopping = asyncio.create_task(stop_controller(world.client, world.clock, HERE))
    await asyncio.sleep(5)
    assert (await world.replicas(), stopping.done()) == (0, False)
    world.steps_down.set()
    await leader
    assert await stopping


async def test_it_pauses_between_conflicts(world: StoppingWorld) -> None:
    await world.install()
    conflicts = iter(range(3))

    def refuse(point: FaultPoint) -> Fault | None:
        refused = point.verb == "patch" and next(conflicts, None) is not None
        return Fault(status=409, reason="Conflict") if refused else None

    world.handler.fault = refuse
    began = world.clock.monotonic()
    assert await stop_controller(world.client, world.clock, HERE)
    assert await world.replicas() == 0
    assert world.clock.monotonic() > began


async def test_a_controller_that_goes_on_is_reported(world: StoppingWorld) -> None:
    await world.install()
    leader = asyncio.create_task(world.lead())
    await world.leads.wait()
    with pytest.raises(CommandFailed, match=f"still holds its Lease after {STOP_SECONDS:g} s"):
        await stop_controller(world.client, world.clock, HERE)
    world.steps_down.set()
    await leader
