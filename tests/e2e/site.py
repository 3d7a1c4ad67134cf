"""What a scenario can do to its cluster, and how it reads the history."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

from kube_in_process.cluster import Cluster
from kube_in_process.device_witness import judge_cluster
from kube_in_process.options import Preset
from kube_in_process.real.servers.nodes import Fleet
from kube_in_process.storage.requests import Fault
from kube_in_process.storage.store import Revision

from claimctl.reservation.facts.reasons import Reason
from claimctl.wire.base import decode
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.resources import RESOURCECLAIMS
from claimctl.wire.seams import Transport
from claimctl_demo.documents import DocumentClient
from claimctl_witness.witness import Witness
from claimctl_witness.world import World
from tests.e2e.habits import EmbeddedDriver, SiteDriver
from tests.support.drivers import Drivers

Object = dict[str, Any]
NAMESPACE = "team"
CONTROLLER_NAMESPACE = "claimctl-system"
PEOPLE = "kubernetes-admin"
"""The user of those who administer a cluster."""
CONTROLLER_USER = f"system:serviceaccount:{CONTROLLER_NAMESPACE}:claimctl-controller"
CONTROLLER_GROUPS = ("system:serviceaccounts", f"system:serviceaccounts:{CONTROLLER_NAMESPACE}")
_DOWN_SECONDS = 4.0
_LOOK_SECONDS, _LONGEST_WAIT = 0.05, 1.0
SCHEDULER, KCM, KUBELET = "scheduler", "resourceclaim-controller", "kubelet"
"""The components that scenarios pause; of kube-controller-manager only the claim controller."""


class Site(Protocol):
    """An embedded cluster, or a scenario's part of a real one."""

    settings: dict[str, Any]
    """Settings that a controller needs here in addition to the scenario's."""
    patience: float
    """Factor by which everything may take longer than on an embedded cluster."""
    excused: set[str]
    """The rules of the witness of devices that the scenario breaks on purpose."""

    @property
    def dialect(self) -> Preset:
        """The dialect of the scenario."""
        ...

    @property
    def account(self) -> str:
        """The user of the controllers."""
        ...

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the scenario's nodes."""
        ...

    @property
    def fleet(self) -> Fleet:
        """The scenario's nodes with their devices."""
        ...

    async def look_again(self) -> None:
        """Let time pass until it is worth while to check a condition again."""
        ...

    def connection(self, user: str) -> Transport:
        """A connection of the controller (``CONTROLLER_USER``) or of an administrator."""
        ...

    @property
    def driver(self) -> SiteDriver:
        """The driver of the nodes' own devices, with its habits."""
        ...

    def drivers(self, name: str = "") -> Drivers:
        """What the driver of the nodes' own devices writes, or a further one with other devices."""
        ...

    async def force_delete(self, pod: str) -> None:
        """Delete a pod with grace period 0: its object goes, while its containers may run."""
        ...

    async def patch_node(self, node: str, patch: Object, subresource: str = "") -> None: ...

    async def delete_node(self, node: str) -> None: ...

    async def lose(self, node: str) -> None:
        """Cut a node off: its containers run on, and its kubelet sends nothing."""
        ...

    async def switch_off(self, node: str) -> None:
        """Switch a node off for good: nothing is heard of it any more."""
        ...

    async def reboot(self, node: str) -> None:
        """Boot a node under a new boot ID; its containers are gone."""
        ...

    async def pause(self, component: str) -> None:
        """Stop a component from acting, as if it were down."""
        ...

    async def resume(self, component: str) -> None: ...

    async def set_lag(self, seconds: float) -> None:
        """Make the scheduler lag by about ``seconds``; 0 ends that."""
        ...

    async def restart_api_server(self) -> None:
        """Kill the API server and start it again; returns when it answers."""
        ...

    async def back_up(self) -> None:
        """Make a backup of etcd."""
        ...

    async def restore(self) -> None:
        """Stop all servers, restore the last backup, and start them; returns when they answer."""
        ...

    async def history(self, since: int = 0) -> Iterable[Revision]:
        """Every write to the scenario's objects after a revision, oldest first."""
        ...

    async def device_faults(self) -> Sequence[Any]:
        """What the witness of devices has found, and what else nodes must not do."""
        ...


