"""Plays scenarios on a real cluster in real time, each in its own part of the cluster."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from kube_in_process.options import Authorization, ClusterOptions, Preset
from kube_in_process.real.client import DocumentClient as RealClient
from kube_in_process.real.nodes.cluster import NODE_PREFIX, NodeCluster
from kube_in_process.real.servers.kubelet import Kubelets
from kube_in_process.real.servers.nodes import FLEET_LABEL, NODE, Fleet, leave
from kube_in_process.real.servers.pod_worker import Pace
from kube_in_process.storage.store import Revision

from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.connection import Connection, Credentials, StaticAuth
from claimctl.kube.errors import from_answer
from claimctl.kube.transport import HttpTransport
from claimctl.login.connect import load_connection
from claimctl.wire.base import Object
from claimctl.wire.reservations import DOWNGRADE_PLAN_NAME
from claimctl.wire.resources import PODGROUPS, RESOURCECLAIMS
from claimctl.wire.seams import Transport
from claimctl_demo.documents import DocumentClient
from claimctl_demo.story.presets import DIALECTS
from tests.e2e.authors import Authors, Signed
from tests.e2e.habits import SiteDriver
from tests.e2e.harness import Stage
from tests.e2e.machines import Machines, stand_ins
from tests.e2e.nodes.machines import node_machines
from tests.e2e.nodes.places import NodePlaces
from tests.e2e.places import SCENARIO, Rewritten, ScenarioPlaces, Scoped
from tests.e2e.refusals import ClaimsController
from tests.e2e.rights import ALL_RIGHTS, grant, permissions
from tests.e2e.servers import Servers
from tests.e2e.site import CONTROLLER_USER, KCM, KUBELET, SCHEDULER, accused
from tests.e2e.watched import History
from tests.support.drivers import Drivers

SCENARIO_SECONDS = 600.0
"""Seconds after which a scenario fails."""
_CLOSE_SECONDS = 0.3
_LEASE_SECONDS = 30
"""Longer than usual, since two dozen scenarios share the machine."""
_BINDING_SECONDS = 15.0
"""Enough here: the scheduler has few pods to bind and may send 500 requests a second."""
_PATIENCE = 4.0
_LOOK_SECONDS = 0.25
_POD = ("v1", "Pod")
_POD_MAKERS = (
    *(("apis/apps/v1", each) for each in ("deployments", "statefulsets", "replicasets")),
    ("apis/batch/v1", "jobs"),
)
_RULE = ("claimctl.io/v1alpha1", "WorkloadKind")
_PLAN = ("claimctl.io/v1alpha1", "DowngradePlan")


@dataclass(frozen=True, slots=True)
class RealCluster:
    """A cluster for scenarios."""

    kubeconfig: str
    version: tuple[int, int]
    dialect: Preset
    nodes: NodeCluster | None = None
    """Its real nodes; None if stand-ins play them."""
    servers: Servers | None = None
    """The servers, if only this scenario uses the cluster: it may pause and kill them."""
    keeps: bool = True
    """Whether objects of a scenario may stay, because the cluster is thrown away."""
    plays_hold: bool = True
    """Whether it plays scenarios of ``hold`` that it does not speak itself."""

    def can_play(self, options: ClusterOptions) -> bool:
        """Whether the cluster can play a scenario; one of ``hold`` can be played everywhere."""
        return options.preset is self.dialect or (
            options.preset is Preset.PLAIN and self.plays_hold
        )


@dataclass(slots=True)
class RealSite:
    """A scenario's part of a real cluster."""

    cluster: RealCluster
    places: ScenarioPlaces
    fleet: Fleet
    admin: Transport
    client: DocumentClient
    """A client with an administrator's rights."""
    controllers: Transport
    machines: Machines
    watched: History
    settings: dict[str, Any]
    dialect: Preset
    authors: Authors = field(default_factory=Authors)
    driven: dict[str, Drivers] = field(default_factory=dict)
    """By name: the drivers that the scenario has used."""
    patience: float = _PATIENCE
    excused: set[str] = field(default_factory=set)
    _lag: asyncio.Task[None] | None = None

    @property
    def account(self) -> str:
        return self.places.account

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.fleet.names

    @property
    def claims_controller(self) -> ClaimsController:
        return ClaimsController(self.admin, self.client, self.places.namespace, self.fleet.claims)

    async def look_again(self) -> None:
        await asyncio.sleep(_LOOK_SECONDS)

    def connection(self, user: str) -> Transport:
        ours = user == CONTROLLER_USER
        inner = self.controllers if ours else self.admin
        signed = Signed(inner, self.account if ours else user, self.authors)
        return Scoped(signed, self.places)

    @property
    def driver(self) -> SiteDriver:
        return self.machines.played

    def drivers(self, name: str = "") -> Drivers:
        own = self.fleet.driver
        found = Drivers(
            self.client,
            self.places.namespace,
            f"{name}.{own}" if name else own,
            self.fleet.resource_api,
            {FLEET_LABEL: self.places.prefix},
        )
        self.driven[found.name] = found
        return found

    async def force_delete(self, pod: str) -> None:
        await self.client.delete(_POD, self.places.namespace, pod, {"gracePeriodSeconds": 0})

    async def patch_node(self, node: str, patch: Object, subresource: str = "") -> None:
        shared = self.cluster.nodes is not None and self.cluster.servers is None
        assert not (shared and "spec" in patch), "it closes a node that other scenarios use"
        change = self.client.patch_status if subresource else self.client.patch
        await change(NODE, "", node, patch)

    async def delete_node(self, node: str) -> None:
        await self.client.delete(NODE, "", node)

    async def lose(self, node: str) -> None:
        await self.machines.lose(node)

    async def switch_off(self, node: str) -> None:
        await self.machines.switch_off(node)

    async def reboot(self, node: str) -> None:
        await self.machines.recover(node, rebooted=True)

    async def pause(self, component: str) -> None:
        if component == KUBELET:
            for node in self.nodes:
                await self.machines.lose(node)
        elif component == SCHEDULER:
            self._servers.scheduler.pause()
        elif component == KCM:
            await self.claims_controller.stop()

    async def resume(self, component: str) -> None:
        if component == KUBELET:
            for node in self.nodes:
                await self.machines.recover(node, rebooted=False)
        elif component == SCHEDULER:
            self._servers.scheduler.resume()
        elif component == KCM:
            await self.claims_controller.resume()

    async def set_lag(self, seconds: float) -> None:
        """Pause the scheduler for ``seconds``, again and again, so that it lags behind."""
        if self._lag is not None:
            self._lag.cancel()
            await asyncio.gather(self._lag, return_exceptions=True)
        self._lag = None
        if seconds:
            self._lag = asyncio.create_task(self._late(seconds), name="a late scheduler")

    async def restart_api_server(self) -> None:
        """Restart in this thread: a server ends with the thread that started it."""
        self._servers.restart_api_server()

    async def back_up(self) -> None:
        self._servers.back_up()

    async def restore(self) -> None:
        """The witness does not compare versions of before with later ones: they begin again."""
        self._servers.restore_backup()
        self.watched.forget()

    async def _late(self, seconds: float) -> None:
        scheduler = self._servers.scheduler
        try:
            while True:
                scheduler.pause()
                await asyncio.sleep(seconds)
                scheduler.resume()
                await asyncio.sleep(0.2)
        finally:
            scheduler.resume()

    async def history(self, since: int = 0) -> Iterable[Revision]:
        return await self.watched.since(since)

    async def device_faults(self) -> Sequence[Any]:
        return await self.machines.findings(self.watched)

    @property
    def _servers(self) -> Servers:
        if self.cluster.servers is None:
            raise AssertionError("mark the test 'alone': it needs a cluster for itself")
        return self.cluster.servers


