"""The stage of the end-to-end tests: a cluster, controllers on it, and users.

By default the cluster is embedded and runs on a virtual clock, with an in-memory transport.
Afterwards a witness reads its history. ``make e2e-real`` plays the same scenarios on a real control
plane, in real time (see ``real_cluster``).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import datetime
from random import Random
from typing import TYPE_CHECKING, Any

from kube_in_process.cluster import Cluster
from kube_in_process.device_witness import DEALLOCATED_IN_USE, judge_cluster
from kube_in_process.options import ClusterOptions, Preset

from claimctl.controller.manager import Manager
from claimctl.controller.settings import Settings
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.errors import AlreadyExists, Conflict, NotFound
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.meta import ObjectHeader, ObjectMeta, find_condition
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservation
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    EVENTS,
    PODS,
    RESOURCECLAIMS,
    Resource,
)
from claimctl.wire.seams import Clock, Transport
from tests.e2e.places import DEVICE_CLASS
from tests.e2e.site import (
    CONTROLLER_GROUPS,
    CONTROLLER_NAMESPACE,
    CONTROLLER_USER,
    NAMESPACE,
    EmbeddedSite,
    Site,
    accused,
)
from tests.support.builders import NOW
from tests.support.crds import definitions

if TYPE_CHECKING:
    from tests.e2e.real_cluster import RealCluster

__all__ = ["CONTROLLER_GROUPS", "CONTROLLER_USER", "DEVICE_CLASS", "NAMESPACE"]

Body = Mapping[str, Any]
_SHOWN = 10
"""How many pods a failure message names."""
chosen: ContextVar[RealCluster | None] = ContextVar("chosen", default=None)
"""The real cluster that scenarios use; None: each has an embedded one."""


@dataclass
class Stage:
    """The cluster of a scenario, with helpers."""

    client: Client
    """A client with an administrator's rights."""
    clock: Clock
    connect: Callable[[], Transport]
    """Makes a connection for a controller."""
    site: Site
    cluster: Cluster | None = None
    """The embedded cluster; None on a real one."""
    managers: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    stops: dict[str, asyncio.Event] = field(default_factory=dict)

    @property
    def embedded(self) -> Cluster:
        if self.cluster is None:
            raise AssertionError("it needs the embedded cluster: put it into skipped.py")
        return self.cluster

    def scaled(self, seconds: float) -> float:
        """A long duration such as a grace; on a real cluster, where it passes, a tenth of it."""
        return seconds if self.cluster is not None else seconds / 10

    async def quiet(self, seconds: float) -> None:
        """Let ``seconds`` pass in which nothing should happen; on a real cluster at most 15."""
        await self.clock.sleep(seconds if self.cluster is not None else min(seconds, 15.0))

    # -- controllers

    def manager(
        self, identity: str = "one", transport: Transport | None = None, **settings: Any
    ) -> Manager:
        """Start a controller; it runs until ``stop`` or the end of the scenario."""
        told = {**self.site.settings, **settings}
        wanted = Settings.checked(**{"identity": identity, **told})
        manager = Manager(wanted, transport or self.connect(), self.clock, rng=Random(identity))
        stop = self.stops[identity] = asyncio.Event()
        task = asyncio.create_task(manager.run(stop), name=f"manager {identity}")
        self.managers[identity] = task
        return manager

    async def started(
        self, identity: str = "one", transport: Transport | None = None, **settings: Any
    ) -> Manager:
        """Start a controller and wait until it leads."""
        manager = self.manager(identity, transport, **settings)
        await self.until(lambda: _leads(self.managers[identity], manager), "the controller leads")
        return manager

    async def stop(self, identity: str = "one") -> None:
        """Stop a controller as SIGTERM does, and wait for its end; raises its exception."""
        self.stops.pop(identity).set()
        await self.managers.pop(identity)

    async def kill(self, identity: str = "one") -> None:
        """Kill a controller whose connection is dead already; it cleans nothing up."""
        self.stops.pop(identity, None)
        task = self.managers.pop(identity)
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()

    @asynccontextmanager
    async def controllers(self) -> AsyncIterator[None]:
        """Stop all controllers at the end of a scenario; they must end without an error."""
        try:
            yield
            for identity in list(self.managers):
                await self.stop(identity)
        finally:
            for identity in list(self.managers):
                await self.kill(identity)

    # -- people

    async def create(self, resource: Resource[Any], body: Body) -> Any:
        return await self.client.create(resource, body, NAMESPACE if resource.namespaced else "")

    async def patch(self, resource: Resource[Any], name: str, patch: Body) -> None:
        """Patch an object as kubectl does, without its version."""
        while True:
            version = (await self.client.get(resource, name, NAMESPACE)).metadata.resource_version
            with suppress(Conflict):
                await self.client.merge_patch(
                    resource,
                    ObjectMeta(name=name, namespace=NAMESPACE, resource_version=version),
                    patch,
                )
                return

    async def delete(self, resource: Resource[Any], name: str, **options: Any) -> None:
        await self.client.delete(resource, name, NAMESPACE, **options)

    async def cordon(self, node: str, *, unschedulable: bool = True) -> None:
        """Cordon or uncordon a node."""
        patch = {"spec": {"unschedulable": True if unschedulable else None}}
        await self.site.patch_node(node, patch)

    async def claim(self, name: str = "slice") -> ResourceClaim:
        return await self.client.get(RESOURCECLAIMS, name, NAMESPACE)

    async def write_list(self, entries: Iterable[Body], name: str = "slice") -> None:
        """Write a claim's list as another writer than claimctl."""
        body = {"status": {"reservedFor": list(entries) or None}}
        await self.patch_status(RESOURCECLAIMS, name, body)

    async def patch_status(self, resource: Resource[Any], name: str, patch: Body) -> None:
        meta = (await self.client.get(resource, name, NAMESPACE)).metadata
        await self.client.merge_patch(
            resource,
            ObjectMeta(name=name, namespace=NAMESPACE, resource_version=meta.resource_version),
            patch,
            subresource="status",
        )

    async def references(self, name: str = "slice") -> tuple[str, ...]:
        """The entries of the list, as ``resource/name``."""
        return tuple(map(_short, (await self.claim(name)).status.reserved_for))

    async def allocated(self, name: str = "slice") -> bool:
        return (await self.claim(name)).status.allocation is not None

    async def released(self, name: str = "slice") -> bool:
        """Whether the claim is deallocated, its list empty and the scheduler's finalizer gone."""
        found = await self.claim(name)
        return (
            found.status.allocation is None
            and not found.status.reserved_for
            and "resource.kubernetes.io/delete-protection" not in found.metadata.finalizers
        )

    async def reservations(self) -> tuple[ClaimReservation, ...]:
        return (await self.client.list(CLAIMRESERVATIONS, NAMESPACE)).items

    async def condition(self, type_: str, name: str | None = None) -> tuple[str, str]:
        """Status and reason of a condition of the only ClaimReservation, or of the named one."""
        for one in await self.reservations():
            if name in (None, one.metadata.name):
                for each in one.status.conditions:
                    if each.type == type_:
                        return each.status, each.reason
        return "", ""

    async def running(self) -> tuple[Pod, ...]:
        pods = (await self.client.list(PODS, NAMESPACE)).items
        return tuple(pod for pod in pods if pod.status.phase == "Running" and _stays(pod))

    async def event_reasons(self) -> set[str]:
        return {event.reason for event in (await self.client.list(EVENTS, NAMESPACE)).items}

    async def gone(self, resource: Resource[Any], name: str) -> bool:
        try:
            await self.client.get(resource, name, NAMESPACE)
        except NotFound:
            return True
        return False

    # -- time

    async def until(
        self, holds: Callable[[], Awaitable[bool]], what: str, within: float = 60.0
    ) -> None:
        """Wait until a condition holds."""
        within *= self.site.patience
        end = self.clock.monotonic() + within
        while not await _tried(holds):
            if self.clock.monotonic() > end:
                raise AssertionError(f"not within {within:g} s: {what}{await self._look()}")
            await self.site.look_again()

    async def until_listed(self, *references: str, claim: str = "slice") -> None:
        async def holds() -> bool:
            return sorted(await self.references(claim)) == sorted(references)

        await self.until(holds, f"{claim} is reserved for {references}")

    async def until_condition(
        self, type_: str, status: str, reason: str, *, name: str | None = None, within: float = 60
    ) -> None:
        async def holds() -> bool:
            return await self.condition(type_, name) == (status, reason)

        await self.until(holds, f"{type_} is {status}, {reason}", within)

    async def until_released(self, claim: str = "slice", within: float = 60.0) -> None:
        await self.until(lambda: self.released(claim), f"{claim} is released", within)

    async def until_running(self, count: int) -> None:
        async def holds() -> bool:
            return len(await self.running()) == count

        await self.until(holds, f"{count} pods run")

    async def until_some_run(self) -> None:
        """Wait until a pod runs. The first pod of a Job may end before the last one runs."""

        async def holds() -> bool:
            return bool(await self.running())

        await self.until(holds, "some pods run")

    async def until_event(self, reason: str) -> None:
        async def holds() -> bool:
            return reason in await self.event_reasons()

        await self.until(holds, f"an event {reason}")

    async def _look(self) -> str:
        claims = (await self.client.list(RESOURCECLAIMS, NAMESPACE)).items
        lines = [
            f"\n  claim {claim.metadata.name}: allocated={claim.status.allocation is not None} "
            f"{[_short(reference) for reference in claim.status.reserved_for]}"
            for claim in claims
        ]
        for one in await self.reservations():
            told = {
                each.type: (each.status, each.reason, each.message)
                for each in one.status.conditions
            }
            lines.append(f"\n  reservation {one.metadata.name}: {told}")
        for pod in (await self.client.list(PODS, NAMESPACE)).items[:_SHOWN]:
            where = f"{pod.status.phase or 'no phase'} on {pod.spec.node_name or 'no node'}"
            scheduled = find_condition(pod.status.conditions, "PodScheduled")
            why = scheduled.message if scheduled is not None else ""
            lines.append(f"\n  pod {pod.metadata.name}: {where} {why}")
        for name, task in self.managers.items():
            lines.append(f"\n  manager {name}: {task!r}")
        return "".join(lines)


