"""A whole cluster in one process: the API server's core and the emulated components around it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from kube_in_process import manifests
from kube_in_process.api_server import handler_of
from kube_in_process.components import own_service
from kube_in_process.components.controllers.account_tokens import TokenController
from kube_in_process.components.controllers.claims import ClaimController
from kube_in_process.components.controllers.cronjobs.controller import CronJobController
from kube_in_process.components.controllers.daemonsets.controller import DaemonSetController
from kube_in_process.components.controllers.deployments.controller import DeploymentController
from kube_in_process.components.controllers.device_taints import DeviceTaintController
from kube_in_process.components.controllers.disruption import DisruptionController
from kube_in_process.components.controllers.endpoints.controller import (
    EndpointsController,
    EndpointSliceController,
    MirroringController,
)
from kube_in_process.components.controllers.garbage import GarbageCollector
from kube_in_process.components.controllers.jobs.controller import JobController
from kube_in_process.components.controllers.namespaces import NamespaceController
from kube_in_process.components.controllers.podgroups import PodGroupController
from kube_in_process.components.controllers.replicasets import (
    ReplicaSetController,
    ReplicationControllerController,
)
from kube_in_process.components.controllers.role_aggregation import RoleAggregationController
from kube_in_process.components.controllers.statefulsets.controller import StatefulSetController
from kube_in_process.components.controllers.taints import TaintController
from kube_in_process.components.controllers.volumes.binder import VolumeBinder
from kube_in_process.components.controllers.volumes.protection import (
    ClaimProtection,
    EphemeralVolumes,
    VolumeProtection,
)
from kube_in_process.components.controllers.volumes.provisioner import VolumeProvisioner
from kube_in_process.components.drivers.driver import Driver, Drivers
from kube_in_process.components.kubelet.kubelet import Kubelet
from kube_in_process.components.kubelet.nodes import NodeController
from kube_in_process.components.recorder import EventRecorder
from kube_in_process.components.scheduler.scheduler import Scheduler
from kube_in_process.components.volumes import PROVISIONER
from kube_in_process.kinds.volume_admission import DEFAULT_CLASS
from kube_in_process.objects import Object
from kube_in_process.options import Authorization, ClusterOptions, Features
from kube_in_process.runtime.component import Component, Context, Pauses
from kube_in_process.runtime.local import ApiFor, FaultHook
from kube_in_process.runtime.views import Feed
from kube_in_process.seams import Clock, Transport
from kube_in_process.storage.requests import MASTERS, Actor, DeleteOptions
from kube_in_process.storage.store import Revision, Store
from kube_in_process.verbs.api import Api

_PRIORITY_CLASSES: tuple[Object, ...] = (
    {
        "metadata": {"name": "system-cluster-critical"},
        "value": 2_000_000_000,
        "description": "Used for system critical pods that must run in the cluster, but can be "
        "moved to another node if necessary.",
    },
    {
        "metadata": {"name": "system-node-critical"},
        "value": 2_000_001_000,
        "description": "Used for system critical pods that must not be moved from their current "
        "node.",
    },
)
"""The priority classes that every API server creates."""

SYSTEM_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


class Cluster:
    """An embedded cluster. ``await start()`` in a running event loop, ``await stop()`` at the end.

    The options (with their seed), ``clock``, the clock of the event loop, and the requests decide
    everything that happens. So a run can be repeated.
    """

    def __init__(self, options: ClusterOptions, clock: Clock) -> None:
        self.options = options
        self.clock = clock
        self.store = Store(clock.monotonic, options.history_limit)
        features = self._with_accounts(options.features())
        self.api = Api(self.store, clock, features, Random(options.seed))
        self.handler = handler_of(self.api, options.authorization)
        administrator = Actor("kubernetes-admin", (MASTERS,), "embedded")
        # whoever calls it cannot wait for webhooks
        self.admin = ApiFor(self.api, administrator, webhooks=False)
        self._feed = Feed(self.store)
        self._context = Context(
            api=self.api,
            options=options,
            features=features,
            clock=clock,
            feed=self._feed,
            views=self._feed.views(),
            rng=Random(options.seed + 1),
        )
        recorder = EventRecorder(self._context)
        self._context.events = recorder
        self.kubelet = Kubelet(self._context)
        self.scheduler = Scheduler(self._context)
        self.claims = ClaimController(self._context)
        self.nodes = NodeController(self._context, self.kubelet)
        self._components: dict[str, Component[Any]] = {
            component.name: component
            for component in (
                DisruptionController(self._context),
                DeploymentController(self._context),
                ReplicaSetController(self._context),
                StatefulSetController(self._context),
                DaemonSetController(self._context),
                JobController(self._context),
                CronJobController(self._context),
                ReplicationControllerController(self._context),
                EndpointsController(self._context),
                EndpointSliceController(self._context),
                MirroringController(self._context),
                VolumeBinder(self._context),
                VolumeProvisioner(self._context),
                ClaimProtection(self._context),
                VolumeProtection(self._context),
                EphemeralVolumes(self._context),
                TokenController(self._context),
                self.scheduler,
                self.claims,
                self.kubelet,
                self.nodes,
                self.nodes.heartbeats,
                TaintController(self._context),
                DeviceTaintController(self._context),
                PodGroupController(self._context),
                GarbageCollector(self._context),
                NamespaceController(self._context),
                RoleAggregationController(self._context),
                recorder,
            )
        }
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._paused: dict[str, None] = {}

    def _with_accounts(self, features: Features) -> Features:
        wanted = self.options.service_accounts
        if wanted is None:
            wanted = self.options.authorization is Authorization.RBAC
        return replace(features, service_accounts=wanted)

    @property
    def features(self) -> Features:
        return self._context.features

    @property
    def failures(self) -> list[Exception]:
        """Errors of components other than refusals of the API server; there should be none."""
        return self._context.failures

    @property
    def components(self) -> tuple[str, ...]:
        """The names of the components, for ``pause`` and ``resume``."""
        return tuple(self._components)

    # Start and stop

    async def start(self) -> None:
        """Create the namespaces and nodes, and start the components.

        Raises:
            OSError, ValueError, NotApplied: a folder of ``crd_folders``, or a file in it, is wrong.
        """
        for namespace in SYSTEM_NAMESPACES:
            if self.admin.find("namespaces", "", namespace) is None:
                self._make_namespace(namespace)
        for priority_class in _PRIORITY_CLASSES:
            if self.admin.find("priorityclasses", "", priority_class["metadata"]["name"]) is None:
                self.admin.create("priorityclasses", priority_class)
        own_service.make(self.admin)
        if self.options.default_storage_class:
            self._make_storage_class()
        for folder in self.options.crd_folders:
            await manifests.apply(self.handler, manifests.definitions_in(Path(folder)))
        for component in self._components.values():
            component.start()
        for name in self._components:
            if name not in self._paused:
                self._run(name)

    async def stop(self) -> None:
        """Stop the components and their tasks."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        await _ended(tasks)
        for component in self._components.values():
            component.queue.close()
        self._feed.close()

    def pause(self, name: str) -> None:
        """Stop a component for now, as if it were down."""
        self._paused[name] = None
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()

    def resume(self, name: str) -> None:
        """Start a paused component again; it catches up."""
        self._paused.pop(name, None)
        if name not in self._tasks:
            self._components[name].resumed()
            self._run(name)

    def _run(self, name: str) -> None:
        self._tasks[name] = asyncio.create_task(self._components[name].run(), name=name)

    def _make_storage_class(self) -> None:
        metadata = {"name": "standard", "annotations": {DEFAULT_CLASS: "true"}}
        if self.admin.find("storageclasses", "", "standard") is None:
            body = {"metadata": metadata, "provisioner": PROVISIONER}
            self.admin.create("storageclasses", body)

    def _make_namespace(self, name: str) -> None:
        self.admin.create("namespaces", {"metadata": {"name": name}})

    # Drivers of devices

    @property
    def drivers(self) -> Drivers:
        """The DRA drivers by name, each with the calls of the kubelets: ``drivers[NAME].calls``."""
        return self.kubelet.drivers

    def driver(self, name: str) -> Driver:
        """The DRA driver of a name, on all nodes. It can be given habits."""
        return self.kubelet.drivers[name]

    # For clients

    def transport(
        self, user: str = "kubernetes-admin", groups: tuple[str, ...] = (MASTERS,)
    ) -> Transport:
        """A transport for requests of one user, without a network."""
        return self.handler.transport(Actor(user, (*groups, "system:authenticated")))

    async def apply(self, source: Path | str) -> list[Object]:
        """Apply the objects of a file, of a folder or of a text, as ``kubectl apply`` does.

        A text has more than one line; anything else is a path.

        Raises:
            NotApplied: an object was refused. Those before it stay.
            OSError, ValueError: the file cannot be read, or has something else.
        """
        return await manifests.apply(self.handler, manifests.read_objects(source))

    def subscribe(self, callback: Callable[[Revision], None]) -> None:
        """Call ``callback`` with every revision from now on."""
        self.store.subscribe(callback)

    async def caught_up(self) -> None:
        """Wait until the history is complete. It always is, unlike one that is read remotely."""

    def history(self, since: int = 0) -> Iterator[Revision]:
        """Every write after a revision, oldest first."""
        return self.store.history(since)

    # Disturbances

    def switch(self, features: Features) -> None:
        """Change feature gates at run time, for all components."""
        features = self._with_accounts(features)
        self._context.features = features
        self.api.switch(features)
        self.scheduler.retry_waiting()
        self.kubelet.retry_waiting()

    def fault_requests(self, fault: FaultHook | None) -> None:
        """Call ``fault`` before every request of a client."""
        self.handler.fault = fault

    def fault_components(self, fault: FaultHook | None) -> None:
        """Call ``fault`` before every request of a component."""
        self._context.fault = fault

    def set_lag(self, seconds: float, plural: str = "") -> None:
        """Delay what the scheduler sees (of all kinds, or of one) by ``seconds`` from now on."""
        self.scheduler.views.set_lag(seconds, plural)

    def slow_scheduler(self, pauses: Pauses | None) -> None:
        """Delay the scheduler: for each pod, between its decision and its writes."""
        self._context.pauses = pauses

    def join_unprepares(self, *, joins: bool = True) -> None:
        """Give all kubelets a fault of those before 1.37 (kubernetes#140527), or take it away.

        A pod that comes while its claim is being unprepared for the last other one starts at once,
        and then its devices are unprepared.
        """
        self.kubelet.join_unprepares(joins=joins)

    def lose_node(self, node: str) -> None:
        """Cut a node off: its containers may go on running, and its kubelet reports nothing."""
        self.nodes.lose(node)

    def switch_off_node(self, node: str) -> None:
        """Switch a node off: its containers are gone, and nothing is heard of it."""
        self.nodes.lose(node)
        self.kubelet.die(node)

    def restore_node(self, node: str) -> None:
        """Connect a lost node again. Its containers and its kubelet went on running."""
        self.nodes.restore(node, rebooted=False)

    def restart_kubelet(self, node: str, seconds: float = 1.0) -> None:
        """End the kubelet of a node, and start it again after some seconds.

        Its containers run on, and nobody calls drivers meanwhile. After the start, the slices of
        the node are gone for 13 s, and claims that are prepared for pods that have vanished are
        found up to a minute later.
        """
        self.nodes.restart_kubelet(node, seconds)

    def reboot_node(self, node: str) -> None:
        """Reboot a node: it has a new boot ID, and its containers are gone."""
        self.nodes.restore(node, rebooted=True)

    def cordon(self, node: str, *, unschedulable: bool = True) -> None:
        """Set or clear ``spec.unschedulable`` of a node."""
        patch = {"spec": {"unschedulable": True if unschedulable else None}}
        self.admin.patch("nodes", "", node, patch)

    def force_delete(self, namespace: str, pod: str) -> None:
        """Delete a pod with grace period 0. Its containers may go on running."""
        self.admin.delete("pods", namespace, pod, DeleteOptions(grace_period_seconds=0))


async def _ended(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
