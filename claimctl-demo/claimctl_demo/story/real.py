"""The stage on real control planes: the story with the programs in a folder.

etcd, the API server, kube-controller-manager and the scheduler are real. The nodes are real, too
(``machines``), or a stand-in plays them with their devices and kubelets.
"""

from __future__ import annotations

import asyncio
import tempfile
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kube_in_process.real.nodes.cluster import NodeCluster
from kube_in_process.real.nodes.cluster import running as running_nodes
from kube_in_process.real.nodes.needs import find_tools
from kube_in_process.real.servers.features import resource_api
from kube_in_process.real.servers.history import History
from kube_in_process.real.servers.plane import ControlPlane, Wanted, running
from kube_in_process.real.servers.programs import find_programs
from kube_in_process.storage.store import Revision

from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.transport import HttpTransport
from claimctl.login.connect import load_connection
from claimctl_demo.documents import DocumentClient
from claimctl_demo.story.machines import Machines, NodeUser, RealNodes, StandIns
from claimctl_demo.story.stage import CONTROLLER, Stage, StoryFailed, set_up
from claimctl_witness.witness import Violation

_JOIN_SECONDS = 30.0
_CAUGHT_UP_SECONDS = 20.0
_PATIENCE = 3.0
_BINDING_SECONDS = 10.0
"""Enough here: the scheduler has little to do and may send 500 requests a second."""


@contextmanager
def real_plane(assets: Path, *, pod_groups: bool) -> Iterator[ControlPlane]:
    """Start the control plane of a folder's programs; its data are deleted at the end.

    Raises:
        CannotStart: the programs cannot be used, or a server does not start.
    """
    programs = find_programs(assets)
    with tempfile.TemporaryDirectory(prefix="claimctl-demo-") as directory:
        plane = ControlPlane(programs, Path(directory), _wanted(pod_groups=pod_groups))
        with running(plane):
            yield plane


@contextmanager
def real_cluster(assets: Path, count: int, *, pod_groups: bool) -> Iterator[NodeCluster]:
    """Start a cluster with so many real nodes. Only for a process inside the ``enclosure``.

    Raises:
        CannotStart: the machine lacks something, or a server does not start.
    """
    cluster = NodeCluster(find_tools(assets), _wanted(pod_groups=pod_groups), count)
    with running_nodes(cluster):
        yield cluster


def _wanted(*, pod_groups: bool) -> Wanted:
    return Wanted(
        pod_groups=pod_groups,
        history=True,
        # Other tests check that the controller needs no more than its own role.
        users={CONTROLLER: "system:masters"},
    )


@dataclass(slots=True)
class RealScene:
    """A real control plane with its history and its nodes."""

    plane: ControlPlane
    recorded: History
    machines: Machines
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def failures(self) -> Sequence[object]:
        """Servers that have ended, and errors of what plays the nodes."""
        ended = [
            f"{name} has ended: {server.last_error()}"
            for name, server in self.plane.servers.items()
            if not server.running
        ]
        broken = [task.exception() for task in self.tasks if task.done() and not task.cancelled()]
        return [*ended, *(error for error in broken if error is not None)]

    def history(self, since: int = 0) -> Iterable[Revision]:
        revisions = self.recorded.revisions
        return revisions[bisect_right(revisions, since, key=lambda each: each.number) :]

    def subscribe(self, callback: Callable[[Revision], None]) -> None:
        self.recorded.subscribe(callback)

    async def caught_up(self) -> None:
        try:
            async with asyncio.timeout(_CAUGHT_UP_SECONDS):
                await self.recorded.caught_up()
        except TimeoutError:
            text = f"etcd's watch is {_CAUGHT_UP_SECONDS:g} s late"
            raise StoryFailed(text) from None

    def findings(self) -> list[Violation]:
        """Violations that were seen on the nodes."""
        return self.machines.violations(self.recorded.revisions)


@asynccontextmanager
async def really_staged(
    plane: ControlPlane, nodes: NodeCluster | None = None
) -> AsyncIterator[tuple[Stage, RealScene]]:
    """The stage on a running control plane; torn down in reverse order.

    Args:
        nodes: the cluster with its nodes; None if a stand-in plays three.

    Raises:
        StoryFailed: the nodes cannot be registered, or the controller does not become leader.
    """
    async with AsyncExitStack() as stack:
        admin = await _connected(stack, plane.files.kubeconfig())
        user = DocumentClient(admin) if nodes is None else NodeUser(admin)
        machines = StandIns.of(plane, admin) if nodes is None else RealNodes(nodes, user)
        scene = RealScene(plane, plane.history({"claimctl": CONTROLLER}), machines)
        stack.push_async_callback(_end, scene.tasks)
        scene.tasks.append(asyncio.create_task(scene.recorded.run(), name="history"))
        await _join(scene)
        clock = LoopClock()
        stage = Stage(
            scene,
            user,
            Client(admin, clock),
            plane.files.url,
            patience=_PATIENCE,
            resource_api=f"resource.k8s.io/{resource_api(plane.programs.version)}",
        )
        theirs = await _connected(stack, plane.files.kubeconfig(CONTROLLER))
        await set_up(stack, stage, theirs, binding_seconds=_BINDING_SECONDS)
        yield stage, scene
        await stage.look_closely()


async def _connected(stack: AsyncExitStack, kubeconfig: Path) -> HttpTransport:
    return await stack.enter_async_context(HttpTransport(load_connection(str(kubeconfig))))


async def _join(scene: RealScene) -> None:
    joined = asyncio.Event()
    scene.tasks.append(asyncio.create_task(scene.machines.run(joined), name="nodes"))
    try:
        async with asyncio.timeout(_JOIN_SECONDS):
            await joined.wait()
    except TimeoutError:
        why = [str(failure) for failure in scene.failures]
        raise StoryFailed(f"the nodes did not register: {'; '.join(why) or 'no answer'}") from None


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