@asynccontextmanager
async def real_stage(cluster: RealCluster, options: ClusterOptions) -> AsyncIterator[Stage]:
    """A stage on a real cluster. At its end, judge the writes and what the nodes saw."""
    async with _stage(cluster, options) as (stage, site):
        async with stage.controllers():
            yield stage
        await site.set_lag(0.0)
        history, driver = await site.history(), site.driver
        late = frozenset([driver.name] if driver.has("wants-one-pod") else [])
        found = [
            *accused(history, frozenset({site.account}), one_pod_drivers=late),
            *(x for x in await site.device_faults() if x.rule not in site.excused),
        ]
        # pytest does not explain the assertions of this module
        assert not found, "\n".join(str(each) for each in found)
    # TLS connections close a moment after their session.
    await asyncio.sleep(_CLOSE_SECONDS)


@asynccontextmanager
async def _stage(
    cluster: RealCluster, options: ClusterOptions
) -> AsyncIterator[tuple[Stage, RealSite]]:
    async with AsyncExitStack() as stack:
        connection = load_connection(cluster.kubeconfig)
        admin = await stack.enter_async_context(HttpTransport(connection))
        site = await _site(stack, cluster, options, connection, admin)
        stack.push_async_callback(_tidy, site)
        user = Rewritten(admin, site.places)
        clock = LoopClock()
        client = Client(user, clock, field_manager="kubectl")
        version = site.fleet.resource_api.partition("/")[2]
        client.use_version(RESOURCECLAIMS.group, version)
        if cluster.dialect is Preset.POD_GROUPS:
            groups = {(1, 36): "v1alpha2", (1, 37): "v1beta1"}.get(cluster.version, "v1")
            client.use_version(PODGROUPS.group, groups)
        stage = Stage(client, clock, lambda: site.connection(CONTROLLER_USER), site)
        if options.authorization is not Authorization.RBAC:
            await grant(stage, permissions(*ALL_RIGHTS), *ALL_RIGHTS)
        yield stage, site