NewStage = Callable[[ClusterOptions], AbstractAsyncContextManager[Stage]]


@asynccontextmanager
async def embedded_stage(options: ClusterOptions) -> AsyncIterator[Stage]:
    """A stage on an embedded cluster of its own; at the end a witness judges its history."""
    async with embedded_cluster(options) as cluster:
        site = EmbeddedSite(cluster)
        stage = Stage(
            client=Client(cluster.transport(), cluster.clock, field_manager="kubectl"),
            clock=cluster.clock,
            connect=lambda: site.connection(CONTROLLER_USER),
            site=site,
            cluster=cluster,
        )
        async with stage.controllers():
            yield stage
        judge(cluster, site.excused)


@asynccontextmanager
async def embedded_cluster(
    options: ClusterOptions, epoch: datetime | None = NOW
) -> AsyncIterator[Cluster]:
    """An embedded cluster with claimctl's CRDs and the tests' namespace, on the loop's clock.

    Args:
        epoch: the wall time at the start; None for today's.
    """
    cluster = Cluster(options, LoopClock(epoch))
    await cluster.start()
    try:
        await install(Client(cluster.transport(), cluster.clock))
        yield cluster
    finally:
        await cluster.stop()


async def install(client: Client, *, crds: bool = True) -> None:
    """Install claimctl as an administrator does before the controller starts."""
    for definition in definitions() if crds else ():
        with suppress(AlreadyExists):
            await client.create(DEFINITIONS, definition)
    for name in (NAMESPACE, CONTROLLER_NAMESPACE):
        await client.create(NAMESPACES, {"metadata": {"name": name}})


