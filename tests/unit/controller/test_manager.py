"""What a controller process says of itself while it starts."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from claimctl.controller.manager import Manager, NotSynced
from claimctl.controller.settings import Settings
from claimctl.embedded.options import Dialect
from claimctl.embedded.storage.requests import Fault, FaultPoint
from claimctl.kube.clock import LoopClock
from tests.support.builders import NOW
from tests.support.counting_server import Server, server
from tests.unit.controller.cluster import furnish

pytestmark = pytest.mark.virtual_limit(200)


def furnished() -> Server:
    made = server(Dialect.HOLD)
    furnish(made)
    return made


def manager(made: Server) -> Manager:
    settings = Settings.checked(identity="one", leader_elect=False, sync_timeout_seconds=20)
    return Manager(settings, made.transport, LoopClock(NOW), rng=Random(0))


def _refuse_pods(point: FaultPoint) -> Fault | None:
    lists = (point.verb, point.plural) == ("list", "pods")
    return Fault(status=500, message="no pods today") if lists else None


async def test_a_manager_is_ready_when_all_caches_are_filled() -> None:
    made = furnished()
    made.handler.fault = _refuse_pods
    tried, stop = manager(made), asyncio.Event()
    assert (tried.ready, tried.healthy) == (False, False)
    running = asyncio.create_task(tried.run(stop))
    await asyncio.sleep(5.0)
    assert (tried.ready, tried.healthy) == (False, True)
    made.handler.fault = None
    await asyncio.sleep(10.0)
    assert (tried.ready, tried.healthy) == (True, True)
    stop.set()
    await running


async def test_a_kind_that_cannot_be_listed_in_time_is_named_with_the_reason() -> None:
    made = furnished()
    made.handler.fault = _refuse_pods
    with pytest.raises(NotSynced, match=r"^cannot list pods: .*no pods today"):
        await manager(made).run(asyncio.Event())
