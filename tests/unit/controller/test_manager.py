"""What a controller process says of itself while it starts."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from kube_in_process.options import Preset
from kube_in_process.storage.requests import Fault, FaultPoint

from claimctl.controller.checkpoint import ANNOTATION
from claimctl.controller.manager import Manager, NotSynced
from claimctl.controller.settings import Settings
from claimctl.kube.clock import LoopClock
from claimctl.wire.coordination import micro_time
from tests.support.builders import NOW
from tests.support.counting_server import CountingServer, server
from tests.unit.controller.cluster import furnish

pytestmark = pytest.mark.virtual_limit(200)


def furnished() -> CountingServer:
    made = server(Preset.PLAIN)
    furnish(made)
    return made


def manager(made: CountingServer, *, leader_elect: bool = False) -> Manager:
    settings = Settings.checked(identity="one", leader_elect=leader_elect, checkpoint=True)
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


async def _starts(noted: str = "", fault: Fault | None = None) -> None:
    """A manager leads that finds a Lease with this annotation, or this fault at first."""
    made = furnished()
    made.admin.create("namespaces", {"metadata": {"name": "claimctl-system"}})
    spec = {"renewTime": micro_time(NOW)}
    meta = {"name": "claimctl-controller", "namespace": "claimctl-system"}
    lease = made.admin.create("leases", {"metadata": meta, "spec": spec})
    noted = noted.replace("UID", lease["metadata"]["uid"])
    annotations = {"metadata": {"annotations": {ANNOTATION: noted}}}
    made.admin.patch("leases", meta["namespace"], meta["name"], annotations)

    faults = iter([fault])

    def refuse(point: FaultPoint) -> Fault | None:
        return next(faults, None) if (point.verb, point.plural) == ("get", "leases") else None

    made.handler.fault = refuse
    tried, stop = manager(made, leader_elect=True), asyncio.Event()
    running = asyncio.create_task(tried.run(stop))
    await asyncio.sleep(30.0)
    made.handler.fault = None
    ready = tried.ready and tried.leading
    stop.set()
    await running
    assert ready


@pytest.mark.parametrize(
    "fault",
    [
        *(Fault(status=status) for status in (403, 404, 410, 429, 500, 503)),
        Fault(hang=True),
        Fault(drop=True),
    ],
    ids=str,
)
async def test_a_lease_that_cannot_be_read_costs_the_checkpoint_and_not_the_start(
    fault: Fault,
) -> None:
    await _starts(fault=fault)


@pytest.mark.parametrize(
    "noted", ["", "x", "UID/", "UID/0", "UID/x", "UID/99999999", "UID/" + "9" * 40]
)
async def test_a_checkpoint_that_cannot_be_listed_costs_the_grace_and_not_the_start(
    noted: str,
) -> None:
    await _starts(noted)
