"""The stage on real control planes: the story with the programs in a folder.

etcd, the API server, kube-controller-manager and the scheduler are real. A stand-in plays the
nodes, their devices and their kubelets.
"""

from __future__ import annotations

import asyncio
import tempfile
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kube_in_process.storage.store import Revision

from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.connection import load_connection
from claimctl.kube.transport import HttpTransport
from claimctl_demo.documents import DocumentClient
from claimctl_demo.real_servers.features import resource_api
from claimctl_demo.real_servers.history import History
from claimctl_demo.real_servers.kubelet import Kubelets
from claimctl_demo.real_servers.nodes import Fleet
from claimctl_demo.real_servers.plane import ControlPlane, Wanted, running
from claimctl_demo.real_servers.programs import find_programs
from claimctl_demo.story.stage import CONTROLLER, Stage, StoryFailed, set_up
from claimctl_demo.witness.witness import Violation

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
    wanted = Wanted(
        pod_groups=pod_groups,
        history=True,
        # Other tests check that the controller needs no more than its own role.
        users={CONTROLLER: "system:masters"},
    )
    programs = find_programs(assets)
    with tempfile.TemporaryDirectory(prefix="claimctl-demo-") as directory:
        plane = ControlPlane(programs, Path(directory), wanted)
        with running(plane):
            yield plane


@dataclass(slots=True)
class RealScene:
    """A real control plane with its history and the stand-in for kubelets."""

    plane: ControlPlane
    recorded: History
    kubelets: Kubelets
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def failures(self) -> Sequence[object]:
        """Servers that have ended, and errors of the stand-in."""
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
        """Violations that the stand-in for kubelets saw."""
        found = []
        for each in self.kubelets.findings:
            namespace, _, claim = each.claim.partition("/")
            message = f"pod {each.pod}: {each.message} ({each.claim})"
            found.append(Violation(each.rule, 0, namespace, claim, (each.pod,), message))
        return found


@asynccontextmanager
async def really_staged(plane: ControlPlane) -> AsyncIterator[tuple[Stage, RealScene]]:
    """The stage on a running control plane; torn down in reverse order.

    Raises:
        StoryFailed: the nodes cannot be registered, or the controller does not become leader.
    """
    async with AsyncExitStack() as stack:
        admin = await _connected(stack, plane.files.kubeconfig())
        fleet = Fleet(plane.programs.version, count=3)
        kubelets = Kubelets(admin, fleet, pod_groups=plane.wanted.pod_groups)
        scene = RealScene(plane, plane.history({"claimctl": CONTROLLER}), kubelets)
        stack.push_async_callback(_end, scene.tasks)
        scene.tasks.append(asyncio.create_task(scene.recorded.run(), name="history"))
        await _join(scene)
        clock = LoopClock()
        stage = Stage(
            scene,
            DocumentClient(admin),
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
    scene.tasks.append(asyncio.create_task(scene.kubelets.run(joined), name="kubelets"))
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
