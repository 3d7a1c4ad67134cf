"""How long many pods take to start that share one claim: with claimctl, and without it.

The servers of ``KUBEBUILDER_ASSETS`` run on the loopback, with a stand-in for kubelets. Rounds with
and without claimctl alternate. A round creates a claim and a Deployment, and ends when all its pods
run. Conflicts are the API server's answers 409 to writes of claims, by its own metrics.
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
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bench.table import ASSETS, Line, Part, at_least, medians, register, tell
from claimctl.controlplane.kubelet import Kubelets
from claimctl.controlplane.nodes import Fleet
from claimctl.controlplane.plane import ControlPlane, running
from claimctl.controlplane.programs import find_programs
from claimctl.kube.connection import load_connection
from claimctl.kube.documents import DocumentClient
from claimctl.kube.transport import HttpTransport
from claimctl.wire.seams import Transport

CRDS = Path(__file__).parent.parent / "crds"
CONFLICT = re.compile(r'^apiserver_request_total\{[^}]*code="(409|422)"[^}]*\} ([0-9.e+]+)$', re.M)
LOOK_SECONDS, START_SECONDS = 0.1, 8.0
POD = ("v1", "Pod")
DEPLOYMENT = ("apps/v1", "Deployment")


@dataclass(frozen=True, slots=True)
class Round:
    """The result of one round."""

    seconds: float
    conflicts: int
    refused: int
    """Writes of claims that the API server refused with 422, such as a second entry for a pod."""


@dataclass(slots=True)
class Bench:
    """One control plane with what runs on it."""

    transport: Transport
    client: DocumentClient
    fleet: Fleet
    kubeconfig: Path
    pods: int
    limit: float
    rounds: int = 0

    async def round(self, *, helped: bool) -> Round:
        """Start the pods once, and delete everything again.

        Args:
            helped: whether a ClaimReservation is wanted for the Deployment.
        """
        self.rounds += 1
        namespace = f"round-{self.rounds}"
        await self.client.create({**_meta("v1", "Namespace", namespace)})
        await self.client.create(self._claim(namespace))
        before, began = await self._refusals(), time.monotonic()
        await self.client.create(self._deployment(namespace, helped=helped))
        await self._until(namespace, self.pods)
        seconds, after = time.monotonic() - began, await self._refusals()
        await self.client.patch(DEPLOYMENT, namespace, "train", {"spec": {"replicas": 0}})
        await self._until(namespace, 0)
        await self.client.delete(DEPLOYMENT, namespace, "train")
        await self.client.delete(self.fleet.claims, namespace, "slice")
        return Round(seconds, after["409"] - before["409"], after["422"] - before["422"])

    async def _until(self, namespace: str, wanted: int) -> None:
        end = time.monotonic() + self.limit
        while True:
            pods = await self.client.list(POD, namespace)
            run = sum((pod.get("status") or {}).get("phase") == "Running" for pod in pods)
            if run == wanted and (wanted or not pods):
                return
            if time.monotonic() > end:
                raise SystemExit(f"{run} of {wanted} pods run after {self.limit:g} s")
            await asyncio.sleep(LOOK_SECONDS)

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
            await asyncio.sleep(START_SECONDS)
            if process.returncode is not None:
                log = self.kubeconfig.with_name("controller.log").read_text()
                raise SystemExit(f"claimctl controller ended: {log.splitlines()[-1:]}")
            yield
        finally:
            with suppress(ProcessLookupError):
                process.terminate()
            await process.wait()


def _meta(api: str, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    where = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **where}}


@asynccontextmanager
async def _bench(plane: ControlPlane, pods: int, limit: float) -> AsyncIterator[Bench]:
    kubeconfig = plane.files.kubeconfig()
    async with HttpTransport(load_connection(str(kubeconfig))) as transport:
        fleet, joined = Fleet(plane.programs.version), asyncio.Event()
        kubelets = asyncio.create_task(Kubelets(transport, fleet).run(joined))
        waiting = asyncio.create_task(joined.wait())
        await asyncio.wait({kubelets, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if kubelets.done():
            kubelets.result()
        client = DocumentClient(transport, "bench")
        for path in sorted(CRDS.glob("*.claimctl.io.yaml")):
            await client.create(yaml.safe_load(path.read_text()))
        try:
            yield Bench(transport, client, fleet, Path(kubeconfig), pods, limit)
        finally:
            kubelets.cancel()
            waiting.cancel()


async def measure(plane: ControlPlane, options: argparse.Namespace) -> dict[str, list[Round]]:
    """The rounds of one control plane, by contender."""
    found: dict[str, list[Round]] = {"alone": [], "claimctl": []}
    async with _bench(plane, options.pods, options.limit) as bench:
        await asyncio.sleep(2.0)
        for _ in range(options.rounds):
            async with bench.controller(*options.flag):
                found["claimctl"].append(await bench.round(helped=True))
                _tell("claimctl", found["claimctl"][-1])
            if not options.only_claimctl:
                found["alone"].append(await bench.round(helped=False))
                _tell("alone", found["alone"][-1])
    return found


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
    parser.add_argument("--only-claimctl", action="store_true")


def _part(options: argparse.Namespace) -> Iterator[Line]:
    programs = find_programs(Path(os.environ[ASSETS]))
    with (
        tempfile.TemporaryDirectory() as directory,
        running(ControlPlane(programs, Path(directory))) as plane,
    ):
        found = asyncio.run(measure(plane, options))
    yield from lines(".".join(map(str, programs.version)), options.pods, found)


register(Part("start", "pods that share a claim, until all run", _part, _flags, real=True))
