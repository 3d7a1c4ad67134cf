"""The embedded cluster of a run, its controllers, and the final judgement."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from random import Random
from typing import Any

from kube_in_process.cluster import Cluster
from kube_in_process.errors import StatusError
from kube_in_process.options import ClusterOptions
from kube_in_process.storage.store import Revision

from claimctl.controller.caches import informers as caches
from claimctl.controller.manager import Manager
from claimctl.controller.settings import Settings
from claimctl.kube.clock import LoopClock
from claimctl.telemetry.face import Telemetry
from claimctl_witness.witness import STARTED_WITHOUT_ALLOCATION, STRANDED, Violation, Witness
from claimctl_witness.world import World
from labs.findings import RunFindings
from labs.torture.drivers import DEVICE, Driver
from labs.torture.faulty_transport import FaultPlan, FaultyTransport
from labs.torture.stored import is_allocated, is_deleting, summary
from tests.e2e.harness import CONTROLLER_GROUPS, CONTROLLER_USER, NAMESPACE
from tests.e2e.site import taken_for_one_pod_drivers
from tests.support.builders import NOW
from tests.support.crds import definitions

GRACE = 20
"""forceDeletedPodGraceSeconds of every ClaimReservation; longer than any wait for a new list."""


BINDING = 25.0
"""--binding-seconds of every controller; shorter than the default, to keep runs short."""
SLOW_BINDING = 90.0
"""--slow-binding-seconds: longer than a driver's report and a slow scheduling cycle together."""
BEAT = 0.5
"""Seconds within which a dead controller is replaced."""


class WallClock(LoopClock):
    """A machine's clock. ``jump`` shifts the wall clock, not the monotonic clock."""

    def __init__(self) -> None:
        super().__init__(NOW)
        self.jump = timedelta()

    def now(self) -> datetime:
        return super().now() + self.jump


@dataclass(frozen=True, slots=True)
class Process:
    """One process of a controller."""

    transport: FaultyTransport
    task: asyncio.Task[None]
    stop: asyncio.Event
    clock: WallClock


