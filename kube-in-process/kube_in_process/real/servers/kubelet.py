"""A stand-in for the kubelets of a fleet: it admits, starts and stops pods, and reports findings.

As a kubelet does, the stand-in reads every claim live before it starts a pod. It refuses a pod if
the claim is not allocated or does not list the pod. It also watches claims, and reports a finding
if a claim loses its allocation while a pod runs on it. It shares no code with claimctl's decisions.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from kube_in_process.components.objects import key_of, name, uid
from kube_in_process.components.pods import allocation_of, claims_used, node_name
from kube_in_process.real.client import Document, DocumentClient
from kube_in_process.real.servers.driver import StandInDriver
from kube_in_process.real.servers.following import Follower
from kube_in_process.real.servers.nodes import Fleet, join, report
from kube_in_process.real.servers.pod_worker import POD, Finding, Host, Pace, PodWorker
from kube_in_process.real.servers.resizing import Resizer
from kube_in_process.seams import Transport

_AT_A_TIME = 16
"""The greatest number of concurrent requests."""


@dataclass(slots=True)
class Kubelets:
    """The kubelets of all nodes of a fleet.

    Attributes:
        namespace: if set, only the pods of this namespace are played, on any node.
        pod_groups: whether a listed PodGroup admits the pods that name it (a feature gate of the
            kubelet).
        findings: events that must not happen.
        refused: by ``namespace/pod``, why the last attempt to start the pod failed.
    """

    transport: Transport
    fleet: Fleet
    pod_groups: bool = False
    namespace: str = ""
    pace: Pace = field(default_factory=Pace)
    findings: list[Finding] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    _pods: dict[str, PodWorker] = field(default_factory=dict)
    _lost: set[str] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    client: DocumentClient = field(init=False)
    driver: StandInDriver = field(init=False)
    """The driver of the fleet's devices, with its habits."""
    _host: Host = field(init=False)
    _resizer: Resizer = field(init=False)

    def __post_init__(self) -> None:
        self.client = DocumentClient(self.transport, "kubelet")
        self.driver = StandInDriver(self.client, self.fleet)
        self._host = Host(
            client=self.client,
            claims=self.fleet.claims,
            slots=asyncio.Semaphore(_AT_A_TIME),
            pace=self.pace,
            pod_groups=self.pod_groups,
            lost=self._lost,
            findings=self.findings,
            refused=self.refused,
            driver=self.driver,
        )
        self._resizer = Resizer(self._host, self._on, self._keep)

    async def run(self, joined: asyncio.Event | None = None) -> None:
        """Register the nodes, then play their kubelets until cancelled.

        If it runs again, it looks at the pods anew, as kubelets that are restarted.

        Args:
            joined: set as soon as all nodes are registered.
        """
        self._pods.clear()
        await join(self.client, self.fleet)
        if joined is not None:
            joined.set()
        pods = Follower(self.transport, POD, self._pod_changed, self.namespace)
        claims = Follower(self.transport, self.fleet.claims, self._claim_changed, self.namespace)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(pods.run())
                group.create_task(claims.run())
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def switch(self, *, pod_groups: bool) -> None:
        """Switch the kubelets' gate of PodGroups; running pods are not touched."""
        self.pod_groups = self._host.pod_groups = pod_groups

    def lose(self, node: str) -> None:
        """Cut the node off: its containers go on running, and its kubelet reports nothing."""
        self._lost.add(node)

    def in_touch(self) -> list[str]:
        """The nodes that are not cut off."""
        return [node for node in self.fleet.names if node not in self._lost]

    async def recover(self, node: str, *, rebooted: bool) -> None:
        """Connect the node again. After a reboot, it has a new boot ID and no containers."""
        if rebooted:
            self.fleet.boots[node] = self.fleet.boots.get(node, 0) + 1
            self.driver.boot(node)
        self._lost.discard(node)
        await report(self.client, self.fleet, node)
        for worker in self._on(node):
            worker.booted = rebooted and worker.runs
            worker.changed.set()

    def _on(self, node: str) -> list[PodWorker]:
        return [worker for worker in self._pods.values() if node_name(worker.pod) == node]

    # Changes of pods and claims

    def _pod_changed(self, change: str, pod: Document) -> None:
        node = node_name(pod)
        if not node or not (self.namespace or node in self.fleet.names):
            return
        worker = self._pods.get(uid(pod))
        if change == "DELETED":
            if worker is not None:
                worker.gone = True
                worker.take(pod)
                # a kubelet that is not cut off stops the containers
                if node_name(pod) not in self._lost:
                    self._forget(worker)
        elif worker is None:
            worker = self._pods[uid(pod)] = PodWorker(pod, self._host)
            self._begin(worker)
        else:
            worker.take(pod)
            self._resizer.look(worker, node)

    def _forget(self, worker: PodWorker) -> None:
        worker.runs = False
        self.driver.unprepare(worker.pod)
        self._pods.pop(uid(worker.pod), None)
        self.refused.pop("/".join(key_of(worker.pod)), None)

    def _claim_changed(self, change: str, claim: Document) -> None:
        if change != "DELETED" and allocation_of(claim) is not None:
            return
        key = "/".join(key_of(claim))
        for worker in self._pods.values():
            if worker.runs and not worker.gone and key in claims_used(worker.pod):
                worker.find("LostAllocation", key, "the claim lost its allocation")

    def _begin(self, worker: PodWorker) -> None:
        self._keep(asyncio.create_task(worker.run(), name=f"pod {name(worker.pod)}"))

    def _keep(self, task: asyncio.Task[None]) -> None:
        """Hold the task until it ends, or the stand-in does."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
