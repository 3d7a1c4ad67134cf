"""One run: the cluster is furnished, the gates go off and on again, and everything is compared."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from random import Random

from claimctl.downgrade.look import PREPARE_FAILED
from claimctl.kube.documents import DocumentClient
from claimctl.kube.transport import HttpTransport
from claimctl_demo.real_servers.kubelet import Kubelets
from claimctl_demo.real_servers.nodes import Fleet
from claimctl_demo.real_servers.plane import ControlPlane
from claimctl_demo.real_servers.programs import API_SERVER, CONTROLLER_MANAGER, SCHEDULER
from labs.switching.options import NAIVE, Options
from labs.switching.workloads import NAMESPACE, Workloads
from labs.torture_real.controllers import BINDING_SECONDS, Controllers, install, token
from tests.e2e.runbooks import Runbook

READY = 300.0
"""Seconds for all pods to run, all claims to be held, and all claims to be free in the end."""
CHURN = 20.0
"""Seconds in which users act between two steps."""
_LOOK = 1.0

Left = Callable[[], Awaitable[list[str]]]


@dataclass
class Run:
    """One cluster, and what was found in it."""

    options: Options
    plane: ControlPlane
    transport: HttpTransport
    wrong: list[str] = field(default_factory=list)
    """What is not as it has to be."""
    refused: list[str] = field(default_factory=list)
    """What kubelets said when they refused a pod."""
    found: list[str] = field(default_factory=list)
    """Events on nodes that must not happen."""
    times: dict[str, float] = field(default_factory=dict)
    """By step: its seconds."""
    workloads: Workloads = field(init=False)
    kubelets: Kubelets = field(init=False)
    _away: bool = False
    """Whether the API server is being restarted."""

    def __post_init__(self) -> None:
        fleet = Fleet(self.options.programs.version, count=self.options.claims, devices=1)
        people = DocumentClient(self.transport, "people")
        self.workloads = Workloads(people, fleet, self.options.pods, Random(self.options.seed))
        self.kubelets = Kubelets(self.transport, fleet, pod_groups=True)

    async def play(self, controllers: Controllers) -> None:
        """Play all steps; raises TimeoutError if the cluster does not become ready."""
        async with self._nodes():
            await install(self.workloads.client)
            controllers.prepare(await token(self.transport))
            controllers.start("one")
            async with _until_done(self._revive(controllers)):
                await self._steps()
        self.wrong += controllers.crashes

    async def _steps(self) -> None:
        with self._timed("furnish"):
            await self._furnish()
        before = await self.workloads.picture()
        if self.options.order == NAIVE:
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

    @asynccontextmanager
    async def _nodes(self) -> AsyncIterator[None]:
        joined = asyncio.Event()
        playing = asyncio.create_task(self.kubelets.run(joined))
        try:
            await joined.wait()
            yield
        finally:
            self.found = [f"{each.pod}: {each.rule}" for each in self.kubelets.findings]
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)

    async def _furnish(self) -> None:
        await self.workloads.create()
        await self._until(self.workloads.waiting)
        await self._until(self.workloads.unheld)

    # The order of the runbook

    async def _by_the_runbook(self, before: dict[str, object]) -> None:
        book = Runbook("downgrade.md", self.plane.files.kubeconfig())
        with self._timed("off"):
            async with _until_done(self.workloads.churn()):
                await self._off(book)
        with self._timed("reboot"):
            await self._reboot()
        with self._timed("on"):
            async with _until_done(self.workloads.churn()):
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
        await self._until(self.workloads.waiting)
        await self._until(self.workloads.unlisted)
        for node in self.kubelets.fleet.names:
            await self.kubelets.recover(node, rebooted=True)
        await asyncio.sleep(CHURN)
        await self._until(self.workloads.waiting)

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
            async with _until_done(self.workloads.churn()):
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
        self.refused = [each["message"] for each in events if each["reason"] == PREPARE_FAILED]
        for name in self.workloads.names:
            await self.workloads.scale(name, 0)
        await self._expect(self.workloads.allocated, 4 * CHURN)

    # Parts of a step

    async def _switch(self, *servers: str, on: bool) -> None:
        for name in servers:
            self._away = name == API_SERVER
            await asyncio.to_thread(self.plane.switch, name, pod_groups=on)
        self._away = False

    async def _until(self, left: Left, seconds: float = READY) -> None:
        """Wait until nothing is left; raises TimeoutError with what is left."""
        end = time.monotonic() + seconds
        while found := await left():
            if time.monotonic() > end:
                raise TimeoutError(f"after {seconds:g} s: {'; '.join(found[:10])}")
            await asyncio.sleep(_LOOK)

    async def _expect(self, left: Left, seconds: float = READY) -> None:
        """Wait until nothing is left; what is left at the end is wrong."""
        try:
            await self._until(left, seconds)
        except TimeoutError:
            self.wrong += await left()

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        began = time.monotonic()
        print(f"{time.strftime('%H:%M:%S')} {step}", file=sys.stderr, flush=True)
        yield
        self.times[step] = time.monotonic() - began


@asynccontextmanager
async def _until_done(beside: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Do something without an end beside the block; an error of it is raised after the block."""
    task = asyncio.create_task(beside)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.result()