def accused(
    history: Iterable[Revision],
    users: frozenset[str],
    grace: float = 0.0,
    one_pod_drivers: frozenset[str] = frozenset(),
) -> list[Any]:
    """The violations by claimctl's users that the witness finds in a history.

    Args:
        one_pod_drivers: those that want one pod; those that are taken for such are added.
    """
    history = list(history)
    late = one_pod_drivers | taken_for_one_pod_drivers(history)
    witness, world = Witness(users, grace, one_pod_drivers=late), World()
    world.listen(witness.notice)
    world.read(history)
    return witness.violations


def taken_for_one_pod_drivers(history: Iterable[Revision]) -> frozenset[str]:
    """The drivers of which claimctl has recorded that they refuse a claim with a hold. A pod that
    does not start for another reason, such as a lost node, looks the same."""
    drivers: dict[tuple[str, str], set[str]] = {}
    taken = set[str]()
    for revision in history:
        if revision.plural == "resourceclaims" and revision.group == RESOURCECLAIMS.group:
            claim = decode(revision.data, ResourceClaim)
            known = drivers.setdefault((revision.namespace, revision.name), set())
            known |= {device.driver for device in claim.devices}
        elif revision.plural == "claimreservations" and _REFUSES in revision.data:
            claim_name = revision.object()["spec"]["resourceClaimName"]
            taken |= drivers.get((revision.namespace, claim_name), set())
    return frozenset(taken)


_REFUSES = f'"reason":"{Reason.DRIVER_REFUSES_HOLD}"'.encode()


class EmbeddedSite:
    """A whole embedded cluster."""

    patience = 1.0
    account = CONTROLLER_USER

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.settings: dict[str, Any] = {}
        self.excused: set[str] = set()
        self.dialect = cluster.options.preset
        self._backup = 0
        self._written = asyncio.Event()
        cluster.store.subscribe(lambda revision: self._written.set())
        options = cluster.options
        self.fleet = Fleet(
            options.kubernetes_version,
            options.nodes,
            options.devices_per_node,
            driver=options.driver,
            device_class=options.device_class,
        )
        self.nodes = self.fleet.names

    async def look_again(self) -> None:
        """A moment after a write, when others have seen it.

        Without one after a while, since a condition may be about a process, too.
        """
        began = asyncio.get_running_loop().time()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LONGEST_WAIT):
                await self._written.wait()
        waited = asyncio.get_running_loop().time() - began
        await asyncio.sleep(_LOOK_SECONDS - waited % _LOOK_SECONDS)
        self._written.clear()

    def connection(self, user: str) -> Transport:
        if user == CONTROLLER_USER:
            return self._cluster.transport(user, CONTROLLER_GROUPS)
        return self._cluster.transport(user, ("system:masters",))

    @property
    def driver(self) -> SiteDriver:
        return EmbeddedDriver(self._cluster.driver(self.fleet.driver))

    def drivers(self, name: str = "") -> Drivers:
        client = DocumentClient(self._cluster.transport(), "driver")
        driver = self._cluster.options.driver
        return Drivers(client, NAMESPACE, f"{name}.{driver}" if name else driver)

    async def force_delete(self, pod: str) -> None:
        self._cluster.force_delete(NAMESPACE, pod)

    async def patch_node(self, node: str, patch: Object, subresource: str = "") -> None:
        self._cluster.admin.patch("nodes", "", node, patch, subresource)

    async def delete_node(self, node: str) -> None:
        self._cluster.admin.delete("nodes", "", node)

    async def lose(self, node: str) -> None:
        self._cluster.lose_node(node)

    async def switch_off(self, node: str) -> None:
        self._cluster.switch_off_node(node)

    async def reboot(self, node: str) -> None:
        self._cluster.reboot_node(node)

    async def pause(self, component: str) -> None:
        self._cluster.pause(component)

    async def resume(self, component: str) -> None:
        self._cluster.resume(component)

    async def set_lag(self, seconds: float) -> None:
        self._cluster.set_lag(seconds)

    async def restart_api_server(self) -> None:
        """The server gives no answer for a while. Then it watches from no older version."""
        async with self._down():
            self._cluster.store.begin()

    async def back_up(self) -> None:
        self._backup = self._cluster.store.revision

    async def restore(self) -> None:
        async with self._down():
            self._cluster.store.restore(self._backup)

    @asynccontextmanager
    async def _down(self) -> AsyncIterator[None]:
        self._cluster.handler.fault = lambda point: Fault(drop=True)
        await asyncio.sleep(_DOWN_SECONDS)
        yield
        self._cluster.handler.fault = None

    async def history(self, since: int = 0) -> Iterable[Revision]:
        return self._cluster.history(since)

    async def device_faults(self) -> Sequence[Any]:
        return judge_cluster(self._cluster)
