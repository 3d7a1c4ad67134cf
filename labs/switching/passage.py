"""One passage: a cluster is furnished, its gates go off and on again, and all is compared."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from kube_in_process.real.servers.kubelet import Kubelets
from kube_in_process.real.servers.nodes import Fleet
from kube_in_process.real.servers.plane import ControlPlane
from kube_in_process.real.servers.programs import API_SERVER, CONTROLLER_MANAGER, SCHEDULER

from claimctl.kube.transport import HttpTransport
from claimctl.wire.coordination import PREPARE_FAILED
from claimctl_demo.documents import DocumentClient
from labs import frame
from labs.switching.workloads import NAMESPACE, SharedWorkloads
from labs.torture_real.controllers import BINDING_SECONDS, Controllers
from tests.e2e.runbooks import Runbook

READY = 300.0
"""Seconds for all pods to run, all claims to be held, and all claims to be free in the end."""
CHURN = 20.0
"""Seconds in which users act between two steps."""
RUNBOOK, NAIVE = "runbook", "naive"
"""The order of the runbook, or: every gate goes off and nothing is prepared."""
_LOOK = 1.0

Left = Callable[[], Awaitable[list[str]]]


@dataclass
class SwitchingPassage:
    """One cluster, and what went wrong in it."""

    plane: ControlPlane
    transport: HttpTransport
    claims: int
    pods: int
    seed: int
    wrong: list[str] = field(default_factory=list)
    """What is not as it has to be."""
    refused: list[str] = field(default_factory=list)
    """What kubelets said when they refused a pod."""
    forbidden: list[str] = field(default_factory=list)
    """Events on nodes that must not happen."""
    times: dict[str, float] = field(default_factory=dict)
    """By step: its seconds."""
    workloads: SharedWorkloads = field(init=False)
    kubelets: Kubelets = field(init=False)
    _away: bool = False
    """Whether the API server is being restarted."""

    def __post_init__(self) -> None:
        fleet = Fleet(self.plane.programs.version, count=self.claims, devices=1)
        people = DocumentClient(self.transport, "people")
        self.workloads = SharedWorkloads(people, fleet, self.pods, Random(self.seed))
        self.kubelets = Kubelets(self.transport, fleet, pod_groups=True)

    async def play(self, controllers: Controllers, *, naive: bool) -> None:
        """Play all steps; raises TimeoutError if the cluster does not become ready."""
        try:
            async with frame.nodes(self.kubelets):
                await controllers.install(self.transport)
                controllers.start("one")
                async with frame.beside(self._revive(controllers)):
                    await self._play_steps(naive=naive)
        finally:
            self.forbidden = [
                f"{finding.pod}: {finding.rule}" for finding in self.kubelets.findings
            ]
        self.wrong += controllers.crashes

    async def _play_steps(self, *, naive: bool) -> None:
        with self._timed("furnish"):
            await self._furnish()
        before = await self.workloads.picture()
        if naive:
            await self._naive()
        else:
            await self._by_the_runbook(before)
        with self._timed("end"):
            await self._end()

    async def _revive(self, controllers: Controllers) -> None:
        """Start a controller again that lost its Lease while the API server was away."""
        while True:
            if self._away:
                controllers.outage = time.monotonic()
            controllers.revive()
            await asyncio.sleep(_LOOK)

    async def _furnish(self) -> None:
        await self.workloads.create()
        await frame.until_none(self.workloads.waiting, READY)
        await frame.until_none(self.workloads.unheld, READY)

    # The order of the runbook

    async def _by_the_runbook(self, before: dict[str, object]) -> None:
        book = Runbook("downgrade.md", self.plane.files.kubeconfig())
        with self._timed("off"):
            async with frame.beside(self.workloads.churn()):
                await self._off(book)
        with self._timed("reboot"):
            await self._reboot()
        with self._timed("on"):
            async with frame.beside(self.workloads.churn()):
                await self._on(book)
        with self._timed("compare"):
            await self._compare(before)
        book.expect_all_played()

    async def _off(self, book: Runbook) -> None:
        await book.play("Look first")
        await book.play("1. Prepare")
        await asyncio.sleep(CHURN)
        await self._switch(SCHEDULER, CONTROLLER_MANAGER, on=False)
        await book.play("2. Switch off the scheduler and kube-controller-manager")
        await asyncio.sleep(CHURN)
        await book.play("3. Prepare again")
        await asyncio.sleep(BINDING_SECONDS)
        await book.play("3. Prepare again")
        self.kubelets.switch(pod_groups=False)
        await asyncio.sleep(CHURN)
        await book.play("4. Switch off the kubelets")
        await self._switch(API_SERVER, on=False)
        await book.play("5. Switch off the API server")

    async def _reboot(self) -> None:
        """With the feature off, every pod has to start anew."""
        await self.workloads.settle()
        await frame.until_none(self.workloads.waiting, READY)
        await frame.until_none(self.workloads.unlisted, READY)
        for node in self.kubelets.fleet.names:
            await self.kubelets.recover(node, rebooted=True)
        await asyncio.sleep(CHURN)
        await frame.until_none(self.workloads.waiting, READY)

    async def _on(self, book: Runbook) -> None:
        await self._switch(API_SERVER, on=True)
        self.kubelets.switch(pod_groups=True)
        await asyncio.sleep(CHURN)
        await self._switch(SCHEDULER, CONTROLLER_MANAGER, on=True)
        await book.play("6. Switch on again")
        await asyncio.sleep(CHURN)
        await book.play("7. Let the references return")
        await asyncio.sleep(CHURN)

    async def _compare(self, before: dict[str, object]) -> None:
        await self.workloads.settle()
        for left in (self.workloads.waiting, self.workloads.unheld, self.workloads.strangers):
            await self._expect(left)
        after = await self.workloads.picture()
        self.wrong += [
            f"{name}: {before[name]} before, {after.get(name)} after"
            for name in before
            if before[name] != after.get(name)
        ]

    # The naive order

    async def _naive(self) -> None:
        with self._timed("naive"):
            async with frame.beside(self.workloads.churn()):
                self.kubelets.switch(pod_groups=False)
                for node in self.kubelets.fleet.names[::2]:
                    await self.kubelets.recover(node, rebooted=True)
                await asyncio.sleep(CHURN)
                await self._switch(API_SERVER, SCHEDULER, CONTROLLER_MANAGER, on=False)
                await asyncio.sleep(2 * CHURN)
            await self.workloads.settle()
            await self._expect(self.workloads.waiting, 2 * CHURN)
            await self._expect(self.workloads.unlisted, CHURN)

    # The end

    async def _end(self) -> None:
        """Let all pods end; every claim loses its devices."""
        events = await self.workloads.client.list(("v1", "Event"), NAMESPACE)
        self.refused = [event["message"] for event in events if event["reason"] == PREPARE_FAILED]
        for name in self.workloads.names:
            await self.workloads.scale(name, 0)
        await self._expect(self.workloads.allocated, 4 * CHURN)

    # Parts of a step

    async def _switch(self, *servers: str, on: bool) -> None:
        for name in servers:
            self._away = name == API_SERVER
            await asyncio.to_thread(self.plane.switch, name, pod_groups=on)
        self._away = False

    async def _expect(self, left: Left, seconds: float = READY) -> None:
        """Wait until nothing is left; what is left at the end is wrong."""
        try:
            await frame.until_none(left, seconds)
        except TimeoutError:
            self.wrong += await left()

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        began = time.monotonic()
        frame.say(step)
        yield
        self.times[step] = time.monotonic() - began