async def _site(
    stack: AsyncExitStack,
    cluster: RealCluster,
    options: ClusterOptions,
    connection: Connection,
    admin: Transport,
) -> RealSite:
    documents = DocumentClient(admin, "e2e")
    places, fleet = _parts(cluster, options)
    await _make_room(documents, places)
    controllers = replace(connection, auth=await _account(admin, places))
    machines = await stack.enter_async_context(
        _machines(cluster, options, admin, places, fleet)
        if cluster.nodes is None
        else node_machines(
            cluster.nodes, documents, places, fleet, alone=cluster.servers is not None
        )
    )
    authors = Authors()
    watched = History(admin, places.namespace, fleet, authors)
    stack.push_async_callback(watched.stop)
    await watched.start()
    return RealSite(
        cluster,
        places,
        fleet,
        admin,
        documents,
        await stack.enter_async_context(HttpTransport(controllers)),
        machines,
        watched,
        _settings(cluster, options, places),
        options.preset,
        authors,
        # nodes play few scenarios at once
        patience=_PATIENCE if cluster.nodes is None else _PATIENCE / 2,
    )


def _parts(cluster: RealCluster, options: ClusterOptions) -> tuple[ScenarioPlaces, Fleet]:
    """The scenario's names, and its nodes with their devices."""
    suffix = secrets.token_hex(3)
    if cluster.nodes is None:
        places = ScenarioPlaces(suffix, cluster.version < (1, 33))
        count, prefix = options.nodes, places.prefix
    else:
        count, prefix = min(options.nodes, cluster.nodes.count), NODE_PREFIX
        job, node = options.timings.job_pod_run, f"{prefix}-0" if count == 1 else ""
        places = NodePlaces(suffix, job_seconds=job, only_node=node)
    own = places.device_class
    devices = options.devices_per_node
    fleet = Fleet(cluster.version, count, devices, prefix=prefix, driver=own, device_class=own)
    return places, fleet


def _machines(
    cluster: RealCluster,
    options: ClusterOptions,
    admin: Transport,
    places: ScenarioPlaces,
    fleet: Fleet,
) -> AbstractAsyncContextManager[Machines]:
    times = options.timings
    pace = Pace(start=times.pod_start, stop=times.pod_stop, job=times.job_pod_run)
    groups = cluster.dialect is Preset.POD_GROUPS
    kubelets = Kubelets(admin, fleet, groups, places.namespace, pace)
    return stand_ins(kubelets, beating=not cluster.keeps)


def _settings(
    cluster: RealCluster, options: ClusterOptions, places: ScenarioPlaces
) -> dict[str, Any]:
    """The controller's settings; ``--reservation-mode hold`` if the scenario needs no PodGroups."""
    told = {} if options.preset is cluster.dialect else {"dialect": DIALECTS[options.preset]}
    common = {
        "lease_namespace": places.controllers,
        "lease_seconds": _LEASE_SECONDS,
        "binding_seconds": _BINDING_SECONDS,
    }
    return {**common, **told}


async def _make_room(documents: DocumentClient, places: ScenarioPlaces) -> None:
    for name in (places.namespace, places.controllers):
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await documents.create(body)
    meta = {"name": "claimctl-controller", "namespace": places.controllers}
    await documents.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})


async def _account(admin: Transport, places: ScenarioPlaces) -> StaticAuth:
    """The token of the controllers' ServiceAccount, by TokenRequest."""
    path = f"/api/v1/namespaces/{places.controllers}/serviceaccounts/claimctl-controller/token"
    body = json.dumps({"spec": {"expirationSeconds": 7200}}).encode()
    answer = await admin.send("POST", path, (), {"content-type": "application/json"}, body)
    text = b"".join([part async for part in answer.body])
    if answer.status != 201:
        raise from_answer("POST", path, answer.status, {}, text)
    return StaticAuth(Credentials(f"Bearer {json.loads(text)['status']['token']}"))


async def _dismiss(site: RealSite) -> None:
    """Delete workloads: the scheduler would retry their pending pods for ever.

    The scheduler of 1.36 asks 100 times a second for a missing PodGroup.
    """
    namespace = site.places.namespace
    options = json.dumps({"propagationPolicy": "Background"}).encode()
    for group, plural in _POD_MAKERS:
        path = f"/{group}/namespaces/{namespace}/{plural}"
        headers = {"content-type": "application/json"}
        answer = await site.admin.send("DELETE", path, (), headers, options)
        await answer.close()


async def _tidy(site: RealSite) -> None:
    """Resume the servers and delete the scenario's objects, without waiting for the end."""
    await site.set_lag(0.0)
    for drivers in site.driven.values():
        await drivers.leave()
    if site.cluster.servers is not None:
        site.cluster.servers.restore()
        await site.client.delete(_PLAN, "", DOWNGRADE_PLAN_NAME)
    if site.cluster.keeps:
        await _dismiss(site)
        return
    for name in (site.places.namespace, site.places.controllers):
        await site.client.delete(("v1", "Namespace"), "", name)
    for kind in ("ClusterRole", "ClusterRoleBinding"):
        version = ("rbac.authorization.k8s.io/v1", kind)
        for each in await site.client.list(version):
            if each["metadata"]["name"].endswith(site.places.suffix):
                await site.client.delete(version, "", each["metadata"]["name"])
    for each in await site.client.list(_RULE):
        if (each["metadata"].get("labels") or {}).get(SCENARIO) == site.places.suffix:
            await site.client.delete(_RULE, "", each["metadata"]["name"])
    await leave(RealClient(site.admin, "e2e"), site.fleet)
