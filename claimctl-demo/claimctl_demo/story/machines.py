"""What plays the nodes of the story on a real control plane: a stand-in, or real kubelets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from kube_in_process.components.kubelet.nodes import device_class
from kube_in_process.containers import FOREVER
from kube_in_process.device_witness import OF_KUBERNETES, judge, uses_of
from kube_in_process.habits.call import Call
from kube_in_process.real.nodes.cluster import NodeCluster
from kube_in_process.real.nodes.drivers import DriverProcess, slice_of
from kube_in_process.real.nodes.enclosure import HOME
from kube_in_process.real.nodes.pods import with_containers
from kube_in_process.real.servers.kubelet import Kubelets
from kube_in_process.real.servers.nodes import Fleet
from kube_in_process.real.servers.plane import ControlPlane
from kube_in_process.storage.store import Revision
from msgspec.structs import replace

from claimctl.commands.timeline.model import Lane, Timeline, TimelineSpan
from claimctl.wire.base import Object
from claimctl.wire.seams import Transport
from claimctl_demo.documents import DocumentClient
from claimctl_witness.witness import Violation

_LOOK_SECONDS = 0.2


class Machines(Protocol):
    """The nodes of the story."""

    async def run(self, joined: asyncio.Event) -> None:
        """Run until cancelled; sets ``joined`` when pods can be scheduled."""
        ...

    def violations(self, history: Sequence[Revision]) -> list[Violation]:
        """What was seen on the nodes and must not happen."""
        ...


@dataclass(slots=True)
class StandIns:
    """Kubelets that are played."""

    kubelets: Kubelets

    @classmethod
    def of(cls, plane: ControlPlane, admin: Transport) -> StandIns:
        fleet = Fleet(plane.programs.version, count=3)
        return cls(Kubelets(admin, fleet, pod_groups=plane.wanted.pod_groups))

    async def run(self, joined: asyncio.Event) -> None:
        await self.kubelets.run(joined)

    def violations(self, history: Sequence[Revision]) -> list[Violation]:
        found = []
        for each in self.kubelets.findings:
            namespace, _, claim = each.claim.partition("/")
            message = f"pod {each.pod}: {each.message} ({each.claim})"
            found.append(Violation(each.rule, 0, namespace, claim, (each.pod,), message))
        return found


class NodeUser(DocumentClient):
    """A user whose pods run in containers that the nodes have."""

    async def create(self, body: Object, *, dry_run: bool = False) -> Object:
        return await super().create(with_containers(body), dry_run=dry_run)


@dataclass(slots=True)
class RealNodes:
    """Kubelets with containers, and a DRA driver for their devices."""

    cluster: NodeCluster
    user: DocumentClient
    _driver: DriverProcess = field(init=False)

    def __post_init__(self) -> None:
        plane = self.cluster.plane
        fleet = Fleet(plane.programs.version, self.cluster.count)
        names = [f"dev-{index}" for index in range(fleet.devices)]
        nodes = self.cluster.nodes
        self._driver = DriverProcess(
            fleet.driver,
            plane.files,
            fleet.resource_api,
            {node.name: node.kubelet.root for node in nodes},
            {
                node.name: slice_of(node.name, fleet.driver, names, fleet.resource_api, {})
                for node in nodes
            },
            HOME / "driver",
        )

    async def run(self, joined: asyncio.Event) -> None:
        api, name = self._driver.resource_api, self._driver.name
        await self.user.create(device_class(api, name, name))
        await asyncio.to_thread(self._driver.start)
        while True:
            if len(await self.user.list((api, "ResourceSlice"))) == self.cluster.count:
                break
            await asyncio.sleep(_LOOK_SECONDS)
        joined.set()
        try:
            await asyncio.Event().wait()
        finally:
            self._driver.server.stop()

    def violations(self, history: Sequence[Revision]) -> list[Violation]:
        found = []
        deaths = {node.name: node.deaths for node in self.cluster.nodes}
        for each in judge(self._driver.calls(), history, deaths):
            if each.rule in OF_KUBERNETES:
                continue
            namespace, _, claim = each.claim.partition("/")
            found.append(Violation(each.rule, 0, namespace, claim, (), str(each)))
        return found

    def with_preparations(self, timelines: Iterable[Timeline]) -> list[Timeline]:
        """The timelines with the times for which each claim was prepared."""
        return [with_preparations(each, self._driver.calls()) for each in timelines]


def with_preparations(timeline: Timeline, calls: Iterable[Call]) -> Timeline:
    """A timeline with bars for the times for which its claim was prepared on a node.

    The order of calls is that of their times, which are of the clock on the wall.
    """
    name = f"{timeline.namespace}/{timeline.claim}"
    spans = tuple(
        TimelineSpan(
            Lane.HOLDER,
            f"prepared on {use.node}",
            _at(use.since),
            None if use.until == FOREVER else _at(use.until),
        )
        for use in uses_of(calls)
        if use.name == name
    )
    return replace(timeline, spans=(*timeline.spans, *spans))


def _at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
