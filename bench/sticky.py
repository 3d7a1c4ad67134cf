"""Sticky claims: how long ordinals take to start, and the requests over the life of a claim.

The servers of ``KUBEBUILDER_ASSETS`` run on the loopback, with a stand-in for kubelets.
StatefulSets with sticky claims and with claims from templates alone start by turns on one control
plane. A start ends when all pods run. The life of a sticky claim (its pod comes, is deleted and
comes again, and the ordinal is scaled away) is counted in the API server's audit log, beside that
of a named claim with a ClaimReservation; so are the requests while many ordinals are at rest.
``KUBEBUILDER_ASSETS=... python -m bench sticky [--ordinals 200] [--rounds N] [--rest 1000]``.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from kube_in_process.real.servers.following import Follower

from bench.jobs import POD, RESERVE, JobsBench, claim, common_flags, made, play
from bench.life import QUIET, READS, CountedRequest, audited, requests
from bench.start import Pods
from bench.table import BenchPart, Line, at_most, medians, register, tell
from claimctl.commands.install.components import documents
from claimctl.wire.base import Object
from labs.frame import beside

SET = ("apps/v1", "StatefulSet")
STICKY = {"claimctl.io/sticky": "*"}
LIMIT = 300.0
"""Seconds within which all pods have to run, or to be gone."""
REST, WATCHED = 30.0, 60.0
"""Seconds until nothing is left to do for ordinals whose pods run, and seconds that are counted."""
SET_SIZE = 200
"""The ordinals of each StatefulSet at rest."""


def _stateful_set(space: str, ordinals: int, *, sticky: bool, named: bool = False) -> Object:
    """A StatefulSet whose pods have claims from a template; ``named``: one named claim."""
    entry = {"resourceClaimName": "train"} if named else {"resourceClaimTemplateName": "gpu"}
    container = {"name": "main", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}
    template = {
        "metadata": {"labels": {"app": "train"}, "annotations": STICKY if sticky else {}},
        "spec": {"containers": [container], "resourceClaims": [{"name": "gpu", **entry}]},
    }
    body = made(*SET, "train", space)
    notes = {"claimctl.io/idle-timeout-seconds": "1", "claimctl.io/when-scaled": "Delete"}
    body["metadata"]["annotations"] = {**notes, **(RESERVE if named else {})}
    spec = {
        "serviceName": "train",
        "podManagementPolicy": "Parallel",
        "replicas": ordinals,
        "selector": {"matchLabels": {"app": "train"}},
        "template": template,
    }
    return {**body, "spec": spec}


class StickyBench:
    """StatefulSets on one control plane."""

    def __init__(self, bench: JobsBench) -> None:
        self.bench, self.client, self.pods = bench, bench.client, Pods()

    async def install(self) -> None:
        """Install the policy, and wait until it is in force."""
        for document in documents("sticky-claims"):
            await self.client.create(document)
        await asyncio.sleep(5.0)

    async def space(self, name: str) -> None:
        """Make a namespace with the template."""
        await self.client.create(made("v1", "Namespace", name))
        body = claim(self.bench.fleet, name, "gpu")
        spec = {"spec": body["spec"]}
        await self.client.create({**body, "kind": "ResourceClaimTemplate", "spec": spec})

    async def started(self, space: str, ordinals: int, *, sticky: bool) -> float:
        """Seconds until the pods of a new StatefulSet run."""
        await self.space(space)
        began = time.monotonic()
        await self.client.create(_stateful_set(space, ordinals, sticky=sticky))
        await self.pods.until(space, ordinals, LIMIT)
        return time.monotonic() - began

    async def ended(self, space: str) -> None:
        """Delete the StatefulSet, and wait until its pods and claims are gone."""
        await self.client.delete(SET, space, "train")
        await self.pods.until(space, 0, LIMIT)
        await self.until(partial(self._empty, space))

    async def _empty(self, space: str) -> bool:
        return not await self.client.list(self.bench.fleet.claims, space)

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(LIMIT):
            while True:
                if await holds():
                    return
                await asyncio.sleep(0.2)

    async def live(self, space: str, *, sticky: bool) -> None:
        """Let a claim come, lose its pod once, and be scaled away with its ordinal."""
        await self.space(space)
        if not sticky:
            await self.client.create(claim(self.bench.fleet, space, "train"))
        await self.client.create(_stateful_set(space, 1, sticky=sticky, named=not sticky))
        await self.pods.until(space, 1, LIMIT)
        await asyncio.sleep(QUIET)
        uids = await self._uids(space)
        await self.client.delete(POD, space, "train-0")
        await self.until(partial(self._replaced, space, uids))
        await self.pods.until(space, 1, LIMIT)
        await asyncio.sleep(QUIET)
        await self.client.patch(SET, space, "train", {"spec": {"replicas": 0}})
        await self.pods.until(space, 0, LIMIT)
        await self.until(partial(self._free, space))
        await asyncio.sleep(QUIET)

    async def _free(self, space: str) -> bool:
        claims = await self.client.list(self.bench.fleet.claims, space)
        return not any((each.get("status") or {}).get("allocation") for each in claims)

    async def _replaced(self, space: str, old: set[str]) -> bool:
        now = await self._uids(space)
        return bool(now) and not now & old

    async def _uids(self, space: str) -> set[str]:
        return {pod["metadata"]["uid"] for pod in await self.client.list(POD, space)}


@asynccontextmanager
async def _sticky(bench: JobsBench) -> AsyncIterator[StickyBench]:
    made_here = StickyBench(bench)
    await made_here.install()
    async with beside(Follower(bench.transport, POD, made_here.pods.notice).run()):
        yield made_here


async def _starts(bench: JobsBench, options: argparse.Namespace) -> AsyncIterator[Line]:
    """Start StatefulSets by turns."""
    seconds: dict[bool, list[float]] = {True: [], False: []}
    async with _sticky(bench) as sticky:
        for turn in range(options.rounds):
            for kind in (True, False) if turn % 2 else (False, True):
                space = f"{'sticky' if kind else 'alone'}-{turn}"
                took = await sticky.started(space, options.ordinals, sticky=kind)
                seconds[kind].append(took)
                tell(f"{space}: {options.ordinals} pods run after {took:.2f} s")
                await sticky.ended(space)
                await asyncio.sleep(3.0)
    name = f"sticky {bench.version}: {options.ordinals} ordinals, until all run"
    yield medians(name, seconds[True], "templates alone", seconds[False], goal=at_most(1.2))


async def _counts(bench: JobsBench, options: argparse.Namespace) -> AsyncIterator[Line]:
    """Count requests: over the life of a claim, and while many ordinals are at rest."""
    async with _sticky(bench) as sticky:
        await sticky.live("life-sticky", sticky=True)
        await sticky.live("life-named", sticky=False)
        for line in _lives(bench, options.log):
            yield line
        if options.rest:
            yield await _at_rest(sticky, options)


def _lives(bench: JobsBench, log: Path) -> list[Line]:
    found = {kind: requests(log, f"life-{kind}") for kind in ("sticky", "named")}
    for kind, made_there in found.items():
        for each, count in Counter(made_there).items():
            tell(f"{kind}: {count:3} {each.verb} {each.resource} {each.code}")
    name, ours, theirs = f"sticky {bench.version}: %s over a claim's life", *found.values()
    return [
        Line(name % "requests", len(ours), "named claim", len(theirs)),
        Line(name % "writes", _writes(ours), "named claim", _writes(theirs)),
    ]


def _writes(made_there: list[CountedRequest]) -> int:
    return sum(each.verb not in READS and not each.event for each in made_there)


async def _at_rest(sticky: StickyBench, options: argparse.Namespace) -> Line:
    """The requests of a minute in which nothing happens to ordinals whose pods run."""
    spaces = [f"rest-{number}" for number in range(-(-options.rest // SET_SIZE))]
    for space in spaces:
        took = await sticky.started(space, SET_SIZE, sticky=True)
        tell(f"{space}: {SET_SIZE} pods run after {took:.2f} s")
    await asyncio.sleep(REST)
    before = sum(len(requests(options.log, space)) for space in spaces)
    await asyncio.sleep(WATCHED)
    found = Counter(each for space in spaces for each in requests(options.log, space))
    tell(f"at rest: {before} requests before")
    count = len(spaces) * SET_SIZE
    made_then = found.total() - before
    name = f"sticky {sticky.bench.version}: requests a minute, {count} ordinals at rest"
    return Line(name, made_then, goal=at_most(0))


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ordinals", type=int, default=200, help="that start together")
    parser.add_argument("--rounds", type=int, default=5, help="starts of each kind")
    parser.add_argument("--rest", type=int, default=1000, help="ordinals at rest; 0: none")
    common_flags(parser)


def _part(options: argparse.Namespace) -> list[Line]:
    kept, lines = options.keep, []
    if options.rounds:
        options.keep = kept and f"{kept}/starts"
        lines = play(options, _starts, claims=options.ordinals)
    with tempfile.TemporaryDirectory() as folder:
        options.keep, options.log = kept and f"{kept}/counts", Path(folder, "audit.log")
        wanted = audited(Path(folder), options.log, pod_groups=options.gates)
        claims = max(options.rest, options.ordinals)
        return lines + play(options, _counts, claims=claims, wanted=wanted)


register(BenchPart("sticky", "sticky claims: start, life and rest", _part, _flags, real=True))
