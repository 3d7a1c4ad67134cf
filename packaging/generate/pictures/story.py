"""The story of the picture in the README, on a virtual clock, so that it is always the same."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace

from kube_in_process.cluster import Cluster
from kube_in_process.options import ClusterOptions, Preset

from claimctl.commands.timeline.model import Timeline
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl_demo.documents import DocumentClient
from claimctl_demo.story.acts import Acts
from claimctl_demo.story.objects import DEPLOYMENT, Workload
from claimctl_demo.story.stage import (
    BINDING_SECONDS,
    CONTROLLER,
    SETTLE_SECONDS,
    EmbeddedStage,
    set_up,
)
from claimctl_demo.story.timelines import timelines
from tests.support.builders import NOW

TRAIN = Workload("train", "train", "slice", 12)
IDLE_SECONDS = 60
OPTIONS = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 36), nodes=2)


async def play() -> Timeline:
    """A Deployment runs, is restarted, idles for a while, runs again, and ends."""
    async with AsyncExitStack() as stack:
        clock = LoopClock(NOW)
        cluster = Cluster(OPTIONS, clock)
        await cluster.start()
        stack.push_async_callback(cluster.stop)
        admin = cluster.transport()
        user, client = DocumentClient(admin), Client(admin, clock)
        stage = EmbeddedStage(cluster, user, client, "", clock=clock)
        controller = cluster.transport(CONTROLLER)
        await set_up(
            stack,
            stage,
            controller,
            settle_seconds=SETTLE_SECONDS,
            binding_seconds=BINDING_SECONDS,
        )
        await _act(Acts(stage, native=False))
        assert stage.witness.violations == []
        (found,) = timelines(cluster.history(), NOW.timestamp(), clock.now())
        return found


async def _act(acts: Acts) -> None:
    await acts.room(TRAIN.namespace)
    await acts.held(TRAIN, idleTimeoutSeconds=IDLE_SECONDS)
    await asyncio.sleep(40)
    stamp = {"metadata": {"annotations": {"example.com/restarted": "1"}}}
    await acts.change(TRAIN, {"template": stamp})
    await asyncio.sleep(50)
    await acts.change(TRAIN, {"replicas": 0})
    await asyncio.sleep(IDLE_SECONDS - 20)
    few = replace(TRAIN, pods=6)
    await acts.change(few, {"replicas": few.pods})
    await asyncio.sleep(45)
    await acts.stage.user.delete(DEPLOYMENT, TRAIN.namespace, TRAIN.name)
    await acts.deallocated(TRAIN)
    await asyncio.sleep(15)
