"""How long a claim stays allocated after its workload has ended, on a real control plane.

Jobs of one pod end together. Beside kube-controller-manager (KCM) alone, the time counts from the
end of the pod. With claimctl it counts from the moment when the Job says that it has ended.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from bench.table import ASSETS, Line, Part, at_most, register, tell
from claimctl.controlplane.following import Follower
from claimctl.controlplane.kubelet import Kubelets
from claimctl.controlplane.nodes import Fleet
from claimctl.controlplane.plane import ControlPlane, Wanted, running
from claimctl.controlplane.programs import find_programs
from claimctl.embedded.components.kubelet.statuses import finished
from claimctl.kube.connection import load_connection
from claimctl.kube.documents import DocumentClient
from claimctl.kube.transport import HttpTransport
from claimctl.wire.base import Object
from tests.torture_real.controllers import Controllers, install, token

POD, JOB = ("v1", "Pod"), ("batch/v1", "Job")
RESERVE = {"claimctl.io/reserve": "*"}
PATIENCE = 360.0
NODES = 10
AT_A_TIME = 32
BEFORE_RESTART = 75.0
"""Seconds in which the leader notes a checkpoint. Without events it does so once a minute."""
LEASE = 25.0
"""Seconds after which a successor leads."""


@dataclass
class Seen:
    """When each thing was first seen, in seconds of the monotonic clock, by namespace and name."""

    running: dict[str, float] = field(default_factory=dict)
    held: dict[str, float] = field(default_factory=dict)
    pod_ended: dict[str, float] = field(default_factory=dict)
    job_ended: dict[str, float] = field(default_factory=dict)
    free: dict[str, float] = field(default_factory=dict)
    pods: dict[str, Object] = field(default_factory=dict)

    def pod(self, event: str, pod: Object) -> None:
        key, phase = _key(pod, pod["metadata"]["labels"].get("app", "")), pod["status"].get("phase")
        self.pods[key] = pod
        if phase == "Running":
            self.running.setdefault(key, time.monotonic())
        if phase in ("Succeeded", "Failed"):
            self.pod_ended.setdefault(key, time.monotonic())

    def job(self, event: str, job: Object) -> None:
        for each in job.get("status", {}).get("conditions") or ():
            if each["type"] in ("Complete", "Failed") and each["status"] == "True":
                self.job_ended.setdefault(_key(job), time.monotonic())

    def claim(self, event: str, claim: Object) -> None:
        key, status = _key(claim), claim.get("status", {})
        if any(each["resource"] == "jobs" for each in status.get("reservedFor") or ()):
            self.held.setdefault(key, time.monotonic())
        if key in self.running and (event == "DELETED" or not status.get("allocation")):
            self.free.setdefault(key, time.monotonic())


def _key(obj: Object, name: str = "") -> str:
    return f"{obj['metadata']['namespace']}/{name or obj['metadata']['name']}"


@dataclass
class Bench:
    """One cluster, with claimctl and the stand-in for kubelets."""

    plane: ControlPlane
    transport: HttpTransport
    fleet: Fleet
    seen: Seen = field(default_factory=Seen)
    client: DocumentClient = field(init=False)

    def __post_init__(self) -> None:
        self.client = DocumentClient(self.transport, "bench")
        self._slots = asyncio.Semaphore(AT_A_TIME)

    @property
    def version(self) -> str:
        return ".".join(map(str, self.fleet.version))

    async def begin(self, namespace: str, count: int, *, held: bool) -> list[str]:
        """Make Jobs and wait until their pods run, and their claims are held if ``held``."""
        await self.client.create(_object("v1", "Namespace", namespace))
        await self._each(self._make(namespace, f"job-{n}", held=held) for n in range(count))
        keys = [f"{namespace}/job-{n}" for n in range(count)]
        await self.until(lambda: all(key in self.seen.running for key in keys), "pods run")
        if held:
            await self.until(lambda: all(key in self.seen.held for key in keys), "claims held")
        await asyncio.sleep(3.0)
        return keys

    async def end(self, keys: list[str]) -> None:
        """Let the pods end together, as their kubelets would report it."""
        await self._each(self._finish(self.seen.pods[key]) for key in keys)

    async def freed(self, keys: list[str]) -> None:
        await self.until(lambda: all(key in self.seen.free for key in keys), "claims free")

    async def until(self, holds: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > end:
                raise TimeoutError(what)
            await asyncio.sleep(0.02)

    async def _make(self, namespace: str, name: str, *, held: bool) -> None:
        await self.client.create(_claim(self.fleet, namespace, name))
        await self.client.create(_job(namespace, name, RESERVE if held else {}))

    async def _finish(self, pod: Object) -> None:
        meta = pod["metadata"]
        status = {**pod["status"], **finished(pod, _now(), 0)}
        await self.client.patch_status(POD, meta["namespace"], meta["name"], {"status": status})

    async def _each(self, acts: Iterator[Coroutine[Any, Any, None]]) -> None:
        async def one(act: Coroutine[Any, Any, None]) -> None:
            async with self._slots:
                await act

        async with asyncio.TaskGroup() as group:
            for act in acts:
                group.create_task(one(act))


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _object(version: str, kind: str, name: str, namespace: str = "") -> Object:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": meta}


def _claim(fleet: Fleet, namespace: str, name: str) -> Object:
    wanted = {"deviceClassName": fleet.device_class}
    old = fleet.version < (1, 33)
    request = {"name": "gpu", **(wanted if old else {"exactly": wanted})}
    claim = _object(fleet.resource_api, "ResourceClaim", name, namespace)
    return {**claim, "spec": {"devices": {"requests": [request]}}}


def _job(namespace: str, name: str, annotations: dict[str, str]) -> Object:
    container = {"name": "main", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}
    pod = {
        "metadata": {
            "labels": {"app": name},
            "annotations": {"embedded.claimctl.io/run-seconds": "3600"},
        },
        "spec": {
            "restartPolicy": "Never",
            "containers": [container],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
        },
    }
    job = _object("batch/v1", "Job", name, namespace)
    job["metadata"]["annotations"] = annotations
    return {**job, "spec": {"template": pod}}


def p99(seconds: Sequence[float]) -> float:
    """The 99th percentile; of fewer than a hundred the longest."""
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]


def _told(what: str, seconds: Sequence[float]) -> None:
    numbers = f"median {median(seconds):6.2f} s  p99 {p99(seconds):6.2f} s"
    tell(f"{what:<48} {numbers}  ({len(seconds)} claims)")


async def _measure(bench: Bench, space: str, count: int, *, held: bool) -> list[float]:
    """The seconds from the end of each workload until its claim is free."""
    keys = await bench.begin(space, count, held=held)
    await bench.end(keys)
    await bench.freed(keys)
    seen = bench.seen
    ended = seen.job_ended if held else seen.pod_ended
    return [seen.free[key] - ended[key] for key in keys]


async def _play(
    bench: Bench, options: argparse.Namespace, controllers: Controllers
) -> AsyncIterator[Line]:
    await install(bench.client)
    controllers.prepare(await token(bench.transport))
    controllers.start("one")
    await asyncio.sleep(LEASE)
    for count in options.counts:
        found: dict[bool, list[float]] = {False: [], True: []}
        for number in range(options.tries if count == 1 else 1):
            for who, held in (("alone", False), ("held", True)):
                seconds = await _measure(bench, f"{who}-{count}-{number}", count, held=held)
                found[held] += seconds
                _told(f"{who}, {count} at once", seconds)
        yield _line(f"release {bench.version}: {count} at once, p99", found[True], found[False])


def _line(name: str, held: list[float], alone: list[float]) -> Line:
    goal = at_most(2 if "1 at once" in name else 4)
    beside = "kube-controller-manager alone"
    return Line(name, p99(held), beside, p99(alone), "s", goal, min(len(held), len(alone)))


async def _restarts(
    bench: Bench, _: argparse.Namespace, controllers: Controllers
) -> AsyncIterator[Line]:
    """How long a release takes after the controller or the API server was restarted.

    The workloads end when the successor leads, so that the wait for the Lease does not count.
    """
    await install(bench.client)
    controllers.prepare(await token(bench.transport))
    controllers.start("one")
    usual: list[float] = []
    await asyncio.sleep(LEASE)
    for number, what in enumerate(("nothing", "kill -9", "rolling upgrade", "young standby")):
        keys = await bench.begin(f"restart-{number}", 5, held=True)
        await asyncio.sleep(BEFORE_RESTART)
        await _restart(what, controllers)
        await bench.end(keys)
        await bench.freed(keys)
        seconds = [bench.seen.free[key] - bench.seen.job_ended[key] for key in keys]
        _told(f"after {what}", seconds)
        if what == "nothing":
            usual = seconds
        else:
            extra = p99(seconds) - p99(usual)
            name = f"restart {bench.version}: extra wait of a release after {what}"
            yield Line(name, extra, unit="s", goal=at_most(5), runs=len(seconds))


async def _restart(what: str, controllers: Controllers) -> None:
    old = next(iter(controllers.running))
    if what == "kill -9":
        controllers.kill(old)
        controllers.start("again")
    elif what == "rolling upgrade":
        controllers.start("upgraded")
        await asyncio.sleep(5.0)
        await asyncio.to_thread(controllers.running.pop(old).stop)
    elif what == "young standby":
        controllers.start("standby")
        await asyncio.sleep(5.0)
        controllers.kill(old)
    await asyncio.sleep(LEASE)


async def _main(plane: ControlPlane, options: argparse.Namespace, logs: Path) -> list[Line]:
    async with HttpTransport(load_connection(str(plane.files.kubeconfig()))) as transport:
        each = max(options.counts) // NODES + 8
        fleet = Fleet(plane.programs.version, count=NODES, devices=2 * each)
        bench = Bench(plane, transport, fleet)
        kubelets, joined = Kubelets(transport, fleet, pod_groups=options.gates), asyncio.Event()
        kinds = ((POD, bench.seen.pod), (JOB, bench.seen.job), (fleet.claims, bench.seen.claim))
        followers = [Follower(transport, bench.client, *kind).run() for kind in kinds]
        tasks = [asyncio.create_task(each) for each in (kubelets.run(joined), *followers)]
        controllers = Controllers(plane.files, logs, flags=("--checkpoint",))
        try:
            await joined.wait()
            played = options.play(bench, options, controllers)
            return [line async for line in played]
        finally:
            for name in list(controllers.running):
                controllers.kill(name)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def _directory(kept: str) -> Iterator[Path]:
    if kept:
        Path(kept).mkdir(parents=True, exist_ok=True)
        yield Path(kept)
        return
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 40], help="claims at once")
    parser.add_argument("--tries", type=int, default=5, help="how often one claim is released")
    _common_flags(parser)
    parser.set_defaults(play=_play)


def _restart_flags(parser: argparse.ArgumentParser) -> None:
    _common_flags(parser)
    parser.set_defaults(play=_restarts, counts=[5])


def _common_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gates", action="store_true", help="switch PodGroups on (1.36)")
    parser.add_argument("--keep", default="", help="a folder for the logs")


def _part(options: argparse.Namespace) -> list[Line]:
    programs = find_programs(Path(os.environ[ASSETS]))
    with (
        _directory(options.keep) as folder,
        running(ControlPlane(programs, folder, Wanted(pod_groups=options.gates))) as plane,
    ):
        return asyncio.run(_main(plane, options, folder))


register(Part("release", "from the end of workloads until claims are free", _part, _flags, True))
register(Part("restart", "releases after restarts of claimctl", _part, _restart_flags, True))
