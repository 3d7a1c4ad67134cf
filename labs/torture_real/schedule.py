"""One schedule: the actions that a seed draws for one namespace, and the verdict on it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from random import Random

from kube_in_process.real.servers.kubelet import Kubelets
from kube_in_process.real.servers.nodes import Fleet, leave
from kube_in_process.real.servers.pod_worker import Pace

from claimctl_demo.documents import DocumentClient
from labs.torture.bodies import Bodies
from labs.torture.final_checks import FinalChecks
from labs.torture.place import TROUBLE
from labs.torture.stored import Line, log_lines
from labs.torture.user_actions import UserActions
from labs.torture_real.again import keep
from labs.torture_real.cluster import SharedCluster
from labs.torture_real.judge import RealVerdict, judge
from labs.torture_real.place import PATIENCE, RealPlace

PAUSES = (0.0, 0.1, 0.5, 1.5, 4.0, 8.0)
"""Seconds between two actions."""
GRACE = 12
"""forceDeletedPodGraceSeconds of the ClaimReservations."""
NODES, DEVICES = 2, 3
BINDING_SHARE, BINDING_SINCE = 0.4, (1, 36)
"""The share of schedules in which pods wait for reports of a driver before they are bound, and the
first version on which they do."""
BY_FORCE = 0.5
"""The share of schedules at whose end all pods are force-deleted."""


class RealSchedule:
    """One namespace with its own nodes, from begin to end."""

    def __init__(self, cluster: SharedCluster, seed: int) -> None:
        self.seed = seed
        self._cluster = cluster
        transport = cluster.transport
        self._rng = Random(seed)
        name = f"torture-{seed}"
        self.verdict = RealVerdict(f"SEED={seed}", accused=cluster.accused)
        fleet = Fleet(
            version=cluster.plane.programs.version,
            count=NODES,
            devices=DEVICES,
            prefix=f"{name}-node",
            driver=f"{name}.example.com",
            device_class=f"{name}.example.com",
        )
        self._kubelets = Kubelets(
            transport, fleet, pod_groups=cluster.pod_groups, pace=Pace(), namespace=name
        )
        client = DocumentClient(transport, "people")
        self._place = RealPlace(
            client=client,
            bodies=Bodies(name, fleet, GRACE),
            pod_groups=cluster.pod_groups,
            patience=PATIENCE,
            cluster=cluster,
            kubelets=self._kubelets,
        )
        self._users = UserActions(self._place, self._rng)
        self._waits = Random(f"binding {seed}").random() < BINDING_SHARE
        self._tasks: list[asyncio.Task[None]] = []
        self._playing: asyncio.Task[None] | None = None
        self._began = 0
        self._concluded = False

    @property
    def actions(self) -> int:
        return self._users.done

    async def begin(self) -> None:
        """Create the namespace, its nodes and its first objects. There are no faults yet."""
        self._began = self._cluster.sight.number
        meta = {"name": self._place.namespace}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
        await self._place.client.create(body)
        await self._start_kubelets()
        if self._cluster.plane.programs.version >= BINDING_SINCE and self._waits:
            await self._place.bind_devices(Random(f"driver {self._place.namespace}"))
        await self._users.attempt(self._users.begin)

    async def _start_kubelets(self) -> None:
        joined = asyncio.Event()
        name = f"kubelets {self._place.namespace}"
        self._playing = asyncio.create_task(self._kubelets.run(joined), name=name)
        self._tasks.append(self._playing)
        waiting = asyncio.create_task(joined.wait())
        await asyncio.wait({waiting, self._playing}, return_when=asyncio.FIRST_COMPLETED)
        if not joined.is_set():
            waiting.cancel()
            self._playing.result()

    async def restart_kubelets(self) -> None:
        """Let the kubelets look at the pods anew."""
        if self._playing is not None:
            self._playing.cancel()
            await asyncio.gather(self._playing, return_exceptions=True)
            await self._start_kubelets()

    async def play(self) -> None:
        """Do one action after another until cancelled."""
        while True:
            await asyncio.sleep(self._rng.choice(PAUSES))
            await self._users.act()

    async def conclude(self) -> None:
        """Play the end of the schedule, after the faults have stopped."""
        by_force = Random(f"end {self.seed}").random() < BY_FORCE
        await FinalChecks(self._place, self.verdict, by_force).conclude()
        self._concluded = True

    def judge(self, disturbances: Iterable[Line]) -> None:
        """Let the witness judge the history so far."""
        name = self._place.namespace
        history = [
            revision
            for revision in self._cluster.history.revisions
            if revision.number > self._began and self._concerns(revision.namespace, revision.name)
        ]
        findings, whole = self._kubelets.findings, self._concluded
        judge(self.verdict, history, findings, whole=whole)
        if not self.verdict.good:
            # The servers' logs are deleted after the run unless they are kept.
            keep(self._cluster.plane.directory, name, history, findings, whole=whole)
        self.verdict.log += [f"the history of {name}:"]
        self.verdict.log += log_lines(history, self._users.log, disturbances)

    def _concerns(self, namespace: str, name: str) -> bool:
        """Whether an object belongs to the schedule: its namespace, its nodes, and shared
        objects."""
        own = self._place.namespace
        if namespace:
            return namespace == own
        return not name.startswith("torture-") or name.startswith((f"{own}-node", own))

    async def end(self) -> None:
        """Stop the kubelets and the driver, and delete the nodes."""
        tasks = [*self._tasks, *filter(None, [self._place.driving])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(*TROUBLE):
            await leave(self._kubelets.client, self._place.bodies.fleet)
