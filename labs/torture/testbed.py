"""The embedded cluster of a run, its controllers, and the final judgement."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from random import Random
from typing import Any

from kube_in_process.cluster import Cluster
from kube_in_process.options import ClusterOptions, Preset
from kube_in_process.real.servers.nodes import Fleet
from kube_in_process.storage.store import Revision

from claimctl.controller.caches import informers as caches
from claimctl.controller.manager import Manager
from claimctl.controller.settings import Settings
from claimctl.kube.clock import LoopClock
from claimctl.telemetry.face import Telemetry
from claimctl_demo.documents import DocumentClient
from claimctl_witness.witness import STARTED_WITHOUT_ALLOCATION, STRANDED, Violation, Witness
from claimctl_witness.world import World
from labs.findings import RunFindings
from labs.torture.bodies import Bodies
from labs.torture.faulty_transport import FaultPlan, FaultyTransport
from labs.torture.place import Patience, TorturePlace
from labs.torture.stored import is_allocated, is_deleting
from tests.e2e.harness import CONTROLLER_GROUPS, CONTROLLER_USER, DEVICE_CLASS, NAMESPACE
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
PATIENCE = Patience(pods=200.0, release=1100.0, still=60.0, quiet=90.0, watched=60.0, rounds=1)
"""A stolen Lease is free again before writes count."""


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
class Testbed(TorturePlace):
    """The cluster of one run. It restarts controllers that end, as a kubelet would."""

    __test__ = False  # pytest takes a class with this name for tests
    cluster: Cluster
    settings: dict[str, Any] = field(default_factory=dict)
    processes: dict[str, Process] = field(default_factory=dict)
    ended: list[FaultyTransport] = field(default_factory=list)
    unmet: list[str] = field(default_factory=list)
    """Conditions that a script waited for in vain."""
    telemetry: Telemetry | None = None
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

    # -- time

    def now(self) -> float:
        return self.cluster.clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Let time pass; controllers that die are replaced."""
        while seconds > 0:
            await asyncio.sleep(min(seconds, BEAT))
            await self.supervise()
            seconds -= BEAT

    # -- what is there

    def objects(self, plural: str) -> list[dict[str, Any]]:
        """Those of the namespace, and those of the cluster; none of a kind that is not served."""
        if plural == "podgroups" and not self.pod_groups:
            return []
        return [
            obj
            for obj in self.cluster.admin.list(plural)
            if obj["metadata"].get("namespace", NAMESPACE) == NAMESPACE
        ]

    @property
    def revision(self) -> int:
        return self.cluster.store.revision

    def written(self, since: int = 0) -> list[Revision]:
        """All writes: nobody else uses the cluster."""
        return list(self.cluster.history(since))

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

    # -- faults and nodes

    async def calm(self) -> None:
        """End all faults. One controller runs on. Nodes stay lost and closed, and devices
        broken."""
        cluster = self.cluster
        cluster.handler.fault = None
        cluster.fault_components(None)
        cluster.set_lag(0.0)
        cluster.slow_scheduler(None)
        for name in cluster.components:
            cluster.resume(name)
        for plan in cluster.admin.list("downgradeplans"):
            cluster.admin.delete("downgradeplans", "", plan["metadata"]["name"])
        for process in self.processes.values():
            process.clock.jump *= 0
        for name in list(self.processes)[1:]:
            await self.kill(name)
        await self.supervise()
        if not self.processes:
            self.start("last")

    async def leave(self) -> list[str]:
        await self.stop_all()
        return []

    @property
    def lost(self) -> Collection[str]:
        return self.cluster.kubelet.lost

    def lose(self, node: str) -> None:
        self.cluster.lose_node(node)

    async def restore(self, node: str, *, rebooted: bool) -> None:
        if rebooted:
            self.cluster.reboot_node(node)
        else:
            self.cluster.restore_node(node)


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
    fleet = Fleet(
        version=options.kubernetes_version,
        count=options.nodes,
        devices=options.devices_per_node,
        device_class=DEVICE_CLASS,
    )
    testbed = Testbed(
        client=DocumentClient(cluster.transport(), "people"),
        bodies=Bodies(NAMESPACE, fleet, GRACE),
        pod_groups=options.preset is Preset.POD_GROUPS,
        patience=PATIENCE,
        cluster=cluster,
    )
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