@dataclass
class Testbed:
    """The cluster of one run. It restarts controllers that end, as a kubelet would."""

    __test__ = False  # pytest takes a class with this name for tests
    cluster: Cluster
    settings: dict[str, Any] = field(default_factory=dict)
    processes: dict[str, Process] = field(default_factory=dict)
    ended: list[FaultyTransport] = field(default_factory=list)
    unmet: list[str] = field(default_factory=list)
    """Conditions that a script waited for in vain."""
    telemetry: Telemetry | None = None
    driver: Driver | None = None
    """The driver of the devices, if pods wait for its reports."""
    driving: asyncio.Task[None] | None = None
    crashes: list[str] = field(default_factory=list)
    """Errors with which controllers ended and should not have."""
    plan: Callable[[], FaultPlan] = FaultPlan
    """Makes the faults of each process that is started without any."""

    # -- controllers

    def start(self, name: str = "one", plan: FaultPlan | None = None, **settings: Any) -> Process:
        clock = WallClock()
        values: dict[str, Any] = {"identity": name, "leader_elect": False}
        values |= {"binding_seconds": BINDING, "slow_binding_seconds": SLOW_BINDING}
        values |= {**self.settings, **settings}
        inner = self.cluster.transport(CONTROLLER_USER, CONTROLLER_GROUPS)
        transport = FaultyTransport(self.cluster, inner, plan or self.plan())
        settings_ = Settings.checked(**values)
        manager = Manager(settings_, transport, clock, self.telemetry, rng=Random(name))
        stop = asyncio.Event()
        task = asyncio.create_task(manager.run(stop), name=f"manager {name}")
        process = self.processes[name] = Process(transport, task, stop, clock)
        return process

    async def kill(self, name: str) -> None:
        """Kill a controller as SIGKILL does: it cleans nothing up and sends nothing any more."""
        process = self.processes.pop(name)
        process.transport.dead.set()
        process.task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await process.task
        self.ended.append(process.transport)

    async def supervise(self, **settings: Any) -> None:
        """Replace every process that has died."""
        for name, process in list(self.processes.items()):
            if process.transport.dead.is_set() or process.task.done():
                await self.kill(name)
                self.start(name, **settings)

    async def stop_all(self) -> None:
        """Stop all controllers as SIGTERM does. One that ends with an error counts as a crash."""
        for name in list(self.processes):
            process = self.processes.pop(name)
            process.stop.set()
            try:
                await process.task
            except Exception as error:
                self.crashes.append(f"{type(error).__name__}: {error}")
            self.ended.append(process.transport)

    def transports(self) -> list[FaultyTransport]:
        """The connections of all controllers that run or have run."""
        return [*self.ended, *(process.transport for process in self.processes.values())]

    # -- devices

    def bind_devices(self, rng: Random) -> None:
        """From now on, the scheduler waits for a driver's reports before it binds pods."""
        admin = self.cluster.admin
        for piece in admin.list("resourceslices"):
            devices = [device | DEVICE for device in piece["spec"]["devices"]]
            admin.update("resourceslices", {**piece, "spec": {**piece["spec"], "devices": devices}})
        self.driver = Driver(rng)
        self.driving = asyncio.create_task(self._drive(self.driver), name="driver")

    async def _drive(self, driver: Driver) -> None:
        while True:
            now = self.cluster.clock.monotonic()
            for claim, patch in driver.reports(self.objects("resourceclaims"), now):
                self.report(claim, patch)
            await asyncio.sleep(BEAT)

    def report(self, claim: dict[str, Any], patch: dict[str, Any]) -> None:
        name = claim["metadata"]["name"]
        with suppress(StatusError):
            self.cluster.admin.patch("resourceclaims", NAMESPACE, name, patch, "status")

    # -- time

    async def sleep(self, seconds: float) -> None:
        """Let time pass; controllers that die are replaced."""
        while seconds > 0:
            await asyncio.sleep(min(seconds, BEAT))
            await self.supervise()
            seconds -= BEAT

    async def until(self, holds: Callable[[], bool], within: float, step: float = 0.5) -> bool:
        """Wait for a condition on the server; controllers that die are replaced."""
        end = self.cluster.clock.monotonic() + within
        while not holds():
            if self.cluster.clock.monotonic() >= end:
                return False
            await asyncio.sleep(step)
            await self.supervise()
        return True

    # -- what is there

    def objects(self, plural: str) -> list[dict[str, Any]]:
        return [
            obj
            for obj in self.cluster.admin.list(plural)
            if obj["metadata"].get("namespace", NAMESPACE) == NAMESPACE
        ]

    def plurals(self) -> set[str]:
        """The plural names of the resources that the cluster serves."""
        return {kind.plural for kind in self.cluster.api.kinds}

    def unreleased(self) -> list[str]:
        """Claims that are allocated or cannot be deleted."""
        return [
            claim["metadata"]["name"]
            for claim in self.objects("resourceclaims")
            if is_allocated(claim) or is_deleting(claim)
        ]


@cache
def crds_without_rules() -> list[dict[str, Any]]:
    return [_without_rules(definition) for definition in definitions()]


def _without_rules(schema: Any) -> Any:
    """The schema without CEL rules: evaluating them takes a fifth of a run's time."""
    if isinstance(schema, list):
        return [_without_rules(rule) for rule in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: rule for key, rule in schema.items() if key != "x-kubernetes-validations"}
    return {key: _without_rules(rule) for key, rule in kept.items()}


@asynccontextmanager
async def opened(options: ClusterOptions) -> AsyncIterator[Testbed]:
    """A cluster with claimctl's CRDs and the namespaces in use."""
    cluster = Cluster(options, LoopClock(NOW))
    await cluster.start()
    for definition in crds_without_rules():
        cluster.admin.create("customresourcedefinitions", definition)
    for name in (NAMESPACE, "claimctl-system"):
        cluster.admin.create("namespaces", {"metadata": {"name": name}})
    testbed = Testbed(cluster)
    try:
        yield testbed
    finally:
        if testbed.driving is not None:
            testbed.driving.cancel()
            await asyncio.wait({testbed.driving})
        for name in list(testbed.processes):
            await testbed.kill(name)
        await cluster.stop()


KNOWN_WINDOW = "starts in the known window"
"""They are on a deallocated claim: the scheduler was slower than the settle time or the binding
time."""


