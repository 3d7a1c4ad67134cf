"""A run that is killed at any write: what it has closed is open again 30 seconds later."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from kube_in_process.options import ClusterOptions, Preset

from claimctl.kube.errors import KubeError
from claimctl_reschedule_tests.e2e.rescheduling import (
    CPU,
    held,
    is_held,
    runner,
    taints,
    utilization,
)
from tests.e2e.dying_transport import DyingTransport
from tests.e2e.harness import Stage
from tests.e2e.site import PEOPLE

pytestmark = pytest.mark.cluster(
    ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 36), nodes=3)
)
UNIT = utilization(*CPU, evictor="{moveHeldClaims: WholeUnit}")
WRITES = 15
"""The writes of a run that moves a unit of two pods: record made and tried, two dry runs, entry,
taint, request to give the claim up, two evictions, memory, taint removed, entry removed, request
withdrawn, memory at the end; and one more, which is never reached."""
EVERY, OPEN = 5.0, 30.0
"""Seconds between two successors, and those after which nothing may be closed."""


@pytest.mark.parametrize("delivered", [True, False], ids=["delivered", "lost"])
@pytest.mark.parametrize("write", range(1, WRITES + 1))
async def test_killed_at_any_write(stage: Stage, write: int, *, delivered: bool) -> None:
    await held(stage, 2)
    connection = stage.site.connection(PEOPLE)
    killed = DyingTransport(connection, write, delivered=delivered, concerned=lambda path: True)
    killed.arm()
    run = asyncio.create_task(runner(stage, UNIT, killed).run())
    dead = asyncio.create_task(killed.dead.wait())
    await asyncio.wait((run, dead), return_when=asyncio.FIRST_COMPLETED)
    dead.cancel()
    # real servers take their time, so that more writes say that the run lives
    assert killed.dead.is_set() == (write < WRITES) or stage.cluster is None
    began, successor = stage.clock.monotonic(), runner(stage, UNIT)
    since = began
    while since < began + OPEN:
        await stage.clock.sleep(EVERY)
        since = stage.clock.monotonic()
        await successor.sweep()
    assert [await taints(stage, node) for node in range(3)] == [[], [], []]
    left = await successor.records.read()
    assert left is None or left.status.taints == ()
    with suppress(KubeError):
        await run
    await stage.until_running(5)
    await stage.until(lambda: is_held(stage), "the claim is held")
