"""Plays one cell, and counts where pods run and how many a loop makes."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import yaml
from kube_in_process.components.kubelet.admission import REFUSED_ON
from kube_in_process.components.objects import name, uid
from kube_in_process.components.pods import node_name, phase

from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.documents import DocumentClient, Version
from claimctl.kube.events import EventRecorder
from claimctl.kube.leases import LeaderElection
from claimctl.reschedule.plan.planning import plan
from claimctl.reschedule.policyfile.reading import checked
from claimctl.reschedule.policyfile.translating import translated
from claimctl.reschedule.run.loop import Loop, election_settings
from claimctl.reschedule.run.records import Records
from claimctl.reschedule.run.run import Runner
from claimctl.reschedule.run.settings import RunSettings
from claimctl.reschedule.run.signs import Signs
from claimctl.wire.base import Object
from claimctl.wire.seams import Transport
from claimctl_demo.real_servers.nodes import NODE
from labs.placing.means import CELL_LABEL, Cell, apply, deployment

POD: Version = ("v1", "Pod")
SETS: Version = ("apps/v1", "ReplicaSet")
DEPLOYMENT: Version = ("apps/v1", "Deployment")
REPLICAS = 4
SETTLE_SECONDS = 12.0
LOOP_SECONDS = 20.0


async def prepare(client: DocumentClient, space: str, nodes: tuple[str, ...]) -> None:
    """A namespace, and its nodes."""
    for node in nodes:
        await client.patch(NODE, "", node, {"metadata": {"labels": {CELL_LABEL: space}}})
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}
    await client.create(body)


async def fill(client: DocumentClient, space: str, node: str, cpu: str) -> None:
    """Make the other nodes more attractive."""
    body = deployment(space, "filler", 1, cpu)
    body["spec"]["template"]["spec"]["nodeSelector"]["kubernetes.io/hostname"] = node
    await client.create(body)
    await _until_running(client, space, "filler", 1)


@dataclass(slots=True)
class Try:
    """Where the pods of the owner went (the node to avoid / the other / none), and others'."""

    client: DocumentClient
    cell: Cell
    nodes: tuple[str, ...]
    owner: Counter[str] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)

    async def play(self) -> None:
        client, space = self.client, self.cell.namespace
        await prepare(client, space, self.nodes)
        await fill(client, space, self.nodes[1], "20" if self.cell.room else "63")
        await client.create(deployment(self.cell, "owner", 0, "2"))
        owner = await _owner(client, space)
        await apply(client, self.cell, self.nodes[0], owner)
        await asyncio.sleep(1.0)
        await client.patch(DEPLOYMENT, space, "owner", {"spec": {"replicas": REPLICAS}})
        await client.create(deployment(self.cell, "other", REPLICAS))
        await asyncio.sleep(SETTLE_SECONDS)
        for app, counts in (("owner", self.owner), ("other", self.others)):
            for pod in await _pods(client, space, app):
                counts[node_name(pod)] += 1

    def shown(self, counts: Counter[str]) -> str:
        here, there = (counts[each] for each in self.nodes)
        return f"{here} / {there} / {counts['']}"


async def _owner(client: DocumentClient, space: str) -> str:
    while True:
        found = await client.list(SETS, space)
        for each in found:
            if name(each).startswith("owner"):
                return uid(each)
        await asyncio.sleep(0.2)


async def _pods(client: DocumentClient, space: str, app: str) -> list[Object]:
    pods = await client.list(POD, space)
    return [each for each in pods if each["metadata"].get("labels", {}).get("app") == app]


async def _until_running(client: DocumentClient, space: str, app: str, count: int) -> None:
    async with asyncio.timeout(60):
        while True:
            pods = await _pods(client, space, app)
            if sum(phase(each) == "Running" for each in pods) >= count:
                return
            await asyncio.sleep(0.2)


@dataclass(slots=True)
class LoopOutcome:
    """What became of a pod that nodes refuse."""

    refused: int = 0
    seconds: float | None = None
    """Until it ran; None: it did not run."""


async def looped(
    transport: Transport, space: str, nodes: tuple[str, ...], bad: int, args: dict[str, Any] | None
) -> LoopOutcome:
    """Create a workload that the first ``bad`` nodes refuse.

    Args:
        args: of UnplaceablePods; None: no claimctl runs.
    """
    client = DocumentClient(transport, "people")
    await prepare(client, space, nodes)
    for node in nodes[bad:]:
        await fill(client, space, node, "20")
    task = asyncio.create_task(_loop(transport, space, args).run()) if args is not None else None
    await asyncio.sleep(3.0)
    began = asyncio.get_running_loop().time()
    refusals = ",".join(nodes[:bad])
    await client.create(deployment(space, "owner", 1, annotations={REFUSED_ON: refusals}))
    outcome, seen = LoopOutcome(), set[str]()
    while (now := asyncio.get_running_loop().time()) < began + LOOP_SECONDS:
        pods = await _pods(client, space, "owner")
        seen |= {uid(each) for each in pods if phase(each) == "Failed"}
        if any(phase(each) == "Running" for each in pods):
            outcome.seconds = now - began
            break
        await asyncio.sleep(0.05)
    outcome.refused = len(seen)
    if task is not None:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    await client.patch(DEPLOYMENT, space, "owner", {"spec": {"replicas": 0}})
    return outcome


def _loop(transport: Transport, space: str, args: dict[str, Any] | None) -> Loop:
    policy = {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "nodeSelector": f"{CELL_LABEL}={space}",
        "profiles": [
            {
                "name": "places",
                "pluginConfig": [{"name": "UnplaceablePods", "args": args}],
                "plugins": {"deschedule": {"enabled": ["UnplaceablePods"]}},
            }
        ],
    }
    clock = LoopClock()
    client = Client(transport, clock)
    wanted = translated(checked(yaml.safe_load(yaml.safe_dump(policy))))
    events = EventRecorder(client, clock, "claimctl.io/rescheduler", "measured")
    runner = Runner(
        client=client,
        clock=clock,
        policy=wanted,
        planner=plan,
        records=Records(client, space),
        settings=RunSettings(),
        signs=Signs(client.telemetry, events),
        rng=Random(0),
    )
    settings = election_settings("default")
    election = LeaderElection(client, clock, settings, space, rng=Random(0))
    return Loop(runner, election, 300.0, events)
