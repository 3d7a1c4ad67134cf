"""Workloads with a claim each on a real control plane: what several parts of the table share.

``play`` starts the servers of ``KUBEBUILDER_ASSETS`` with a stand-in for kubelets and with the
rights of claimctl. ``JobsBench`` makes Jobs, lets them end together, and notes when each thing
happened.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from kube_in_process.components.kubelet.statuses import finished
from kube_in_process.real.servers.following import Follower
from kube_in_process.real.servers.kubelet import Kubelets
from kube_in_process.real.servers.nodes import Fleet
from kube_in_process.real.servers.plane import ControlPlane, Wanted, running
from kube_in_process.real.servers.programs import find_programs

from bench.table import ASSETS, Line, tell
from claimctl.kube.transport import HttpTransport
from claimctl.login.connect import load_connection
from claimctl.wire.base import Object
from claimctl_demo.documents import DocumentClient
from labs.torture_real.controllers import Controllers

POD, JOB = ("v1", "Pod"), ("batch/v1", "Job")
RESERVE = {"claimctl.io/reserve": "*"}
PATIENCE = 360.0
NODES = 10
AT_A_TIME = 32
LEASE = 25.0
"""Seconds after which a controller leads, also one that takes over."""


@dataclass
class JobsSeen:
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
class JobsBench:
    """One cluster, with claimctl and the stand-in for kubelets."""

    plane: ControlPlane
    transport: HttpTransport
    fleet: Fleet
    controllers: Controllers
    seen: JobsSeen = field(default_factory=JobsSeen)
    client: DocumentClient = field(init=False)

    def __post_init__(self) -> None:
        self.client = DocumentClient(self.transport, "bench")
        self._slots = asyncio.Semaphore(AT_A_TIME)

    @property
    def version(self) -> str:
        return ".".join(map(str, self.fleet.version))

    async def begin(
        self, namespace: str, count: int, *, held: bool, grouped: bool = False
    ) -> list[str]:
        """Make Jobs and wait until their pods run, and their claims are held if ``held``.

        Args:
            grouped: whether each Job's pod names a PodGroup, which claimctl makes.
        """
        await self.client.create(made("v1", "Namespace", namespace))
        jobs = (job(namespace, f"job-{n}", held=held, grouped=grouped) for n in range(count))
        await self._each(self._make(each) for each in jobs)
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

    async def _make(self, workload: Object) -> None:
        meta = workload["metadata"]
        await self.client.create(claim(self.fleet, meta["namespace"], meta["name"]))
        await self.client.create(workload)

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


def made(version: str, kind: str, name: str, namespace: str = "") -> Object:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": meta}


def claim(fleet: Fleet, namespace: str, name: str) -> Object:
    """A claim for one device of the fleet."""
    wanted = {"deviceClassName": fleet.device_class}
    old = fleet.version < (1, 33)
    request = {"name": "gpu", **(wanted if old else {"exactly": wanted})}
    body = made(fleet.resource_api, "ResourceClaim", name, namespace)
    return {**body, "spec": {"devices": {"requests": [request]}}}


def template(name: str, restart: str, *, grouped: bool = False) -> Object:
    """A pod template whose pods use the claim ``name`` and run until the bench ends them."""
    container = {"name": "main", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}
    spec: Object = {
        "restartPolicy": restart,
        "containers": [container],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
    }
    if grouped:
        spec["schedulingGroup"] = {"podGroupName": name}
    annotations = {"kube-in-process/run-seconds": "3600"}
    return {"metadata": {"labels": {"app": name}, "annotations": annotations}, "spec": spec}


def job(namespace: str, name: str, *, held: bool, grouped: bool = False) -> Object:
    body = made("batch/v1", "Job", name, namespace)
    body["metadata"]["annotations"] = RESERVE if held else {}
    return {**body, "spec": {"template": template(name, "Never", grouped=grouped)}}


def deployment(namespace: str, name: str, pods: int, *, grouped: bool = False) -> Object:
    body = made("apps/v1", "Deployment", name, namespace)
    body["metadata"]["annotations"] = RESERVE
    selector = {"matchLabels": {"app": name}}
    spec = {
        "replicas": pods,
        "selector": selector,
        "template": template(name, "Always", grouped=grouped),
    }
    return {**body, "spec": spec}


def p99(seconds: Sequence[float]) -> float:
    """The 99th percentile; of fewer than a hundred the longest."""
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]


def told(what: str, seconds: Sequence[float]) -> None:
    numbers = f"median {median(seconds):6.2f} s  p99 {p99(seconds):6.2f} s"
    tell(f"{what:<48} {numbers}  ({len(seconds)} claims)")


Script = Callable[[JobsBench, argparse.Namespace], AsyncIterator[Line]]
"""What a part does with the cluster, once claimctl leads."""


def play(
    options: argparse.Namespace, script: Script, claims: int, wanted: Wanted | None = None
) -> list[Line]:
    """Run ``script`` beside a control plane and one controller of claimctl.

    Args:
        options: has ``common_flags``.
        claims: how many claims are allocated at the same time.
    """
    programs = find_programs(Path(os.environ[ASSETS]))
    plane = limited(wanted or Wanted(pod_groups=options.gates), options)
    with (
        _directory(options.keep) as folder,
        running(ControlPlane(programs, folder, plane)) as started,
    ):
        return asyncio.run(_play(started, options, script, claims))


async def _play(
    plane: ControlPlane, options: argparse.Namespace, script: Script, claims: int
) -> list[Line]:
    async with HttpTransport(load_connection(str(plane.files.kubeconfig()))) as transport:
        fleet = Fleet(plane.programs.version, count=NODES, devices=2 * (claims // NODES + 8))
        controllers = Controllers(plane.files, plane.directory, flags=tuple(options.flag))
        bench = JobsBench(plane, transport, fleet, controllers)
        kubelets, joined = Kubelets(transport, fleet, pod_groups=options.gates), asyncio.Event()
        kinds = ((POD, bench.seen.pod), (JOB, bench.seen.job), (fleet.claims, bench.seen.claim))
        followers = [Follower(transport, *kind).run() for kind in kinds]
        tasks = [asyncio.create_task(each) for each in (kubelets.run(joined), *followers)]
        try:
            await joined.wait()
            await controllers.install(transport)
            controllers.start("one")
            await asyncio.sleep(LEASE)
            return [line async for line in script(bench, options)]
        finally:
            for name in list(controllers.running):
                controllers.kill(name)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def limited(wanted: Wanted, options: argparse.Namespace) -> Wanted:
    """The options of a control plane, with Kubernetes' own rate limits if they are asked for."""
    if not options.usual_limits:
        return wanted
    return replace(
        wanted,
        controller_manager_flags=("--kube-api-qps=20", "--kube-api-burst=30"),
        scheduler_flags=("--kube-api-qps=50", "--kube-api-burst=100"),
    )


def limits_flag(parser: argparse.ArgumentParser) -> None:
    """The flag that ``limited`` reads."""
    text = "the default rate limits of kube-controller-manager and kube-scheduler, not 500 a second"
    parser.add_argument("--usual-limits", action="store_true", help=text)


def common_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gates", action="store_true", help="switch PodGroups on (1.36)")
    parser.add_argument("--keep", default="", help="a folder for the logs")
    parser.add_argument("--flag", action="append", default=[], help="a flag of the controller")
    limits_flag(parser)


@contextmanager
def _directory(kept: str) -> Iterator[Path]:
    if kept:
        Path(kept).mkdir(parents=True, exist_ok=True)
        yield Path(kept)
        return
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)
