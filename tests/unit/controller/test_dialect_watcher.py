"""When the dialect is detected again, and what of it is reported."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random

from claimctl.controller.dialect import (
    PAUSE,
    RETRY,
    TROUBLE,
    Detection,
    DialectProbe,
    DialectUnknown,
    Redetection,
)
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.errors import NotFound, ServerError
from claimctl.kube.informer import Informer
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.resources import RESOURCECLAIMS
from tests.support.builders import NOW
from tests.support.counting_server import server

HOLD = Detection("hold", (1, 35), ("before",))
NATIVE = Detection("native", (1, 37), ("after",))
LIST = ("GET", "/apis/resource.k8s.io/v1/resourceclaims")


class Probe(DialectProbe):
    """Answers what a test wants, and counts how often it is asked."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.answer: Detection | Exception = HOLD
        self.asked = 0

    async def detect(self) -> Detection:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class FollowedClaims(Informer[ResourceClaim]):
    """An informer whose connections and troubles a test makes."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, RESOURCECLAIMS, LoopClock(NOW), rng=Random(0))
        self.connected: Callable[[], None] = lambda: None

    def on_connect(self, handler: Callable[[], None]) -> None:
        self.connected = handler


@dataclass
class Watching:
    probe: Probe
    informer: FollowedClaims
    found: list[Detection] = field(default_factory=list)

    async def changed(self, detection: Detection) -> None:
        self.found.append(detection)


@asynccontextmanager
async def watching() -> AsyncIterator[Watching]:
    """The dialect was ``hold`` at the start, and the first watch is open."""
    client = server().client
    on = Watching(Probe(client), FollowedClaims(client))
    task = Redetection(on.probe, on.informer, LoopClock(NOW), on.changed)
    running = asyncio.create_task(task.run(HOLD))
    on.informer.connected()
    yield on
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_the_first_watch_is_no_reason_to_look_again() -> None:
    async with watching() as on:
        await asyncio.sleep(3600)
        assert on.probe.asked == 0


async def test_a_watch_that_is_opened_again_is_followed_by_one_look() -> None:
    async with watching() as on:
        on.informer.connected()
        await asyncio.sleep(PAUSE / 2)
        assert on.probe.asked == 0, "the server may still be starting"
        on.informer.connected()
        await asyncio.sleep(3600)
        assert (on.probe.asked, on.found) == (1, [])


async def test_each_change_is_reported_once() -> None:
    async with watching() as on:
        for answer in (NATIVE, NATIVE, HOLD):
            on.probe.answer = answer
            on.informer.connected()
            await asyncio.sleep(2 * PAUSE)
        assert on.probe.asked == 3
        assert on.found == [NATIVE, HOLD]


async def test_a_version_that_is_not_served_any_more_is_looked_at_without_a_watch() -> None:
    async with watching() as on:
        on.probe.answer = NATIVE
        on.informer.trouble = ServerError(*LIST)
        await asyncio.sleep(10 * TROUBLE)
        assert on.probe.asked == 0
        on.informer.trouble = NotFound(*LIST)
        await asyncio.sleep(TROUBLE + PAUSE)
        assert on.found == [NATIVE]


async def test_a_server_that_cannot_be_asked_is_asked_again_until_it_answers() -> None:
    async with watching() as on:
        for error in (ServerError(*LIST), DialectUnknown("may not ask")):
            on.probe.answer = error
            on.informer.connected()
            await asyncio.sleep(PAUSE + 2 * RETRY)
            assert on.found == []
        asked = on.probe.asked
        assert asked >= 4
        on.probe.answer = NATIVE
        await asyncio.sleep(RETRY + PAUSE)
        assert on.found == [NATIVE]
        await asyncio.sleep(10 * RETRY)
        assert on.probe.asked == asked + 1
