"""The stage of the demonstration: a cluster behind HTTP, the controller, a user and a witness."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from claimctl.api.definitions import custom_resource_definitions
from claimctl.controller.manager import Manager
from claimctl.controller.settings import Settings
from claimctl.demo.witness import Witness
from claimctl.demo.world import World
from claimctl.embedded.cluster import Cluster
from claimctl.embedded.http import serve
from claimctl.embedded.options import ClusterOptions
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.connection import Connection
from claimctl.kube.documents import DocumentClient
from claimctl.kube.transport import HttpTransport
from claimctl.wire.seams import Transport

T = TypeVar("T")

CONTROLLER = "system:serviceaccount:claimctl-system:claimctl-controller"
CONTROLLER_NAMESPACE = "claimctl-system"
SETTLE_SECONDS = 0.3
_TOGETHER_SECONDS = 0.02
"""Changes within this time are looked at together."""


class StoryFailed(Exception):
    """Something did not come true in time, or the stage broke; one line."""


@dataclass(slots=True)
class Stage:
    cluster: Cluster
    user: DocumentClient
    client: Client
    """What claimctl's own commands would use, as an administrator, over HTTP."""
    url: str
    world: World = field(default_factory=World)
    witness: Witness = field(default_factory=lambda: Witness(frozenset({CONTROLLER})))
    clock: LoopClock = field(default_factory=LoopClock)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _controller: asyncio.Task[None] | None = None
    _stop: asyncio.Event = field(default_factory=asyncio.Event)

    def look(self) -> None:
        """Take in what happened since the last look."""
        self.world.read(self.cluster.history(self.world.number))

    async def until(self, condition: Callable[[], T | None], what: str, seconds: float = 20.0) -> T:
        """Wait for the server's state to meet a condition; what it returns, once that is true.

        Raises:
            StoryFailed: not within ``seconds``, or the controller has ended.
        """
        try:
            async with asyncio.timeout(seconds):
                return await self._met(condition)
        except TimeoutError:
            raise StoryFailed(f"not within {seconds:g} s: {what}") from None

    async def _met(self, condition: Callable[[], T | None]) -> T:
        while True:
            self._changed.clear()
            self.look()
            if found := condition():
                return found
            self._check_controller()
            await self._changed.wait()
            await asyncio.sleep(_TOGETHER_SECONDS)

    def _check_controller(self) -> None:
        if self._controller is None or not self._controller.done():
            return
        error = None if self._controller.cancelled() else self._controller.exception()
        raise StoryFailed(f"the controller has ended: {error or 'without an error'}")

    def hire_controller(self, manager: Manager) -> None:
        self.cluster.store.subscribe(lambda _: self._changed.set())
        self._controller = asyncio.create_task(manager.run(self._stop), name="controller")
        self._controller.add_done_callback(lambda _: self._changed.set())

    async def dismiss_controller(self) -> None:
        """Stop it as SIGTERM does; from then on nobody looks after claims."""
        task, self._controller = self._controller, None
        self._stop.set()
        if task is not None:
            await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def staged(options: ClusterOptions) -> AsyncIterator[Stage]:
    """Everything up and running; torn down in the reverse order, whatever happens."""
    async with AsyncExitStack() as stack:
        clock = LoopClock()
        cluster = Cluster(options, clock)
        await cluster.start()
        stack.push_async_callback(cluster.stop)
        admin, url = await _door(stack, cluster.transport())
        stage = Stage(cluster, DocumentClient(admin), Client(admin, clock), url)
        stage.world.listen(stage.witness.notice)
        await _install(stage.user)
        theirs, _ = await _door(stack, cluster.transport(CONTROLLER))
        await _start_controller(stack, stage, theirs)
        yield stage
        stage.look()


async def _door(stack: AsyncExitStack, inside: Transport) -> tuple[Transport, str]:
    """A port of the server at which everybody is one user, and a session to it."""
    server = await serve(inside)
    stack.push_async_callback(server.close)
    transport = await stack.enter_async_context(HttpTransport(Connection(server=server.url)))
    return transport, server.url


async def _install(user: DocumentClient) -> None:
    """What ``kubectl apply -k deploy`` would bring, but for the controller itself."""
    await user.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CONTROLLER_NAMESPACE}}
    )
    for definition in custom_resource_definitions():
        await user.create(definition)


async def _start_controller(stack: AsyncExitStack, stage: Stage, transport: Transport) -> None:
    settings = Settings(
        identity="demo", lease_namespace=CONTROLLER_NAMESPACE, settle_seconds=SETTLE_SECONDS
    )
    manager = Manager(settings, transport, stage.clock, None, Random(0))
    stack.push_async_callback(stage.dismiss_controller)
    stage.hire_controller(manager)
    await stage.until(lambda: manager.leading, "the controller leads")