DEFINITIONS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    ObjectHeader,
    namespaced=False,
)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", ObjectHeader, namespaced=False)


def judge(cluster: Cluster, excused: Collection[str] = ()) -> None:
    """Fail if a witness found a violation or an emulated component broke.

    Args:
        excused: the rules of the witness of devices that the scenario breaks on purpose.
    """
    late = frozenset(
        name for name, driver in cluster.drivers.items() if driver.has("wants-one-pod")
    )
    users = frozenset({CONTROLLER_USER})
    findings = accused(cluster.history(), users, one_pod_drivers=late)
    assert not findings, findings
    # of deallocations the other witness judges, which knows when a lost node is given up
    excused = {*excused, DEALLOCATED_IN_USE}
    faults = [each for each in judge_cluster(cluster) if each.rule not in excused]
    assert not faults, "\n".join(map(str, faults))
    assert cluster.failures == []


async def _tried(holds: Callable[[], Awaitable[bool]]) -> bool:
    try:
        return await holds()
    except NotFound:
        return False


async def _leads(task: asyncio.Task[None], manager: Manager) -> bool:
    if task.done():
        task.result()
    return manager.leading


def _short(reference: Reference) -> str:
    return f"{reference.resource}/{reference.name}"


def _stays(pod: Pod) -> bool:
    return not pod.metadata.deleting


NATIVE = ClusterOptions(preset=Preset.RESERVED_FOR_ANY_POD)
HOLD_136 = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 36))
PODGROUP_136 = ClusterOptions(preset=Preset.POD_GROUPS, kubernetes_version=(1, 36))
PODGROUP_137 = ClusterOptions(preset=Preset.POD_GROUPS, kubernetes_version=(1, 37))
GROUP_136, GROUP_137 = replace(PODGROUP_136, nodes=1), replace(PODGROUP_137, nodes=1)
"""One node only: while the claim is being allocated for the first pod of a PodGroup, the scheduler
of 1.36.2 may bind another pod of it to a wrong node (kubernetes/kubernetes#140087)."""
HOLD_134 = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 34))
