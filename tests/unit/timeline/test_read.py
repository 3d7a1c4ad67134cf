"""A timeline read from an API server: its history where it has one, else its objects."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from claimctl.embedded.storage.requests import Fault, FaultPoint
from claimctl.kube.errors import NotFound
from claimctl.timeline.model import WAITING, Lane, Source
from claimctl.timeline.read import read
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


async def test_a_server_that_has_forgotten_tells_what_its_objects_say() -> None:
    server = Server.started()
    reference = server.deployment()
    server.claim("slice", reference)
    server.reservation(status=server.held_status(reference))
    server.pod("a")
    server.handler.fault = forgets
    found = await read(server.client, server.clock, NAMESPACE, "slice")
    assert found.source is Source.OBJECTS
    assert found.rows(Lane.HOLDER).keys() == {"deployments/train"}
    assert found.rows(Lane.POD).keys() == {"a"}


def forgets(point: FaultPoint) -> Fault | None:
    return Fault(status=410, reason="Expired") if point.verb == "watch" else None


async def test_a_claim_that_is_not_there() -> None:
    with pytest.raises(NotFound):
        await read(Server.started().client, Server.started().clock, NAMESPACE, "nope")
