"""Plays one cell, and counts where its pods are."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from kube_in_process.components.objects import name, uid
from kube_in_process.components.pods import node_name, phase

from claimctl.wire.base import Object
from claimctl_demo.documents import DocumentClient, Version
from labs.cells import furnish
from labs.placing.means import PlacementCell, apply, deployment

POD: Version = ("v1", "Pod")
SETS: Version = ("apps/v1", "ReplicaSet")
DEPLOYMENT: Version = ("apps/v1", "Deployment")
REPLICAS = 4
SETTLE_SECONDS = 12.0
LOOK_SECONDS = 0.2


async def fill(client: DocumentClient, space: str, node: str, cpu: str) -> None:
    """Make the other nodes more attractive."""
    body = deployment(space, "filler", 1, cpu)
    body["spec"]["template"]["spec"]["nodeSelector"]["kubernetes.io/hostname"] = node
    await client.create(body)
    async with asyncio.timeout(60):
        while "Running" not in map(phase, await pods_of(client, space, "filler")):  # noqa: ASYNC110 (only the server knows)
            await asyncio.sleep(LOOK_SECONDS)


@dataclass(slots=True)
class PlacementTry:
    """Where the pods of the owner went (the node to avoid / the other / none), and others'."""

    client: DocumentClient
    cell: PlacementCell
    nodes: tuple[str, ...]
    owner: Counter[str] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)

    async def play(self) -> None:
        client, space = self.client, self.cell.namespace
        await furnish(client, space, self.nodes)
        await fill(client, space, self.nodes[1], "20" if self.cell.room else "63")
        await client.create(deployment(space, "owner", 0, "2"))
        owner = await _owner(client, space)
        await apply(client, self.cell, self.nodes[0], owner)
        await asyncio.sleep(1.0)
        await client.patch(DEPLOYMENT, space, "owner", {"spec": {"replicas": REPLICAS}})
        await client.create(deployment(space, "other", REPLICAS))
        await asyncio.sleep(SETTLE_SECONDS)
        for app, counts in (("owner", self.owner), ("other", self.others)):
            for pod in await pods_of(client, space, app):
                counts[node_name(pod)] += 1

    def shown(self, counts: Counter[str]) -> str:
        here, there = (counts[node] for node in self.nodes)
        return f"{here} / {there} / {counts['']}"


async def _owner(client: DocumentClient, space: str) -> str:
    """The UID of the owner's ReplicaSet, once there is one."""
    while True:
        for replica_set in await client.list(SETS, space):
            if name(replica_set).startswith("owner"):
                return uid(replica_set)
        await asyncio.sleep(LOOK_SECONDS)


async def pods_of(client: DocumentClient, space: str, app: str) -> list[Object]:
    pods = await client.list(POD, space)
    return [pod for pod in pods if pod["metadata"].get("labels", {}).get("app") == app]
