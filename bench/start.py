"""How long many pods take to start that share one claim: with claimctl, and without it.

The servers of ``KUBEBUILDER_ASSETS`` run on the loopback, with a stand-in for kubelets. Each round
has servers of its own; rounds with and without claimctl alternate. A round creates a claim and a
Deployment, and ends when all its pods run. Conflicts are the API server's answers 409 to writes of
claims, by its own metrics.
``KUBEBUILDER_ASSETS=... python -m bench start [--pods N] [--rounds N]``.
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

from bench.jobs import limited, limits_flag
from bench.table import ASSETS, Line, Part, at_least, medians, register, tell
from claimctl.controlplane.following import Follower
from claimctl.controlplane.kubelet import Kubelets
from claimctl.controlplane.nodes import Fleet
from claimctl.controlplane.plane import ControlPlane, Wanted, running
from claimctl.controlplane.programs import Programs, find_programs
from claimctl.kube.connection import load_connection
from claimctl.kube.documents import DocumentClient
from claimctl.kube.transport import HttpTransport
from claimctl.wire.base import Object
from claimctl.wire.seams import Transport

CRDS = Path(__file__).parent.parent / "crds"
CONFLICT = re.compile(r'^apiserver_request_total\{[^}]*code="(409|422)"[^}]*\} ([0-9.e+]+)$', re.M)
START_SECONDS = 60.0
"""How long the controller may take to fill its caches."""
SETTLE_SECONDS = 5.0
"""How long new servers get before a round."""
FILLED = b"caches filled"
"""What the controller logs when it has filled its caches."""
POD = ("v1", "Pod")


@dataclass(frozen=True, slots=True)
class Round:
    """The result of one round."""

    seconds: float
    conflicts: int
    refused: int
    """Writes of claims that the API server refused with 422, such as a second entry for a pod."""


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
        """Wait until so many pods of the namespace run, and no other pod is there."""
        wanted = ["Running"] * running
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._of(namespace) != wanted:
                    self.changed.clear()
                    await self.changed.wait()
                return
        run = self._of(namespace).count("Running")
        raise SystemExit(f"{run} of {running} pods run after {seconds:g} s")

    def _of(self, namespace: str) -> list[str]:
        return [phase for key, phase in self.phases.items() if key[0] == namespace]


@dataclass(slots=True)
class Bench:
    """One control plane with what runs on it."""

    transport: Transport
    client: DocumentClient
    seen: Pods
    fleet: Fleet
    kubeconfig: Path
    pods: int
    limit: float

    async def round(self, *, helped: bool) -> Round:
        """Start the pods.

        Args:
            helped: whether a ClaimReservation is wanted for the Deployment.
        """
        namespace = "ml"
        await self.client.create(_meta("v1", "Namespace", namespace))
        await self.client.create(self._claim(namespace))
        before, began = await self._refusals(), time.monotonic()
        await self.client.create(self._deployment(namespace, helped=helped))
        await self.seen.until(namespace, self.pods, self.limit)
        seconds, after = time.monotonic() - began, await self._refusals()
        return Round(seconds, after["409"] - before["409"], after["422"] - before["422"])

    async def _refusals(self) -> dict[str, int]:
        """How often the API server has refused a write of a claim, by code."""
        answer = await self.transport.send("GET", "/metrics", (), {}, None)
        text = b"".join([part async for part in answer.body]).decode()
        found = {"409": 0, "422": 0}
        for line in text.splitlines():
            match = CONFLICT.match(line)
            if match and 'resource="resourceclaims"' in line:
                found[match[1]] += int(float(match[2]))
        return found

    def _claim(self, namespace: str) -> dict[str, Any]:
        chosen: dict[str, Any] = {"deviceClassName": self.fleet.device_class}
        flat = self.fleet.resource_api.endswith("v1beta1")
        request = {"name": "gpu", **(chosen if flat else {"exactly": chosen})}
        body = _meta(self.fleet.resource_api, "ResourceClaim", "slice", namespace)
        return {**body, "spec": {"devices": {"requests": [request]}}}

    def _deployment(self, namespace: str, *, helped: bool) -> dict[str, Any]:
        body = _meta("apps/v1", "Deployment", "train", namespace)
        if helped:
            body["metadata"]["annotations"] = {"claimctl.io/reserve": "*"}
        container = {"name": "main", "image": "none", "resources": {"claims": [{"name": "gpu"}]}}
        template = {
            "metadata": {"labels": {"app": "train"}},
            "spec": {
                "containers": [container],
                "resourceClaims": [{"name": "gpu", "resourceClaimName": "slice"}],
            },
        }
        selector = {"matchLabels": {"app": "train"}}
        spec = {"replicas": self.pods, "selector": selector, "template": template}
        return {**body, "spec": spec}

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
async def _bench(plane: ControlPlane, pods: int, limit: float) -> AsyncIterator[Bench]:
    kubeconfig = plane.files.kubeconfig()
    async with HttpTransport(load_connection(str(kubeconfig))) as transport:
        client, seen = DocumentClient(transport, "bench"), Pods()
        fleet, joined = Fleet(plane.programs.version), asyncio.Event()
        tasks = [
            asyncio.create_task(Kubelets(transport, fleet).run(joined)),
            asyncio.create_task(Follower(transport, client, POD, seen.notice).run()),
        ]
        try:
            await _first(asyncio.create_task(joined.wait()), tasks)
            for path in sorted(CRDS.glob("*.claimctl.io.yaml")):
                await client.create(yaml.safe_load(path.read_text()))
            yield Bench(transport, client, seen, fleet, Path(kubeconfig), pods, limit)
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


def measure(programs: Programs, options: argparse.Namespace) -> dict[str, list[Round]]:
    """The rounds by contender."""
    found: dict[str, list[Round]] = {"alone": [], "claimctl": []}
    for _ in range(options.rounds):
        for name in ("claimctl",) if options.only_claimctl else ("claimctl", "alone"):
            found[name].append(_measured(programs, options, helped=name == "claimctl"))
            _tell(name, found[name][-1])
    return found


def _measured(programs: Programs, options: argparse.Namespace, *, helped: bool) -> Round:
    """One round on servers of its own.

    Servers that had a round before are no measure: the Events of its conflicts take up the
    scheduler's rate limit, so that it binds one pod after the other and meets no conflicts.
    """
    wanted = limited(Wanted(), options)
    with (
        tempfile.TemporaryDirectory() as directory,
        running(ControlPlane(programs, Path(directory), wanted)) as plane,
    ):
        return asyncio.run(_round(plane, options, helped=helped))


async def _round(plane: ControlPlane, options: argparse.Namespace, *, helped: bool) -> Round:
    async with _bench(plane, options.pods, options.limit) as bench, AsyncExitStack() as stack:
        await asyncio.sleep(SETTLE_SECONDS)
        if helped:
            await stack.enter_async_context(bench.controller(*options.flag))
        return await bench.round(helped=helped)


def _tell(name: str, each: Round) -> None:
    text = f"{each.seconds:6.1f} s, {each.conflicts} conflicts, {each.refused} refused"
    tell(f"{name:9} {text}")


def lines(version: str, pods: int, found: dict[str, list[Round]]) -> Iterator[Line]:
    """The lines of one control plane."""
    ours, alone = found["claimctl"], found["alone"] or found["claimctl"]
    yield medians(
        f"start {version}: {pods} pods on one claim, until all run",
        [each.seconds for each in ours],
        "without claimctl",
        [each.seconds for each in alone],
        goal=at_least(10),
    )
    yield medians(
        f"start {version}: conflicts on the claim",
        [each.conflicts for each in ours],
        "without claimctl",
        [each.conflicts for each in alone],
        unit="",
        goal=at_least(10),
    )


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pods", type=int, default=250)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=400.0, help="seconds for one round")
    parser.add_argument("--flag", action="append", default=[], help="a flag of the controller")
    limits_flag(parser)
    parser.add_argument("--only-claimctl", action="store_true")


def _part(options: argparse.Namespace) -> Iterator[Line]:
    programs = find_programs(Path(os.environ[ASSETS]))
    found = measure(programs, options)
    yield from lines(".".join(map(str, programs.version)), options.pods, found)


register(Part("start", "pods that share a claim, until all run", _part, _flags, real=True))
