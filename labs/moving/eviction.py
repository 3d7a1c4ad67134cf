"""Plays one cell: it evicts pods, and sees where their replacements run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from kube_in_process.components.objects import deleting, name, uid
from kube_in_process.components.pods import ended, node_name, phase
from kube_in_process.real.servers.nodes import NODE

from claimctl.wire.base import Object
from claimctl_demo.documents import STRATEGIC, DocumentClient, Version
from labs.cells import furnish
from labs.moving.cells import EvictionCell

POD: Version = ("v1", "Pod")
LOOK_SECONDS = 0.25
READY_SECONDS = 120.0
SETTLE_SECONDS = 1.5
"""How long a workload runs before the next eviction."""
WAIT_SECONDS = 15.0
JOB_WAIT_SECONDS = 30.0
"""A Job waits ten seconds before it replaces a pod that failed."""


@dataclass(slots=True)
class Replacements:
    """Where replacements were after the wait."""

    same: int = 0
    moved: int = 0
    waiting: int = 0

    @property
    def shown(self) -> str:
        return f"{self.same} / {self.moved} / {self.waiting}"


@dataclass(slots=True)
class EvictionTry:
    """One cell on its own nodes, in its own namespace."""

    client: DocumentClient
    cell: EvictionCell
    nodes: tuple[str, ...]
    claim_kind: Version
    device_class: str
    replacements: Replacements = field(default_factory=Replacements)

    async def play(self, evictions: int) -> None:
        """Raises TimeoutError if the workload does not run before an eviction."""
        await self._prepare()
        for number in range(evictions):
            workload = f"train-{number if self.cell.workload.is_job else 0}"
            if number == 0 or self.cell.workload.is_job:
                await self.client.create(self.cell.workload_body(workload))
            await self._until(self._runs, READY_SECONDS)
            if number == 0:
                await self._hold()
            await asyncio.sleep(SETTLE_SECONDS)
            await self._evict()
            if self.cell.workload.is_job:
                await self._end_job(workload)

    async def _prepare(self) -> None:
        await furnish(self.client, self.cell.namespace, self.nodes)
        for body in self.cell.claim_bodies(self.claim_kind[0], self.device_class):
            await self.client.create(body)

    async def _hold(self) -> None:
        """List a consumer that is no pod, as claimctl does."""
        for claim in self.cell.held_claims:
            entry = {
                "apiGroup": "apps",
                "resource": "deployments",
                "name": "train-0",
                "uid": f"hold-{claim}",
            }
            patch = {"status": {"reservedFor": [entry]}}
            await self.client.patch_status(
                self.claim_kind, self.cell.namespace, claim, patch, STRATEGIC
            )

    async def _evict(self) -> None:
        pods = await self._pods()
        evicted = pods[: self.cell.workload.evicted]
        nodes = {node_name(pod) for pod in evicted}
        await self._close(nodes, close=True)
        for pod in evicted:
            options = {"preconditions": {"uid": uid(pod)}}
            meta = {"name": name(pod), "namespace": self.cell.namespace}
            body = {"metadata": meta, "deleteOptions": options}
            await self.client.post(POD, self.cell.namespace, name(pod), "eviction", body)
        known = {uid(pod) for pod in pods}
        new = await self._new_pods(known, len(evicted))
        running = [node_name(pod) for pod in new if phase(pod) == "Running"]
        self.replacements.same += sum(node in nodes for node in running)
        self.replacements.moved += sum(node not in nodes for node in running)
        self.replacements.waiting += len(evicted) - len(running)
        await self._close(nodes, close=False)

    async def _new_pods(self, known: set[str], wanted: int) -> list[Object]:
        new: list[Object] = []

        async def run() -> bool:
            nonlocal new
            new = [pod for pod in await self._pods() if uid(pod) not in known]
            return sum(phase(pod) == "Running" for pod in new) >= wanted

        seconds = JOB_WAIT_SECONDS if self.cell.workload.is_job else WAIT_SECONDS
        with suppress(TimeoutError):
            await self._until(run, seconds)
        return new

    async def _close(self, nodes: Iterable[str], *, close: bool) -> None:
        for node in nodes:
            await self.client.patch(NODE, "", node, self.cell.closing.patch(close=close))

    async def _end_job(self, job: str) -> None:
        await self.client.delete(("batch/v1", "Job"), self.cell.namespace, job)

        async def gone() -> bool:
            return not await self.client.list(POD, self.cell.namespace)

        await self._until(gone, READY_SECONDS)

    async def _pods(self) -> list[Object]:
        pods = await self.client.list(POD, self.cell.namespace)
        return sorted((pod for pod in pods if not deleting(pod) and not ended(pod)), key=name)

    async def _runs(self) -> bool:
        pods = await self._pods()
        running = [pod for pod in pods if phase(pod) == "Running"]
        return len(running) == len(pods) == self.cell.workload.replicas

    async def _until(self, holds: Callable[[], Awaitable[bool]], seconds: float) -> None:
        async with asyncio.timeout(seconds):
            while not await holds():  # noqa: ASYNC110 (only the server knows the answer)
                await asyncio.sleep(LOOK_SECONDS)
