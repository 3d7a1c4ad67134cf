"""The requests that claimctl makes over the life of one claim, by the API server's audit log.

A workload that holds a claim is created, runs, and is deleted. Each request of claimctl about its
namespace counts. Watches, LISTs of all namespaces and renewals of the Lease serve all claims
together, so they do not count.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml
from kube_in_process.real.servers.plane import Wanted

from bench.jobs import JOB, POD, JobsBench, claim, common_flags, deployment, job, made, play
from bench.table import BenchPart, Line, at_most, register, tell
from claimctl.wire.base import Object
from labs.torture_real.controllers import USER

DEPLOYMENT = ("apps/v1", "Deployment")
RESERVATION = ("claimctl.io/v1alpha1", "ClaimReservation")
READS = frozenset({"get", "list", "watch"})
CONFLICT = 409
QUIET = 8.0
"""Seconds without events, in which claimctl reports what it has waited with."""


@dataclass(frozen=True, slots=True)
class CountedRequest:
    """One request of claimctl."""

    verb: str
    resource: str
    code: int

    @property
    def event(self) -> bool:
        return self.resource == "events"


def requests(log: Path, namespace: str) -> list[CountedRequest]:
    """The requests of claimctl about objects of the namespace, in order."""
    return list(_requests(log.read_text().splitlines(), namespace))


def _requests(lines: Iterable[str], namespace: str) -> Iterable[CountedRequest]:
    for entry in map(json.loads, lines):
        about = entry.get("objectRef", {})
        if about.get("namespace") == namespace and entry["user"]["username"] == USER:
            parts = (about["resource"], about.get("subresource"))
            yield CountedRequest(
                entry["verb"], "/".join(filter(None, parts)), entry["responseStatus"]["code"]
            )


async def _lives(bench: JobsBench, options: argparse.Namespace) -> AsyncIterator[Line]:
    for pods in options.pods:
        space = f"deployment-{pods}"
        await _live(bench, deployment(space, "train", pods), pods)
        for line in _lines(bench, f"Deployment of {pods} pods", requests(options.log, space)):
            yield line
    await _live(bench, job("job-1", "train", held=True), 1)
    for line in _lines(bench, "Job of 1 pod", requests(options.log, "job-1")):
        yield line


async def _live(bench: JobsBench, workload: Object, pods: int) -> None:
    """Let a workload come, run and go."""
    space, name = workload["metadata"]["namespace"], workload["metadata"]["name"]
    await bench.client.create(made("v1", "Namespace", space))
    await bench.client.create(claim(bench.fleet, space, name))
    await bench.client.create(workload)
    await _until(bench, space, pods)
    await asyncio.sleep(QUIET)
    kind = (workload["apiVersion"], workload["kind"])
    if kind == JOB:
        await bench.end([f"{space}/{name}"])
        await bench.freed([f"{space}/{name}"])
        await asyncio.sleep(QUIET)
    await bench.client.delete(kind, space, name)
    await _until(bench, space, 0)
    await _gone(bench, space)
    await asyncio.sleep(QUIET)


async def _until(bench: JobsBench, space: str, wanted: int) -> None:
    """Wait until so many pods run, and no other pod exists."""
    async with asyncio.timeout(300.0):
        while True:
            pods = await bench.client.list(POD, space)
            run = [pod for pod in pods if pod["status"].get("phase") == "Running"]
            if len(run) == wanted == len(pods):
                return
            await asyncio.sleep(0.2)


async def _gone(bench: JobsBench, space: str) -> None:
    """Wait until the reservation is gone."""
    async with asyncio.timeout(300.0):
        while True:
            if not await bench.client.list(RESERVATION, space):
                return
            await asyncio.sleep(0.2)


def _lines(bench: JobsBench, what: str, made: list[CountedRequest]) -> list[Line]:
    for each, count in Counter(made).items():
        tell(f"{what}: {count:3} {each.verb} {each.resource} {each.code}")
    events = [each for each in made if each.event]
    writes = [each for each in made if each.verb not in READS and not each.event]
    conflicts = [each for each in made if each.code == CONFLICT]
    name = f"life {bench.version}: %s of claimctl, {what}"
    return [
        Line(name % "requests", len(made), goal=at_most(8)),
        Line(name % "writes", len(writes), goal=at_most(5)),
        Line(name % "Events", len(events), goal=at_most(3)),
        Line(name % "conflicts", len(conflicts), goal=at_most(0)),
    ]


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pods", type=int, nargs="+", default=[1, 250], help="pods on a claim")
    common_flags(parser)


def _part(options: argparse.Namespace) -> list[Line]:
    with tempfile.TemporaryDirectory() as folder:
        options.log = Path(folder, "audit.log")
        wanted = audited(Path(folder), options.log, pod_groups=options.gates)
        return play(options, _lives, claims=max(options.pods), wanted=wanted)


def audited(folder: Path, log: Path, *, pod_groups: bool) -> Wanted:
    """A control plane that logs the requests of claimctl."""
    policy = folder / "policy.yaml"
    policy.write_text(yaml.safe_dump(_policy()))
    flags = (
        f"--audit-policy-file={policy}",
        f"--audit-log-path={log}",
        "--audit-log-mode=blocking",
    )
    return Wanted(pod_groups=pod_groups, api_server_flags=flags)


def _policy() -> Object:
    """Log the ends of claimctl's requests, and nothing else."""
    rules = [{"level": "Metadata", "users": [USER]}, {"level": "None"}]
    head = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy"}
    return {**head, "omitStages": ["RequestReceived", "ResponseStarted"], "rules": rules}


register(BenchPart("life", "requests of claimctl over the life of a claim", _part, _flags, True))
