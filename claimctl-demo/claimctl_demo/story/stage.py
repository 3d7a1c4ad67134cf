"""The stage of the demonstration: a cluster behind HTTP, the controller, a user and a witness."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Protocol, TypeVar

from kube_in_process.cluster import Cluster
from kube_in_process.http.listener import serve
from kube_in_process.options import ClusterOptions
from kube_in_process.real.servers.features import resource_api
from kube_in_process.storage.store import Revision

from claimctl.commands.install.components import documents
from claimctl.controller.manager import Manager
from claimctl.controller.settings import Settings
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.connection import Connection
from claimctl.kube.transport import HttpTransport
from claimctl.parallel import wait_for
from claimctl.wire.seams import Transport
from claimctl_demo.documents import DocumentClient
from claimctl_witness.witness import Witness
from claimctl_witness.world import World

T = TypeVar("T")

CONTROLLER = "system:serviceaccount:claimctl-system:claimctl-controller"
CONTROLLER_NAMESPACE = "claimctl-system"
SETTLE_SECONDS = 0.3
BINDING_SECONDS = 1.0
"""Enough here: the embedded scheduler binds a pod at once. A real one may need a minute."""
_ESTABLISHED_SECONDS, _LOOK_SECONDS = 30.0, 0.1
_MOST = 10.0
"""So many times its seconds a step may take in all while the cluster makes progress."""
_TOGETHER_SECONDS = 0.02
"""Changes within this time are handled together."""


class StoryFailed(Exception):
    """A condition did not hold in time, or the stage broke. The text is one line."""


class Scene(Protocol):
    """The cluster that the stage runs on."""

    @property
    def failures(self) -> Sequence[object]:
        """Errors inside the cluster itself."""

    def history(self, since: int = 0) -> Iterable[Revision]:
        """All revisions after ``since``, in order."""

    def subscribe(self, callback: Callable[[Revision], None]) -> None:
        """Call ``callback`` with each revision from now on."""

    async def caught_up(self) -> None:
        """Wait until the history has every write so far."""


@dataclass(slots=True)
class Stage:
    scene: Scene
    user: DocumentClient
    client: Client
    """A client over HTTP with an administrator's rights, as claimctl's commands use it."""
    url: str
    resource_api: str = "resource.k8s.io/v1"
    """The newest version that the cluster serves."""
    patience: float = 1.0
    """Factor by which everything may take longer than on an embedded cluster."""
    world: World = field(default_factory=World)
    witness: Witness = field(default_factory=lambda: Witness(frozenset({CONTROLLER})))
    clock: LoopClock = field(default_factory=LoopClock)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _controller: asyncio.Task[None] | None = None
    _stop: asyncio.Event = field(default_factory=asyncio.Event)

    def look(self) -> None:
        """Read the revisions since the last call."""
        self.world.read(self.scene.history(self.world.number))

    async def until(self, condition: Callable[[], T | None], what: str, seconds: float = 20.0) -> T:
        """Wait until ``condition`` returns something true, and return that.

        A busy machine makes everything slower, so what counts is the time without progress.

        Raises:
            StoryFailed: no pod, claim or ClaimReservation has changed for ``seconds`` (times
                ``patience``), the whole took ``_MOST`` times as long, or the controller has ended.
        """
        seconds *= self.patience
        try:
            async with asyncio.timeout(seconds * _MOST):
                return await self._met(condition, seconds)
        except TimeoutError:
            raise StoryFailed(f"not within {seconds:g} s: {what}") from None

    async def look_closely(self) -> None:
        """Read every revision that was written so far."""
        await self.scene.caught_up()
        self.look()

    async def _met(self, condition: Callable[[], T | None], seconds: float) -> T:
        """What ``condition`` returns; TimeoutError after ``seconds`` without a change."""
        seen, since = self.world.changed_at, self.clock.monotonic()
        while True:
            self._changed.clear()
            self.look()
            if result := condition():
                return result
            self._check_controller()
            now = self.clock.monotonic()
            if self.world.changed_at != seen:
                seen, since = self.world.changed_at, now
            if now - since > seconds:
                raise TimeoutError
            # The condition may concern the controller and not the server.
            await wait_for(self._changed, _LOOK_SECONDS)
            await asyncio.sleep(_TOGETHER_SECONDS)

    def _check_controller(self) -> None:
        if self._controller is None or not self._controller.done():
            return
        error = None if self._controller.cancelled() else self._controller.exception()
        raise StoryFailed(f"the controller has ended: {error or 'without an error'}")

    def hire_controller(self, manager: Manager) -> None:
        self.scene.subscribe(lambda _: self._changed.set())
        self._controller = asyncio.create_task(manager.run(self._stop), name="controller")
        self._controller.add_done_callback(lambda _: self._changed.set())

    async def dismiss_controller(self) -> None:
        """Stop the controller as SIGTERM does; from then on claims have no controller."""
        task, self._controller = self._controller, None
        self._stop.set()
        if task is not None:
            await asyncio.gather(task, return_exceptions=True)


@dataclass(slots=True)
class EmbeddedStage(Stage):
    @property
    def cluster(self) -> Cluster:
        assert isinstance(self.scene, Cluster)
        return self.scene


@asynccontextmanager
async def staged(options: ClusterOptions) -> AsyncIterator[EmbeddedStage]:
    """The stage on an embedded cluster; always torn down in reverse order."""
    async with AsyncExitStack() as stack:
        clock = LoopClock()
        cluster = Cluster(options, clock)
        await cluster.start()
        stack.push_async_callback(cluster.stop)
        admin, url = await _serve_transport(stack, cluster.transport())
        api = f"resource.k8s.io/{resource_api(options.kubernetes_version)}"
        stage = EmbeddedStage(cluster, DocumentClient(admin), Client(admin, clock), url, api)
        controller_transport, _ = await _serve_transport(stack, cluster.transport(CONTROLLER))
        await set_up(
            stack,
            stage,
            controller_transport,
            settle_seconds=SETTLE_SECONDS,
            binding_seconds=BINDING_SECONDS,
        )
        yield stage
        stage.look()


async def _serve_transport(stack: AsyncExitStack, inside: Transport) -> tuple[Transport, str]:
    """A port of the server where every request comes from one user, and a session to it."""
    server = await serve(inside)
    stack.push_async_callback(server.close)
    transport = await stack.enter_async_context(HttpTransport(Connection(server=server.url)))
    return transport, server.url


async def set_up(
    stack: AsyncExitStack, stage: Stage, controller: Transport, **settings: float
) -> None:
    """Set up the witness, the CRDs, and the controller with its own connection.

    Raises:
        StoryFailed: the controller does not become leader.
    """
    stage.world.listen(stage.witness.notice)
    await _install(stage.user)
    await _start_controller(stack, stage, controller, settings)


async def _install(user: DocumentClient) -> None:
    """Create what ``kubectl apply -k deploy`` creates, except the controller."""
    await user.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CONTROLLER_NAMESPACE}}
    )
    definitions = documents("crds")
    for definition in definitions:
        await user.create(definition)
    async with asyncio.timeout(_ESTABLISHED_SECONDS):
        for definition in definitions:
            await _established(user, definition["metadata"]["name"])


async def _established(user: DocumentClient, name: str) -> None:
    """Wait until the API server serves the kind. A real server takes a moment."""
    kind = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    while True:
        conditions = (await user.get(kind, "", name))["status"].get("conditions") or ()
        if any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
            return
        await asyncio.sleep(_LOOK_SECONDS)


async def _start_controller(
    stack: AsyncExitStack, stage: Stage, transport: Transport, settings: Mapping[str, float]
) -> None:
    chosen = Settings.checked(identity="demo", lease_namespace=CONTROLLER_NAMESPACE, **settings)
    manager = Manager(chosen, transport, stage.clock, None, Random(0))
    stack.push_async_callback(stage.dismiss_controller)
    stage.hire_controller(manager)
    await stage.until(lambda: manager.leading, "the controller leads")
