"""How long pods take to start that share one claim: with claimctl, and without it.

The servers of ``KUBEBUILDER_ASSETS`` run on the loopback, with a stand-in for kubelets. Rounds with
and without claimctl alternate, each on servers of its own. There are two kinds of starts: a new
Deployment whose claim is not allocated yet (``new``), and one that is scaled up from 0 while its
claim is held (``held``; without claimctl, by an entry that the round writes). A start ends when all
its pods run. Conflicts are the API server's answers 409 to writes of claims, by its own metrics;
warnings are the pods with an Event 'Duplicate value'.
``KUBEBUILDER_ASSETS=... python -m bench start [--pods N ...] [--rounds N]``.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from kube_in_process.real.servers.following import Follower
from kube_in_process.real.servers.kubelet import Kubelets
from kube_in_process.real.servers.nodes import Fleet
from kube_in_process.real.servers.plane import ControlPlane, Wanted, running
from kube_in_process.real.servers.programs import Programs, find_programs

from bench.jobs import limited, limits_flag
from bench.table import ASSETS, BenchPart, Line, at_least, at_most, medians, register, tell
from claimctl.kube.transport import HttpTransport
from claimctl.login.connect import load_connection
from claimctl.wire.base import Object
from claimctl.wire.seams import Transport
from claimctl_demo.documents import DocumentClient

CRDS = Path(__file__).parent.parent / "crds"
CONFLICT = re.compile(r'^apiserver_request_total\{[^}]*code="409"[^}]*\} ([0-9.e+]+)$', re.M)
START_SECONDS = 60.0
"""How long the controller may take to fill its caches."""
SETTLE_SECONDS = 5.0
"""How long new servers get before a round."""
FILLED = b"caches filled"
"""What the controller logs when it has filled its caches."""
EVENT_SECONDS = 2.0
"""How long the scheduler's Events may take after a start."""
PLACES = 256
"""How many pods one claim can list."""
FEW, MANY = 8, 250
"""Up to so many pods, the scheduler alone is quick; from so many on, it is very slow."""
CLAIM = "slice"
POD = ("v1", "Pod")


@dataclass(frozen=True, slots=True)
class Start:
    """The result of one start."""

    seconds: float
    conflicts: int
    warned: int
    """The pods of which the scheduler reported that they were listed already."""


