"""How much memory foreign bytes cost the caches of a controller, and how long they take.

A server in this process makes fat objects while they are read: nothing is stored, so the process
has little but the caches. They list ``--objects`` of each kind that users write, each with a
foreign annotation of ``--size`` bytes. Then they follow changes of these objects, and pods that
name ``--names`` claims each and are made and deleted, until ``--gigabytes`` have passed. Memory is
the resident memory of the process, imports included: at most until the lists are there, and at the
end.
``python -m bench memory [--objects N] [--size BYTES] [--names N] [--gigabytes N]``.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from bench.table import BenchPart, Line, at_most, register
from claimctl.controller.caches.informers import Caches
from claimctl.controller.caches.kinds import KindState
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.reservation.kinds.rules import Rule
from claimctl.telemetry.logs import Level, configure
from claimctl.wire.resources import Resource
from claimctl.wire.seams import Query, Response
from claimctl.wire.workloads import CustomWorkload

FOLLOWED = Resource("example.com", "v1", "widgets", "Widget", CustomWorkload)
"""A kind that a ClaimReservation names, and that is judged by a rule."""
FAT = ("resourceclaims", "deployments", "statefulsets", "jobs", "replicasets", "widgets")
"""The kinds whose objects have the annotation."""
CHUNK = 65_536
MB = 1_000_000


@dataclass(frozen=True, slots=True)
class MemoryLoad:
    """What the server has: objects of each kind, the bytes of an annotation, the names of a pod,
    and the bytes that pass before all watches fall silent."""

    objects: int
    size: int
    names: int
    total: int


@dataclass(frozen=True, slots=True)
class FatAnswer:
    """See ``seams.Response``."""

    status: int
    headers: Mapping[str, str]
    body: AsyncIterator[bytes]
    close: Callable[[], Awaitable[None]]


@dataclass
class FatServer:
    """Makes the answers to lists and watches while they are read."""

    load: MemoryLoad
    sent: int = 0
    done: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when all bytes have passed."""

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        asked, plural = dict(query), path.rpartition("/")[2]
        chunks = self._changes(plural) if "watch" in asked else self._page(plural, asked)
        return FatAnswer(200, {}, self._sent(chunks, lasting="watch" in asked), _nothing)

    async def _sent(self, chunks: Iterator[bytes], *, lasting: bool) -> AsyncIterator[bytes]:
        for chunk in chunks:
            if lasting and self.sent >= self.load.total:
                self.done.set()
                break
            self.sent += len(chunk)
            for start in range(0, len(chunk), CHUNK):
                yield chunk[start : start + CHUNK]
            await asyncio.sleep(0)
        if lasting:
            await asyncio.Event().wait()

    def _page(self, plural: str, asked: Mapping[str, str]) -> Iterator[bytes]:
        first, limit = int(asked.get("continue", "0")), int(asked["limit"])
        count = self.load.objects if plural in FAT else 0
        last = min(first + limit, count) if limit else count
        token = b',"continue":"%d"' % last if last < count else b""
        yield b'{"metadata":{"resourceVersion":"1"%s},"items":[' % token
        for number in range(first, last):
            yield (b"," if number > first else b"") + self._object(number, 1)
        yield b"]}"

    def _changes(self, plural: str) -> Iterator[bytes]:
        version = 1
        while plural in FAT or plural == "pods":
            version += 1
            if plural == "pods":
                pod = self._pod(version)
                yield b'{"type":"ADDED","object":%s}\n' % pod
                yield b'{"type":"DELETED","object":%s}\n' % pod
            else:
                changed = self._object(version % max(self.load.objects, 1), version)
                yield b'{"type":"MODIFIED","object":%s}\n' % changed

    def _object(self, number: int, version: int) -> bytes:
        """An object of any kind, with a pod template that names a claim."""
        claims = b'[{"name":"c","resourceClaimName":"claim-%d"}]' % number
        return (
            b'{"metadata":%s,"spec":{"replicas":0,"template":{"spec":{"resourceClaims":%s}}},'
            b'"status":{"phase":"%d"}}'
        ) % (self._meta(number, version, b"%d" % version + b"x" * self.load.size), claims, version)

    def _pod(self, version: int) -> bytes:
        """A gated pod whose claims no other pod names."""
        claim = b'{"name":"c%d","resourceClaimName":"' + b"x" * 80 + b'-%d-%d"}'
        claims = b",".join(claim % (i, version, i) for i in range(self.load.names))
        meta = self._meta(version, version, b"")
        return (
            b'{"metadata":%s,"spec":{"schedulingGates":[{"name":"g"}],"resourceClaims":[%s]}}'
        ) % (meta, claims)

    def _meta(self, number: int, version: int, annotation: bytes) -> bytes:
        return (
            b'{"namespace":"tenant","name":"fat-%d","uid":"uid-%d","resourceVersion":"%d",'
            b'"annotations":{"tenant/fat":"%s"}}'
        ) % (number, number, version, annotation)


async def _nothing() -> None:
    """There is no connection to close."""


async def passed(load: MemoryLoad, listed: Callable[[], None]) -> Caches:
    """Let all bytes pass caches, and return these; call ``listed`` when all lists are there."""
    server, clock = FatServer(load), LoopClock()
    caches = Caches(Client(server, clock, rng=Random(1)), clock, Random(1))
    caches.kinds.follow(KindState(Rule("example.com", "Widget", "widgets"), FOLLOWED))
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(informer.run()) for informer in caches.followed()]
        for informer in caches.followed():
            await informer.wait_synced()
        listed()
        await server.done.wait()
        for task in running:
            task.cancel()
    return caches


def resident(field: str = "VmRSS") -> float:
    """Megabytes of this process, by the kernel; ``VmHWM`` for the most so far."""
    status = Path("/proc/self/status").read_text()
    found = re.search(rf"{field}:\s+(\d+)", status)
    return int(found[1]) / 1024 if found else 0.0


def _measured(load: MemoryLoad, pipe: multiprocessing.connection.Connection) -> None:
    configure(level=Level.ERROR)
    began = time.monotonic()
    start: list[float] = []
    asyncio.run(passed(load, lambda: start.extend((time.monotonic() - began, resident("VmHWM")))))
    pipe.send((*start, resident(), resident("VmHWM")))


def _memory(options: argparse.Namespace) -> Iterator[Line]:
    total = int(options.gigabytes * 1_000 * MB)
    load = MemoryLoad(options.objects, options.size, options.names, total)
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=_measured, args=(load, theirs), daemon=True)
    process.start()
    seconds, start, settled, most = mine.recv()
    process.join()
    what = f"memory: {len(FAT)} x {load.objects} objects of {load.size / 1_000:g} kB"
    yield Line(f"{what}: start", seconds, unit="s", goal=at_most(30))
    yield Line(f"{what}: at most in a start", start, unit="MB", goal=at_most(350))
    after = f"memory: {options.gigabytes:g} GB passed"
    yield Line(f"{after}: in the end", settled, unit="MB", goal=at_most(200))
    yield Line(f"{after}: at most", most, unit="MB", goal=at_most(350))


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--objects", type=int, default=1_000, help="of each of the kinds")
    parser.add_argument("--size", type=int, default=250_000, help="bytes of an annotation")
    parser.add_argument("--names", type=int, default=5_000, help="claims that a pod names")
    parser.add_argument("--gigabytes", type=float, default=4.0, help="lists and changes together")


register(BenchPart("memory", "memory of the caches while fat objects pass them", _memory, _flags))
