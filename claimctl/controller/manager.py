"""The manager: it starts and stops the parts of a controller in order, and watches their tasks.

The start checks the served APIs and the rights, detects the dialect, fills the caches, and then
waits for the Lease. With the Lease, the workers start. The stop is the reverse, with a deadline, so
that the work of this process ends before another replica begins.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from functools import partial
from typing import Any

from claimctl.controller import checkpoint
from claimctl.controller.caches.informers import Caches
from claimctl.controller.dialect import Detection, DialectProbe, Redetection
from claimctl.controller.live_reads import CATCH_UP_SECONDS
from claimctl.controller.parts import Parts, assemble
from claimctl.controller.preflight import check_rights, check_served, may_follow_groups
from claimctl.controller.settings import Duty, Settings
from claimctl.controller.workers import WorkerPool
from claimctl.kube.client import Client
from claimctl.kube.errors import KubeError
from claimctl.kube.informer import Informer
from claimctl.kube.leases import Deposed, LeaderElection, LeaderElectionSettings
from claimctl.kube.supervisor import Tasks
from claimctl.reservation.facts.dialects import DIALECTS
from claimctl.telemetry.face import LateLogger, Metric, Telemetry
from claimctl.wire.resources import LEASES
from claimctl.wire.seams import Clock, Transport

log = LateLogger(__name__)

LEASE_SECONDS = 5.0
"""How long to wait for the Lease that may have a checkpoint. Without it, the grace counts."""
GROUPS_TASK = "informer of podgroups"
SYNC_SECONDS = 120.0
"""How long the first lists may take. After that, the start fails."""
FEW_WORKERS = 4
"""The most workloads, and the most PodGroups, that are reconciled at the same time. When many
workloads appear together, their groups should exist before their pods are first scheduled."""


class NotSynced(Exception):
    """The first lists did not arrive in time. The message is one line: which, and why."""


class Manager:
    """One controller process.

    Args:
        transport: sends requests to the API server; in production an HTTP session.
        rng: the source of all jitter, so that a seed repeats a run.
    """

    def __init__(
        self,
        settings: Settings,
        transport: Transport,
        clock: Clock,
        telemetry: Telemetry | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.settings = settings
        self.detection: Detection | None = None
        self.leading = False
        self._clock = clock
        self._telemetry = telemetry or Telemetry()
        self._rng = rng or random.Random()
        self._client = Client(transport, clock, self._telemetry, rng=self._rng)
        self._pool: WorkerPool | None = None
        self._parts: Parts | None = None
        self._running = False
        self._present: dict[str, str] = {}
        """By plural: the version of the present when the caches began at a checkpoint. It is empty
        if they did not, or have caught up with it."""

    @property
    def ready(self) -> bool:
        """Whether the caches are filled. A standby that is ready can take over at once."""
        return (
            self._parts is not None
            and self._parts.caches.groups.synced
            and all(informer.synced for informer in self._parts.caches.informers())
        )

    @property
    def healthy(self) -> bool:
        """Whether all tasks that were started still run."""
        return self._running

    async def run(self, stop: asyncio.Event) -> None:
        """Run until ``stop`` is set; then drain and return.

        Raises:
            NotReady, DialectUnknown, NotSynced: the start failed; one line says why.
            LeadershipLost: the Lease was lost, and the work failed or did not stop in time; or the
                Lease shows that etcd was restored, and a new process has to list everything anew;
                or its namespace does not exist (NoNamespace).
            KubeError: a request at the start failed.
        """
        tasks = Tasks()
        self._running = True
        script = asyncio.create_task(self._start(tasks), name="start")
        stopped = asyncio.create_task(stop.wait(), name="stop signal")
        failed = asyncio.create_task(tasks.failed(), name="failures")
        try:
            await _first(failed, stopped, after=script)
        finally:
            self._running = False
            await self._stop(tasks, (script, stopped, failed))

    async def _start(self, tasks: Tasks) -> None:
        await check_served(self._client)
        probe = DialectProbe(
            self._client, override=self.settings.dialect, namespace=self.settings.lease_namespace
        )
        self.detection = await probe.detect()
        log.info(
            "reservation mode found", dialect=self.detection.dialect, reasons=self.detection.reasons
        )
        await check_rights(
            self._client,
            binding=self.detection.needs_binding,
            groups=DIALECTS[self.detection.dialect].groups,
            namespaces=self.settings.namespaces,
        )
        rules = self.settings.rules(self.detection.dialect, self.detection.version)
        parts = self._parts = assemble(
            self._client, self.settings, self._clock, self._telemetry, self._rng, rules
        )
        again = Redetection(probe, parts.caches.claims, self._clock, partial(self._adapt, tasks))
        await self._follow_groups(tasks, self.detection)
        await self._begin_at_checkpoint(parts)
        for informers in parts.caches.waves():
            for informer in informers:
                tasks.spawn(f"informer of {informer.resource.plural}", informer.run())
            await self._sync(informers)
        await self._sync(parts.caches.groups.informers())
        if parts.caches.groups.followed:
            parts.knowledge.observations.group_names.known()
        log.info("caches filled")
        if parts.knowledge.observations.claims.checkpoint:
            for informer in checkpoint.begun_at(parts.caches):
                # an API server gives no bookmark of it before it was asked for a list of that kind
                now = await self._client.version_now(informer.resource)
                self._present[informer.resource.plural] = now
        tasks.spawn("events", parts.events.run())
        tasks.spawn("signs of life", parts.node_leases.run())
        tasks.spawn("detection", again.run(self.detection))
        await parts.kinds.begin(tasks)
        tasks.spawn("kinds of workloads", parts.kinds.run(tasks))
        tasks.spawn("election", self._elect())

    async def _begin_at_checkpoint(self, parts: Parts) -> None:
        """Let the caches begin where an earlier leader has put everything on record."""
        if not (self.settings.leader_elect and self.settings.checkpoint):
            return
        name, namespace = self.settings.lease_name, self.settings.lease_namespace
        client = self._client.without_retries(LEASE_SECONDS)
        try:
            lease = await client.find(LEASES, name, namespace)
        except KubeError as error:
            log.warning("checkpoint not read", error=str(error))
            return
        if lease is None or not (noted := checkpoint.read(lease)).version:
            return
        left_out = len(noted.uncovered)
        log.info("begins at the checkpoint", version=noted.version, not_covered=left_out)
        memories = parts.knowledge.observations.claims
        memories.checkpoint, memories.covers = noted.version, noted.covers
        for informer in checkpoint.begun_at(parts.caches):
            informer.begin_at(noted.version)

    async def _catch_up(self, caches: Caches) -> None:
        """Wait until the caches show everything up to the start of this process: one that began at
        the checkpoint may be minutes late, and show a reservation that is gone."""

        async def caught_up(informer: Informer[Any]) -> None:
            kind = informer.resource.plural
            while not await informer.probes.catch_up(self._present[kind], CATCH_UP_SECONDS):
                log.info("waits for a late cache", resource=kind)

        # each waits for a bookmark of the API server, one to three seconds
        await asyncio.gather(*(caught_up(informer) for informer in checkpoint.begun_at(caches)))
        self._present = {}

    async def _adapt(self, tasks: Tasks, detection: Detection) -> None:
        """Adapt to a changed dialect or version of the cluster; keep caches and observations."""
        assert self._parts is not None
        self.detection = detection
        self._parts.knowledge.rules = self.settings.rules(detection.dialect, detection.version)
        self._parts.knowledge.observations.cluster_changed()
        await self._follow_groups(tasks, detection)
        if self.leading:
            self._parts.triggers.lead()

    async def _follow_groups(self, tasks: Tasks, detection: Detection) -> None:
        """Follow PodGroups if the cluster serves them and the controller may read them."""
        assert self._parts is not None
        groups, names = self._parts.caches.groups, self._parts.knowledge.observations.group_names
        wanted = bool(detection.groups_version) and await may_follow_groups(self._client)
        if groups.followed and not wanted:
            groups.leave()
            names.unknown()
            await tasks.stop(GROUPS_TASK, deadline=self.settings.drain_seconds)
        elif wanted and not groups.followed:
            names.unknown()
            tasks.spawn(GROUPS_TASK, groups.follow().run())

    async def _sync(self, informers: Sequence[Informer[Any]]) -> None:
        try:
            async with asyncio.timeout(SYNC_SECONDS):
                for informer in informers:
                    await informer.wait_synced()
        except TimeoutError:
            late = [informer for informer in informers if not informer.synced]
            why = next(
                (str(informer.trouble) for informer in late if informer.trouble), "no answer"
            )
            names = ", ".join(informer.resource.plural for informer in late)
            raise NotSynced(f"cannot list {names}: {why}") from None

    async def _elect(self) -> None:
        if not self.settings.leader_elect:
            self._telemetry.gauge(Metric.LEADER, 1)
            await self._lead()
            return
        lease = LeaderElectionSettings(
            name=self.settings.lease_name,
            namespace=self.settings.lease_namespace,
            lease_duration=self.settings.lease_seconds,
            renew_deadline=self.settings.lease_seconds * 2 / 3,
        )
        assert self._parts is not None
        # only who reconciles claims knows what is in their statuses
        wanted = self.settings.checkpoint and self.settings.duty is not Duty.PLAN
        notes = checkpoint.Checkpoints(self._parts.knowledge).annotations if wanted else None
        election = LeaderElection(
            self._client,
            self._clock,
            lease,
            self.settings.identity,
            container=self.settings.container,
            rng=self._rng,
            notes=notes,
        )
        while True:
            # What this process has seen counts also after an outage of the API server.
            try:
                await election.run(self._lead)
            except Deposed as error:
                log.warning("leads no more", reason=str(error))
            else:
                return

    async def _lead(self) -> None:
        """Work while this process holds the Lease; cancelled when the Lease is lost."""
        assert self._parts is not None
        parts, pool = self._parts, WorkerPool()
        if self._present:
            await self._catch_up(parts.caches)
        self._pool, self.leading = pool, True
        duty, few = self.settings.duty, range(min(self.settings.workers, FEW_WORKERS))
        for number in range(self.settings.workers) if duty is not Duty.PLAN else ():
            pool.add(f"claim worker {number}", parts.claims.work)
        for number in few if duty is Duty.EVERYTHING else ():
            pool.add(f"workload worker {number}", parts.workloads.work)
        if duty is not Duty.RETIRE and not self.settings.namespaces:
            # a DowngradePlan concerns the whole cluster
            pool.add("plan worker", parts.plans.work)
        for number in few if duty is not Duty.PLAN else ():
            pool.add(f"group worker {number}", parts.groups.work)
        parts.triggers.lead()
        try:
            await pool.work()
            await asyncio.Event().wait()
        finally:
            parts.triggers.rest()
            self.leading = False
            await pool.cancel()

    async def _stop(self, tasks: Tasks, watchers: tuple[asyncio.Task[Any], ...]) -> None:
        """Stop the workers, then release the Lease, write waiting Events, and stop the caches."""
        for watcher in watchers:
            watcher.cancel()
        await asyncio.wait(watchers)
        for watcher in watchers:
            if not watcher.cancelled():
                watcher.exception()
        seconds = self.settings.drain_seconds
        if self._pool is not None:
            await self._pool.drain(seconds)
        await tasks.stop("election", deadline=seconds)
        if self._parts is not None:
            await tasks.stop("events", deadline=seconds)
            await self._parts.events.drain()
        await tasks.stop(deadline=seconds)
        log.info("stopped")


async def _first(*watchers: asyncio.Task[Any], after: asyncio.Task[Any]) -> None:
    """Wait until the start fails or a watcher ends, and raise its exception."""
    pending = [*watchers, after]
    while True:
        await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            if task.done():
                task.result()
        if any(watcher.done() for watcher in watchers):
            return
        pending = [task for task in pending if not task.done()]
