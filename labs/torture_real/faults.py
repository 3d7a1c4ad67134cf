"""Faults: kills, stops and pauses processes at random, and compacts etcd."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random

from kube_in_process.real.client import Version
from kube_in_process.real.servers.process import ServerProcess
from kube_in_process.real.servers.programs import (
    API_SERVER,
    CONTROLLER_MANAGER,
    SCHEDULER,
    CannotStart,
)

from claimctl_demo.documents import DocumentClient
from labs.torture.place import TROUBLE
from labs.torture_real.cluster import SharedCluster
from labs.torture_real.controllers import Controllers

PAUSES = (2.0, 4.0, 7.0)
"""Seconds between two faults; their effects may last longer."""
AWAY = (0.0, 1.0, 3.0, 8.0, 14.0)
"""Seconds for which a server is down. A controller gives its Lease up after 10."""
ASLEEP = (0.5, 2.0, 6.0, 12.0)
SCHEDULER_ASLEEP = (0.5, 2.0, 6.0, 9.0)
"""Seconds for which the scheduler is paused: longer than the settle time, shorter than
``--binding-seconds``. A slower scheduler may strand pods, see docs/safety.md."""
BACKUP_AGES = (3.0, 8.0, 20.0)
"""The age of a backup that is restored, in seconds."""
_CAUGHT_UP = 3.0
"""Seconds in which all watches show the state of a backup, before it is made."""
_SERVERS = frozenset({API_SERVER, CONTROLLER_MANAGER, SCHEDULER})
PLAN: Version = ("claimctl.io/v1alpha1", "DowngradePlan")
_READY_SECONDS = 60.0
Fault = Callable[[], Awaitable[None]]


@dataclass
class RealFaults:
    """Causes faults until it is cancelled; ``calm`` repairs everything afterwards."""

    cluster: SharedCluster
    controllers: Controllers
    rng: Random
    client: DocumentClient
    counts: Counter[str] = field(default_factory=Counter)
    log: list[tuple[float, str]] = field(default_factory=list)
    """Time (seconds of the wall clock) and text of each fault."""
    elect: bool = False
    """Whether the controllers have a Lease, by which they notice a restore. Others are restarted,
    as Kubernetes asks for all components."""
    restored: Callable[[], Awaitable[None]] | None = None
    """Called when etcd has been restored and the servers run again."""
    _restoring: bool = False
    _down: set[str] = field(default_factory=set)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def run(self) -> None:
        """Cause one fault after another; some overlap."""
        while True:
            await asyncio.sleep(self.rng.choice(PAUSES))
            self._strike()

    def _strike(self) -> None:
        faults: list[tuple[str, Fault]] = [
            *[("claimctl killed", self._kill_claimctl)] * 4,
            ("claimctl stopped", self._stop_claimctl),
            *[("claimctl paused", self._pause_claimctl)] * 2,
            *[(f"{API_SERVER} killed", self._kill(API_SERVER))] * 2,
            (f"{API_SERVER} stopped", self._stop(API_SERVER)),
            (f"{API_SERVER} paused", self._pause(API_SERVER, ASLEEP)),
            *[(f"{CONTROLLER_MANAGER} killed", self._kill(CONTROLLER_MANAGER))] * 2,
            (f"{CONTROLLER_MANAGER} stopped", self._stop(CONTROLLER_MANAGER)),
            (f"{CONTROLLER_MANAGER} paused", self._pause(CONTROLLER_MANAGER, ASLEEP)),
            *[(f"{SCHEDULER} killed", self._kill(SCHEDULER))] * 2,
            (f"{SCHEDULER} stopped", self._stop(SCHEDULER)),
            (f"{SCHEDULER} paused", self._pause(SCHEDULER, SCHEDULER_ASLEEP)),
            *[("etcd compacted", self._compact)] * 2,
            *[("etcd restored", self._restore)] * 2,
            ("downgrade plan set and removed", self._freeze),
        ]
        name, fault = self.rng.choice(faults)
        victim = name.split()[0]
        if victim in self._down or self._restoring:
            return
        self.counts[name] += 1
        self.log.append((self.cluster.now(), name))
        self._down.add(victim)
        self._tasks.append(asyncio.create_task(self._suffer(victim, fault)))

    async def _suffer(self, victim: str, fault: Fault) -> None:
        try:
            await fault()
        finally:
            self._down.discard(victim)

    async def supervise(self) -> None:
        """Restart processes that end by themselves, until cancelled."""
        while True:
            if API_SERVER in self._down:
                self.controllers.outage = asyncio.get_running_loop().time()
            if "claimctl" not in self._down:
                self.controllers.revive()
            for name in (CONTROLLER_MANAGER, SCHEDULER):
                server = self.cluster.plane.servers[name]
                if name not in self._down and not server.running:
                    self.counts[f"{name} ended by itself"] += 1
                    server.start()
            await asyncio.sleep(0.2)

    async def calm(self) -> None:
        """Wait for the running faults to end, and for the API server.

        Raises:
            CannotStart: the API server does not come back.
        """
        await asyncio.gather(*self._tasks)
        await self._until_ready()
        await self._unfreeze()

    # -- servers

    def _kill(self, name: str) -> Fault:
        async def fault() -> None:
            self._server(name).kill()
            await self._return(name)

        return fault

    def _stop(self, name: str) -> Fault:
        async def fault() -> None:
            await asyncio.to_thread(self._server(name).stop)
            await self._return(name)

        return fault

    def _pause(self, name: str, seconds: tuple[float, ...]) -> Fault:
        async def fault() -> None:
            self._server(name).pause()
            try:
                await asyncio.sleep(self.rng.choice(seconds))
            finally:
                self._server(name).resume()

        return fault

    async def _return(self, name: str) -> None:
        await asyncio.sleep(self.rng.choice(AWAY))
        self._server(name).start()
        if name == API_SERVER:
            await self._until_ready()

    async def _until_ready(self) -> None:
        end = asyncio.get_running_loop().time() + _READY_SECONDS
        while not await asyncio.to_thread(self.cluster.plane.ready):
            server = self._server(API_SERVER)
            server.check()
            if asyncio.get_running_loop().time() > end:
                words = server.last_error()
                raise CannotStart(f"{API_SERVER} is not ready after {_READY_SECONDS:g} s: {words}")
            await asyncio.sleep(0.1)

    def _server(self, name: str) -> ServerProcess:
        return self.cluster.plane.servers[name]

    async def _compact(self) -> None:
        # The history must have read the revisions that etcd drops.
        await self.cluster.history.caught_up()
        await asyncio.to_thread(self.cluster.plane.compact)

    async def _restore(self) -> None:
        """Restore etcd from a backup of some seconds ago, when no other fault lasts."""
        self._restoring = True
        try:
            others = set(self._tasks) - {asyncio.current_task()}
            await asyncio.gather(*filter(None, others))
            await asyncio.sleep(_CAUGHT_UP)
            await asyncio.to_thread(self.cluster.plane.back_up)
            await asyncio.sleep(self.rng.choice(BACKUP_AGES))
            self._down |= _SERVERS
            self._server(API_SERVER).kill()
            await self.cluster.history.rewind(self.cluster.plane.restore)
            self.controllers.outage = asyncio.get_running_loop().time()
            if not self.elect or self.rng.random() < 0.5:
                for name in sorted(self.controllers.running):
                    self.controllers.kill(name)
                    self.controllers.start(name)
            if self.restored is not None:
                await self.restored()
        finally:
            self._down -= _SERVERS
            self._restoring = False

    # -- claimctl

    def _some(self) -> list[str]:
        names = sorted(self.controllers.running)
        return names if self.rng.random() < 0.3 else [self.rng.choice(names)]

    async def _kill_claimctl(self) -> None:
        names = self._some()
        for name in names:
            self.controllers.kill(name)
        await asyncio.sleep(self.rng.choice(AWAY))
        for name in names:
            self.controllers.start(name)

    async def _stop_claimctl(self) -> None:
        name = self.rng.choice(sorted(self.controllers.running))
        await asyncio.to_thread(self.controllers.running.pop(name).stop)
        self.controllers.start(name)

    async def _pause_claimctl(self) -> None:
        """Pause a controller, sometimes for longer than the Lease lasts: then the other one
        leads."""
        servers = [self.controllers.running[name] for name in self._some()]
        for server in servers:
            server.pause()
        try:
            await asyncio.sleep(self.rng.choice((*ASLEEP, 20.0)))
        finally:
            for server in servers:
                server.resume()
        self.controllers.outage = asyncio.get_running_loop().time()

    # -- an administrator

    async def _freeze(self) -> None:
        try:
            await self.client.create(
                {"apiVersion": PLAN[0], "kind": PLAN[1], "metadata": {"name": "claimctl"}}
                | {"spec": {}}
            )
        except TROUBLE:
            return
        await asyncio.sleep(self.rng.choice(ASLEEP))
        await self._unfreeze()

    async def _unfreeze(self) -> None:
        while True:
            try:
                await self.client.delete(PLAN, "", "claimctl")
            except TROUBLE:
                await asyncio.sleep(1.0)
            else:
                return
