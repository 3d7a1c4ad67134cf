"""A timeline read from an API server: its history where it has one, else its objects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import Any

import pytest
from kube_in_process.storage.requests import DeleteOptions, Fault, FaultPoint

from claimctl.commands.timeline.model import GONE, RUNNING, WAITING, Lane, Source
from claimctl.commands.timeline.read import read
from claimctl.commands.timeline.shapes import RESOURCES
from claimctl.kube.client import Client
from claimctl.kube.codec import WatchEvent
from claimctl.kube.errors import NotFound
from claimctl.wire.resources import EVENTS, Resource
from tests.support.claim_server import NAMESPACE, Server


async def test_a_server_that_knows_everything_tells_the_whole_history() -> None:
    server = Server.started()
    server.claim("slice")
    server.pod("a", node="")
    await asyncio.sleep(10)
    server.admin.delete("pods", NAMESPACE, "a")
    await asyncio.sleep(60)
    found = await read(server.client, server.clock, NAMESPACE, "slice")
    assert found.source is Source.HISTORY
    (waiting,) = found.of(Lane.POD, WAITING)
    assert waiting.end == waiting.start + timedelta(seconds=10)
    assert found.rows(Lane.HOLDER).keys() == {"deployments/train"}


async def test_a_force_deleted_pod_ends_when_the_next_write_shows_that_it_is_gone() -> None:
    """Nothing dates such a deletion, and the write before it may be minutes old."""
    server = Server.started()
    server.claim("slice")
    server.pod("a")
    await asyncio.sleep(900)
    force = DeleteOptions(grace_period_seconds=0)
    server.admin.delete("pods", NAMESPACE, "a", force)
    server.pod("b")
    found = await read(server.client, server.clock, NAMESPACE, "slice")
    (running,) = [span for span in found.of(Lane.POD, RUNNING) if span.name == "a"]
    assert running.end == running.start + timedelta(seconds=900)


async def test_a_pod_has_run_until_its_container_ended() -> None:
    """No time of the object itself says so, and the write before it may be minutes old."""
    server = Server.started()
    server.claim("slice")
    server.pod("a")
    began = server.clock.now()
    await asyncio.sleep(600)
    ended = {"startedAt": _second(began), "finishedAt": _second(server.clock.now()), "exitCode": 0}
    status = {"phase": "Succeeded", "containerStatuses": [_terminated(ended)]}
    server.admin.patch("pods", NAMESPACE, "a", {"status": status}, "status")
    timeline = await read(server.client, server.clock, NAMESPACE, "slice")
    (running,) = timeline.of(Lane.POD, RUNNING)
    assert running.end == running.start + timedelta(seconds=600)


def _second(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def _terminated(state: dict[str, Any]) -> dict[str, Any]:
    about = {"name": "main", "image": "x", "imageID": "x", "ready": False, "restartCount": 0}
    return {**about, "state": {"terminated": state}}


@pytest.mark.parametrize("kind", RESOURCES, ids=lambda kind: kind.plural)
async def test_a_history_that_ends_too_early_is_not_believed(
    kind: Resource[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server.holding()
    server.pod("a")
    watch = Client.watch

    async def ends_early(
        client: Client, resource: Resource[Any], *where: str, **how: Any
    ) -> AsyncIterator[WatchEvent[Any]]:
        async with aclosing(watch(client, resource, *where, **how)) as events:
            async for event in events:
                if resource is kind:
                    return
                yield event

    monkeypatch.setattr(Client, "watch", ends_early)
    found = await read(server.client, server.clock, NAMESPACE, "slice")
    assert found.source is Source.OBJECTS


async def test_after_the_first_error_no_read_of_the_history_goes_on() -> None:
    server = Server.started()
    server.claim("slice")
    server.pod("a")

    def pods_are_slow(point: FaultPoint) -> Fault | None:
        if point.verb == "watch" and point.plural == "pods":
            return Fault(delay=1000)
        return forgets(point)

    server.handler.fault = pods_are_slow
    await read(server.client, server.clock, NAMESPACE, "slice")
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_server_that_has_forgotten_tells_what_its_objects_say() -> None:
    server = Server.holding()
    server.pod("a")
    server.handler.fault = forgets
    found = await read(server.client, server.clock, NAMESPACE, "slice")
    assert found.source is Source.OBJECTS
    assert found.rows(Lane.HOLDER).keys() == {"deployments/train"}
    assert found.rows(Lane.POD).keys() == {"a", GONE}


EVENT = {
    "metadata": {"name": "e", "namespace": NAMESPACE},
    "regarding": {"kind": "ResourceClaim", "name": "slice", "namespace": NAMESPACE},
    "eventTime": "2026-03-01T12:00:00.000000Z",
    "reportingController": "test",
    "reportingInstance": "test-1",
    "action": "Reserve",
    "reason": "Reserved",
    "note": "held for deployments.apps/train",
    "type": "Normal",
}


@pytest.mark.parametrize(
    ("groups", "told"),
    [((), True), (("events.k8s.io",), True), (("events.k8s.io", ""), False)],
    ids=["all", "core only", "none"],
)
async def test_events_are_read_where_they_may_be_read(groups: tuple[str, ...], told: bool) -> None:
    """The built-in role view may read Events in the core group only."""
    server = Server.started()
    server.claim("slice")
    await server.client.create(EVENTS, EVENT, NAMESPACE)

    def refuses(point: FaultPoint) -> Fault | None:
        if point.plural == "events" and point.group in groups:
            return Fault(status=403, reason="Forbidden")
        return forgets(point)

    server.handler.fault = refuses
    found = await read(server.client, server.clock, NAMESPACE, "slice")
    texts = [each.message for each in found.marks]
    assert ("held for deployments.apps/train" in texts) is told
    assert any("may not be read" in note for note in found.notes) is not told


@pytest.mark.parametrize("group", ["events.k8s.io", ""])
@pytest.mark.parametrize(
    ("related", "told"),
    [
        ({"kind": "ClaimReservation", "name": "train", "namespace": NAMESPACE}, True),
        ({"kind": "ClaimReservation", "name": "other", "namespace": NAMESPACE}, False),
        (None, True),
    ],
)
async def test_a_workloads_events_about_another_claim_are_left_out(
    related: dict[str, str] | None, told: bool, group: str
) -> None:
    server = Server.holding()
    about = {"kind": "Deployment", "name": "train", "namespace": NAMESPACE}
    event = {**EVENT, "regarding": about, **({"related": related} if related else {})}
    await server.client.create(EVENTS, event, NAMESPACE)

    def refuses(point: FaultPoint) -> Fault | None:
        if point.plural == "events" and point.group != group:
            return Fault(status=403, reason="Forbidden")
        return forgets(point)

    server.handler.fault = refuses
    marks = (await read(server.client, server.clock, NAMESPACE, "slice")).marks
    assert ("held for deployments.apps/train" in [mark.message for mark in marks]) is told


def forgets(point: FaultPoint) -> Fault | None:
    return Fault(status=410, reason="Expired") if point.verb == "watch" else None


async def test_a_claim_that_is_not_there() -> None:
    with pytest.raises(NotFound):
        await read(Server.started().client, Server.started().clock, NAMESPACE, "nope")
