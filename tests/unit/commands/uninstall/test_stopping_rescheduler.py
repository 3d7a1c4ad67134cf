"""``claimctl reschedule`` is stopped, and its pods are waited for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from kube_in_process.cluster import Cluster
from kube_in_process.options import ClusterOptions, Preset

from claimctl.cli.errors import CommandFailed
from claimctl.commands.install.components import Choice, chosen
from claimctl.commands.install.rescheduling import Rescheduling, pod_spec
from claimctl.commands.uninstall.stopping import (
    CRONJOBS,
    LABELS,
    RESCHEDULER,
    RESCHEDULER_SECONDS,
    stop_rescheduler,
)
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.wire.resources import DEPLOYMENTS, JOBS, PODS, Resource

HERE = "claimctl-system"
Json = dict[str, Any]


class ReschedulerWorld:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.clock = cluster, cluster.clock
        self.client = Client(cluster.transport(), cluster.clock)

    async def install(self, kind: str, resource: Resource[Any]) -> Json:
        """Create the object of this kind as ``claimctl install --reschedule`` does."""
        wanted = Rescheduling("", interval="5m" if kind == "Deployment" else "")
        [document] = [
            each
            for each in chosen(Choice((), rescheduling=wanted))
            if each["kind"] == kind and each["metadata"]["name"] == RESCHEDULER
        ]
        spec = pod_spec(document)
        # the embedded cluster has no such PriorityClass and makes no tokens
        spec["priorityClassName"], spec["serviceAccountName"] = "", "default"
        await self.client.create(resource, document, HERE)
        return dict(document)

    async def job(self, cron_job: Json, name: str, *, seconds: int) -> None:
        """A Job as the CronJob makes it; its pod runs for this time."""
        found = self.cluster.admin.get("cronjobs", HERE, RESCHEDULER)
        owner = {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "name": RESCHEDULER,
            "uid": found["metadata"]["uid"],
        }
        spec = cron_job["spec"]["jobTemplate"]["spec"]
        seconds_of_pod = {"kube-in-process/run-seconds": str(seconds)}
        spec["template"]["metadata"]["annotations"] = seconds_of_pod
        meta = {"name": name, "ownerReferences": [owner]}
        await self.client.create(JOBS, {"metadata": meta, "spec": spec}, HERE)

    async def pods(self) -> list[str]:
        found = await self.client.list(PODS, HERE, label_selector=LABELS)
        return [each.status.phase for each in found.items]

    async def until(self, phases: list[str]) -> None:
        while await self.pods() != phases:
            await self.clock.sleep(0.5)


@pytest.fixture
@asynccontextmanager
async def world() -> AsyncIterator[ReschedulerWorld]:
    cluster = Cluster(ClusterOptions(preset=Preset.RESERVED_FOR_ANY_POD, nodes=1), LoopClock())
    await cluster.start()
    cluster.admin.create("namespaces", {"metadata": {"name": HERE}})
    yield ReschedulerWorld(cluster)
    await cluster.stop()


async def test_where_it_is_not_installed_there_is_nothing_to_stop(world: ReschedulerWorld) -> None:
    assert not await stop_rescheduler(world.client, world.clock, HERE)


async def test_the_loop_has_no_replicas_and_no_pods(world: ReschedulerWorld) -> None:
    await world.install("Deployment", DEPLOYMENTS)
    await world.until(["Running"])
    assert await stop_rescheduler(world.client, world.clock, HERE)
    found = await world.client.get(DEPLOYMENTS, RESCHEDULER, HERE)
    assert (found.spec.replicas, await world.pods()) == (0, [])


async def test_the_cron_job_makes_no_more_jobs_and_the_one_that_runs_is_suspended(
    world: ReschedulerWorld,
) -> None:
    made = await world.install("CronJob", CRONJOBS)
    await world.job(made, "past", seconds=0)
    await world.until(["Succeeded"])
    await world.job(made, "now", seconds=3600)
    await world.until(["Running", "Succeeded"])
    assert await stop_rescheduler(world.client, world.clock, HERE)
    assert world.cluster.admin.get("cronjobs", HERE, RESCHEDULER)["spec"]["suspend"] is True
    jobs = (await world.client.list(JOBS, HERE)).items
    assert {each.metadata.name: each.spec.suspend for each in jobs} == {"past": False, "now": True}
    assert await world.pods() == ["Succeeded"]


async def test_a_pod_that_goes_on_is_named(world: ReschedulerWorld) -> None:
    made = await world.install("CronJob", CRONJOBS)
    await world.job(made, "now", seconds=3600)
    await world.until(["Running"])
    world.cluster.admin.patch("jobs", HERE, "now", {"metadata": {"ownerReferences": None}})
    with pytest.raises(
        CommandFailed, match=rf"claimctl-system/now-\w+ .*after {RESCHEDULER_SECONDS:g} s"
    ):
        await stop_rescheduler(world.client, world.clock, HERE)
