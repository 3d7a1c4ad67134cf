"""Events: written once, counted after that, and never in the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.events import EventLimits, EventRecorder
from claimctl.wire.coordination import ObjectReference
from tests.support.wire_server import Reply, WireServer, failure, ok, silence

EPOCH = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CLAIM = ObjectReference(
    api_version="resource.k8s.io/v1",
    kind="ResourceClaim",
    namespace="ns",
    name="c",
    uid="u",
    resource_version="77",
)


def stored(version: int) -> Reply:
    meta = {"name": "c.1", "namespace": "ns", "resourceVersion": str(version)}
    return ok({"metadata": meta}, 201)


def say(recorder: EventRecorder, note: str = "held", about: ObjectReference = CLAIM) -> None:
    recorder.record(about, type="Normal", reason="Reserved", note=note, action="Reserve")


@asynccontextmanager
async def recording(
    server: WireServer, limits: EventLimits | None = None
) -> AsyncIterator[EventRecorder]:
    """A recorder that runs for a while."""
    clock = LoopClock(EPOCH)
    client = Client(server, clock, rng=Random(1))
    recorder = EventRecorder(client, clock, "claimctl.io/controller", "pod-1", limits)
    task = asyncio.create_task(recorder.run())
    yield recorder
    task.cancel()


async def drained(recorder: EventRecorder) -> float:
    """How many seconds a drain took."""
    began = asyncio.get_running_loop().time()
    await recorder.drain()
    return asyncio.get_running_loop().time() - began


def bodies(server: WireServer) -> list[Any]:
    return [request.body for request in server.requests]


async def test_an_event_says_who_saw_what_on_which_object() -> None:
    server = WireServer(stored(1))
    async with recording(server) as recorder:
        say(recorder)
        await asyncio.sleep(1)
    assert server.lines == ["POST /apis/events.k8s.io/v1/namespaces/ns/events"]
    assert bodies(server) == [
        {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": "c.6475ef64cf340.1", "namespace": "ns"},
            "eventTime": "2026-01-02T03:04:05.000000Z",
            "reportingController": "claimctl.io/controller",
            "reportingInstance": "pod-1",
            "action": "Reserve",
            "reason": "Reserved",
            "regarding": {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "namespace": "ns",
                "name": "c",
                "uid": "u",
            },
            "note": "held",
            "type": "Normal",
        }
    ]


async def test_repeats_become_a_series_that_is_patched_now_and_then() -> None:
    server = WireServer(stored(1), stored(2), stored(3))
    async with recording(server) as recorder:
        for _ in range(40):
            say(recorder)
            await asyncio.sleep(1)
        await asyncio.sleep(60)
    assert server.lines == [
        "POST /apis/events.k8s.io/v1/namespaces/ns/events",
        "PATCH /apis/events.k8s.io/v1/namespaces/ns/events/c.1",
        "PATCH /apis/events.k8s.io/v1/namespaces/ns/events/c.1",
    ]
    assert server.times == [0, 30, 60]
    assert bodies(server)[1:] == [
        {
            "series": {"count": 31, "lastObservedTime": "2026-01-02T03:04:35.000000Z"},
            "metadata": {"resourceVersion": "1"},
        },
        {
            "series": {"count": 40, "lastObservedTime": "2026-01-02T03:04:44.000000Z"},
            "metadata": {"resourceVersion": "2"},
        },
    ]


@pytest.mark.parametrize(("pause", "again"), [(360.0, "PATCH"), (360.5, "POST")])
async def test_after_the_window_a_repeat_is_a_new_event(pause: float, again: str) -> None:
    server = WireServer(stored(1), stored(2))
    async with recording(server) as recorder:
        say(recorder)
        await asyncio.sleep(pause)
        say(recorder)
        await asyncio.sleep(31)
    assert [request.method for request in server.requests] == ["POST", again]


async def test_a_series_whose_event_is_gone_begins_anew_with_its_count() -> None:
    server = WireServer(stored(1), failure(404, "NotFound"), stored(5))
    async with recording(server) as recorder:
        say(recorder)
        await asyncio.sleep(1)
        say(recorder)
        await asyncio.sleep(60)
    assert [request.method for request in server.requests] == ["POST", "PATCH", "POST"]
    assert bodies(server)[2]["series"]["count"] == 2


async def test_one_object_cannot_flood_the_server() -> None:
    server = WireServer(*(stored(n) for n in range(100)))
    async with recording(server) as recorder:
        for number in range(60):
            say(recorder, f"note {number}")
        await asyncio.sleep(1)
        assert len(server.requests) == 25
        say(recorder, "about another", ObjectReference(kind="Pod", name="p", namespace="ns"))
        await asyncio.sleep(120)
        say(recorder, "two minutes later")
        await asyncio.sleep(1)
    assert [body["note"] for body in bodies(server)[25:]] == ["about another", "two minutes later"]


async def test_a_server_that_refuses_events_is_not_asked_for_ever() -> None:
    server = WireServer(failure(403, "Forbidden"), stored(1))
    async with recording(server) as recorder:
        say(recorder)
        await asyncio.sleep(100)
        say(recorder, "another")
        await asyncio.sleep(1)
    assert [body["note"] for body in bodies(server)] == ["held", "another"]


async def test_the_queue_is_bounded() -> None:
    server = WireServer(*(stored(n) for n in range(100)))
    async with recording(server, EventLimits(pending=4)) as recorder:
        for number in range(10):
            say(recorder, f"note {number}")
        await asyncio.sleep(1)
    assert [body["note"] for body in bodies(server)] == [f"note {n}" for n in range(4)]


async def test_a_drain_writes_what_is_left_series_included() -> None:
    server = WireServer(stored(1), stored(2), stored(3))
    async with recording(server) as recorder:
        say(recorder)
        await asyncio.sleep(1)
        say(recorder)
        say(recorder, "last words")
    assert await drained(recorder) == 0
    assert [request.method for request in server.requests] == ["POST", "PATCH", "POST"]


async def test_a_drain_gives_up_after_its_deadline() -> None:
    async with recording(WireServer(silence())) as recorder:
        say(recorder)
    assert await drained(recorder) == 5.0


async def test_events_about_cluster_scoped_objects_live_in_the_default_namespace() -> None:
    server = WireServer(stored(1))
    async with recording(server) as recorder:
        say(recorder, about=ObjectReference(kind="DowngradePlan", name="plan"))
        await asyncio.sleep(1)
    assert server.lines == ["POST /apis/events.k8s.io/v1/namespaces/default/events"]


async def test_long_texts_are_cut_to_what_the_api_takes() -> None:
    server = WireServer(stored(1))
    async with recording(server) as recorder:
        say(recorder, "x" * 2000)
        await asyncio.sleep(1)
    note = bodies(server)[0]["note"]
    assert (len(note), note[-4:]) == (1024, "x...")