@dataclass
class RunVerdict(RunFindings):
    """The result of one run."""

    keeps: bool = False
    """Whether to keep ``fingerprints``."""
    digest: str = ""
    fingerprints: list[str] = field(default_factory=list)
    requests: int = 0
    writes: int = 0
    events: int = 0
    views: list[list[int]] = field(default_factory=list)
    """For each step of a reference run: the earlier revisions that show different clusters."""


def judge(testbed: Testbed, verdict: RunVerdict, *, slow: bool = False) -> None:
    """Read the server's whole history and record the violations."""
    late = taken_for_one_pod_drivers(testbed.cluster.history())
    witness, world = Witness({CONTROLLER_USER}, one_pod_drivers=late), World()
    world.listen(witness.notice)
    world.read(testbed.cluster.history())
    for violation in witness.violations:
        _weigh(violation, witness, verdict, slow=slow)
    transports = testbed.transports()
    verdict.violations += [
        text for transport in transports for text in (*transport.vain, *transport.refused)
    ]
    verdict.leaks += [f"finalizer of {name}" for _, name in witness.unfinished]
    verdict.stuck += testbed.unmet
    verdict.violations += [f"a controller broke: {text}" for text in testbed.crashes]
    verdict.violations += [f"the cluster broke: {error!r}" for error in testbed.cluster.failures]
    verdict.requests = sum(transport.requests for transport in transports)
    verdict.writes = sum(transport.writes for transport in transports)
    verdict.events = sum(transport.events for transport in transports)
    verdict.digest = digest(testbed.cluster)
    if verdict.keeps:
        verdict.fingerprints = fingerprints(testbed.cluster)


def _weigh(violation: Violation, witness: Witness, verdict: RunVerdict, *, slow: bool) -> None:
    """Record a violation. A start without allocation counts only if claimctl deallocated."""
    if violation.rule == STARTED_WITHOUT_ALLOCATION:
        claim = (violation.namespace, violation.claim)
        if witness.deallocations.get(claim) not in witness.users:
            return
    if slow and violation.rule in (STARTED_WITHOUT_ALLOCATION, STRANDED):
        verdict.counts[KNOWN_WINDOW] += 1
    else:
        verdict.violations.append(f"{violation.rule}: {violation.message}")


def digest(cluster: Cluster) -> str:
    """A digest of all writes with their users and times."""
    digest = hashlib.sha256()
    for revision in cluster.history():
        what = f"{revision.number} {revision.type} {revision.plural} {revision.name}"
        head = f"{what} {revision.actor} {revision.at!r} "
        digest.update(head.encode() + revision.data)
    return digest.hexdigest()


TEXTS = frozenset({"message", "note"})
"""Fields with texts for people, which do not count as behaviour."""


def fingerprints(cluster: Cluster) -> list[str]:
    """A line for each revision. It differs if anything in the revision but texts differs.

    The CustomResourceDefinitions are no behaviour of the controller.
    """
    return [
        _fingerprint(revision)
        for revision in cluster.history()
        if revision.plural != "customresourcedefinitions"
    ]


def _fingerprint(revision: Revision) -> str:
    data = json.dumps(_without_texts(revision.object()), sort_keys=True).encode()
    who = f"{revision.number} t={revision.at:.3f} {revision.actor} {revision.verb}"
    what = f"{revision.plural}/{revision.subresource} {revision.namespace}/{revision.name}"
    return f"{who} {what} {hashlib.sha256(data).hexdigest()[:16]}"


def _without_texts(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_texts(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _without_texts(item) for key, item in value.items() if key not in TEXTS}


WATCHED = frozenset(resource.plural for resource in caches.WATCHED)


def views(cluster: Cluster, since: int) -> list[int]:
    """The revisions that change what a watch shows."""
    return [revision.number for revision in cluster.history(since) if revision.plural in WATCHED]


def history(cluster: Cluster, since: int) -> Iterator[str]:
    """The history for people, one line for each revision."""
    for revision in cluster.history(since):
        if revision.plural not in ("events", "leases"):
            yield line_of(revision)


def line_of(revision: Revision) -> str:
    """One revision for people."""
    actor = revision.actor.rpartition(":")[2]
    what = summary(revision.plural, revision.name, revision.object())
    return f"{revision.number:5} t={revision.at:8.3f} {actor:24} {revision.verb:7} {what}"