@dataclass(slots=True)
class Pods:
    """The phases of all pods, from a watch: to list them would cost the API server more."""

    phases: dict[tuple[str, str], str] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def notice(self, change: str, pod: Object) -> None:
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        if change == "DELETED":
            self.phases.pop(key, None)
        else:
            self.phases[key] = (pod.get("status") or {}).get("phase", "")
        self.changed.set()

    async def until(self, namespace: str, running: int, seconds: float) -> None:
        """Wait until so many pods of the namespace run, or none is there if 0."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self._there(namespace, running):
                    self.changed.clear()
                    await self.changed.wait()
                return
        run = self._of(namespace).count("Running")
        raise SystemExit(f"{run} of {running} pods run after {seconds:g} s")

    def _there(self, namespace: str, running: int) -> bool:
        phases = self._of(namespace)
        return phases.count("Running") >= running if running else not phases

    def _of(self, namespace: str) -> list[str]:
        return [phase for key, phase in self.phases.items() if key[0] == namespace]


@dataclass(slots=True)
class StartBench:
    """One control plane with what runs on it."""

    transport: Transport
    client: DocumentClient
    seen: Pods
    fleet: Fleet
    kubeconfig: Path
    limit: float

    async def start(self, pods: int, *, scaled: bool, helped: bool) -> Start:
        """Start a Deployment.

        Args:
            scaled: whether the claim is held already, and the Deployment is scaled up from 0.
            helped: whether a ClaimReservation is wanted for the Deployment.
        """
        namespace = f"{'held' if scaled else 'new'}-{pods}"
        await self.client.create(_meta("v1", "Namespace", namespace))
        await self.client.create(self._claim(namespace))
        made = self._deployment(namespace, 1 if scaled else pods, helped=helped)
        if scaled:
            await self._hold(await self.client.create(made), helped=helped)
        before, began = await self._conflicts(), time.monotonic()
        await (self._scale(namespace, pods) if scaled else self.client.create(made))
        await self.seen.until(namespace, min(pods, PLACES), self.limit)
        seconds, after = time.monotonic() - began, await self._conflicts()
        await asyncio.sleep(EVENT_SECONDS)
        found = Start(seconds, after - before, await self._warned(namespace))
        await self._scale(namespace, 0)
        return found

    async def _hold(self, deployment: Object, *, helped: bool) -> None:
        """Have the claim held while no pod runs."""
        namespace, of = deployment["metadata"]["namespace"], self.fleet.claims
        await self.seen.until(namespace, 1, self.limit)
        await asyncio.sleep(SETTLE_SECONDS)
        if not helped:
            name, uid = (deployment["metadata"][key] for key in ("name", "uid"))
            hold = {"apiGroup": "apps", "resource": "deployments", "name": name, "uid": uid}
            listed = (await self.client.get(of, namespace, CLAIM))["status"]["reservedFor"]
            body = {"status": {"reservedFor": [*listed, hold]}}
            await self.client.patch_status(of, namespace, CLAIM, body)
        await self._scale(namespace, 0)
        await self.seen.until(namespace, 0, self.limit)
        await asyncio.sleep(SETTLE_SECONDS)

    async def _scale(self, namespace: str, pods: int) -> None:
        kind = ("apps/v1", "Deployment")
        await self.client.patch(kind, namespace, "train", {"spec": {"replicas": pods}})

    async def _warned(self, namespace: str) -> int:
        events = await self.client.list(("v1", "Event"), namespace)
        told = [each for each in events if "Duplicate value" in each.get("message", "")]
        return len({each["involvedObject"]["name"] for each in told})

    async def _conflicts(self) -> int:
        """How often the API server has refused a write of a claim for its version."""
        answer = await self.transport.send("GET", "/metrics", (), {}, None)
        text = b"".join([part async for part in answer.body]).decode()
        matches = filter(None, map(CONFLICT.match, text.splitlines()))
        of_claims = [each for each in matches if 'resource="resourceclaims"' in each[0]]
        return sum(int(float(each[1])) for each in of_claims)

    def _claim(self, namespace: str) -> dict[str, Any]:
        chosen: dict[str, Any] = {"deviceClassName": self.fleet.device_class}
        flat = self.fleet.resource_api.endswith("v1beta1")
        request = {"name": "gpu", **(chosen if flat else {"exactly": chosen})}
        body = _meta(self.fleet.resource_api, "ResourceClaim", CLAIM, namespace)
        return {**body, "spec": {"devices": {"requests": [request]}}}

    def _deployment(self, namespace: str, pods: int, *, helped: bool) -> dict[str, Any]:
        body = _meta("apps/v1", "Deployment", "train", namespace)
        if helped:
            body["metadata"]["annotations"] = {"claimctl.io/reserve": "*"}
        container = {"name": "main", "image": "none", "resources": {"claims": [{"name": "gpu"}]}}
        template = {
            "metadata": {"labels": {"app": "train"}},
            "spec": {
                "containers": [container],
                "resourceClaims": [{"name": "gpu", "resourceClaimName": CLAIM}],
            },
        }
        selector = {"matchLabels": {"app": "train"}}
        return {**body, "spec": {"replicas": pods, "selector": selector, "template": template}}

    @asynccontextmanager
    async def controller(self, *flags: str) -> AsyncIterator[None]:
        """Run ``claimctl controller`` as a process of its own."""
        command = ["controller", "--kubeconfig", str(self.kubeconfig), "--no-leader-elect"]
        process = await asyncio.create_subprocess_exec(
            *(
                str(Path(sys.executable).with_name("claimctl")),
                *command,
                "--bind-address",
                "",
                *flags,
            ),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=self.kubeconfig.with_name("controller.log").open("wb"),
        )
        try:
            await self._filled(process)
            yield
        finally:
            with suppress(ProcessLookupError):
                process.terminate()
            await process.wait()

    async def _filled(self, process: asyncio.subprocess.Process) -> None:
        """Wait until the controller has filled its caches."""
        log = self.kubeconfig.with_name("controller.log")
        end = time.monotonic() + START_SECONDS
        while FILLED not in (text := log.read_bytes()):
            if process.returncode is not None or time.monotonic() > end:
                raise SystemExit(f"claimctl controller did not start: {text.splitlines()[-1:]}")
            await asyncio.sleep(0.1)
        # the workers begin right after that
        await asyncio.sleep(0.5)


def _meta(api: str, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    where = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **where}}


@asynccontextmanager
async def _bench(plane: ControlPlane, limit: float) -> AsyncIterator[StartBench]:
    kubeconfig = plane.files.kubeconfig()
    async with HttpTransport(load_connection(str(kubeconfig))) as transport:
        client, seen = DocumentClient(transport, "bench"), Pods()
        fleet, joined = Fleet(plane.programs.version), asyncio.Event()
        tasks = [
            asyncio.create_task(Kubelets(transport, fleet).run(joined)),
            asyncio.create_task(Follower(transport, POD, seen.notice).run()),
        ]
        try:
            await _first(asyncio.create_task(joined.wait()), tasks)
            for path in sorted(CRDS.glob("*.claimctl.io.yaml")):
                await client.create(yaml.safe_load(path.read_text()))
            yield StartBench(transport, client, seen, fleet, Path(kubeconfig), limit)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _first(awaited: asyncio.Task[Any], others: Sequence[asyncio.Task[Any]]) -> None:
    """Wait for a task; if one of the others ends before it, raise its error."""
    await asyncio.wait({awaited, *others}, return_when=asyncio.FIRST_COMPLETED)
    for task in others:
        if task.done():
            awaited.cancel()
            task.result()


Found = dict[tuple[str, int], dict[str, list[Start]]]
"""The starts by kind and number of pods, then by contender."""
HELPED = {"claimctl": (), "--no-list-ahead": ("--no-list-ahead",)}
"""The contenders with a controller, and its further flags."""


def measure(programs: Programs, options: argparse.Namespace) -> Found:
    """The starts of all rounds."""
    found: Found = {}
    for _ in range(options.rounds):
        for contender in options.contenders:
            for (kind, pods), each in _measured(programs, options, contender).items():
                found.setdefault((kind, pods), {}).setdefault(contender, []).append(each)
    return found


def _measured(
    programs: Programs, options: argparse.Namespace, contender: str
) -> dict[tuple[str, int], Start]:
    """One round on servers of its own, from few pods to many.

    Servers that had a round with many pods before are no measure: the Events of its conflicts take
    up the scheduler's rate limit, so that it binds one pod after the other and meets no conflicts.
    """
    found: dict[tuple[str, int], Start] = {}
    for several in _together(options):
        wanted = limited(Wanted(), options)
        with (
            tempfile.TemporaryDirectory() as directory,
            running(ControlPlane(programs, Path(directory), wanted)) as plane,
        ):
            found |= asyncio.run(_round(plane, options, contender, several))
    return found


def _together(options: argparse.Namespace) -> list[list[tuple[str, int]]]:
    """The starts that share servers: those of few pods."""
    wanted = [(kind, pods) for pods in sorted(options.pods) for kind in options.kinds]
    few = [each for each in wanted if each[1] <= FEW]
    return [few] * bool(few) + [[each] for each in wanted if each[1] > FEW]


async def _round(
    plane: ControlPlane,
    options: argparse.Namespace,
    contender: str,
    wanted: Sequence[tuple[str, int]],
) -> dict[tuple[str, int], Start]:
    found: dict[tuple[str, int], Start] = {}
    async with _bench(plane, options.limit) as bench, AsyncExitStack() as stack:
        await asyncio.sleep(SETTLE_SECONDS)
        helped = contender in HELPED
        if helped:
            await stack.enter_async_context(bench.controller(*HELPED[contender], *options.flag))
        for kind, pods in wanted:
            each = await bench.start(pods, scaled=kind == "held", helped=helped)
            found[kind, pods] = each
            text = f"{each.seconds:6.2f} s, {each.conflicts} conflicts, {each.warned} warned"
            tell(f"{contender:15} {kind:4} {pods:3} {text}")
    return found


def lines(version: str, found: Found) -> Iterator[Line]:
    """The lines of one control plane."""
    for (kind, pods), by in found.items():
        ours, name = by.get("claimctl", []), f"start {version}: {kind}, {pods} pods"
        goal = at_most(1.1) if pods <= FEW else at_least(10 if pods >= MANY else 4)
        for other in [other for other in by if ours and other != "claimctl"]:
            seconds = [[each.seconds for each in by[who]] for who in ("claimctl", other)]
            yield medians(f"{name}, until they run", seconds[0], other, seconds[1], goal=goal)
        warned = sum(each.warned for each in ours)
        allowed = 0 if pods <= FEW else pods * len(ours) // 100
        yield Line(
            f"{name}, all warnings 'Duplicate value'", warned, goal=at_most(allowed), runs=len(ours)
        )


def _flags(parser: argparse.ArgumentParser) -> None:
    contenders = (*HELPED, "alone")
    parser.add_argument("--pods", type=int, nargs="+", default=[1, 3, 8, 40, 250])
    parser.add_argument("--kinds", nargs="+", default=["new", "held"], choices=("new", "held"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=400.0, help="seconds for one start")
    parser.add_argument("--flag", action="append", default=[], help="a flag of the controller")
    limits_flag(parser)
    parser.add_argument(
        "--contenders", nargs="+", default=["claimctl", "alone"], choices=contenders
    )


def _part(options: argparse.Namespace) -> Iterator[Line]:
    programs = find_programs(Path(os.environ[ASSETS]))
    yield from lines(".".join(map(str, programs.version)), measure(programs, options))


register(BenchPart("start", "pods that share a claim, until all run", _part, _flags, real=True))
