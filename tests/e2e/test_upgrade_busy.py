"""``upgrade-prepare`` on a busy cluster: pods start, end and are force-deleted while it writes.

No claim loses its devices, all pods run in the end, and the same references are back. A real
cluster of 1.36 plays the way there, and back without the upgrade. There a kubelet may refuse a pod
that comes in the moment in which its PodGroup goes; it tries again. docs/clusters-measured.md says
how often that was seen.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random

import pytest
from kube_in_process.options import ClusterOptions

from claimctl.controller.settings import Duty
from claimctl.downgrade import plans
from claimctl.downgrade.crossing import OldObjects, read_old_objects
from claimctl.downgrade.records import PlanPhase
from claimctl.wire.reservations import DowngradePlanSpec
from claimctl.wire.resources import PODGROUPS
from tests.e2e.busy import Busy
from tests.e2e.dying_transport import DyingTransport
from tests.e2e.harness import GROUP_136, Stage

OPTIONS = replace(GROUP_136, devices_per_node=6)

pytestmark = [pytest.mark.cluster(OPTIONS), pytest.mark.alone]


async def furnished(stage: Stage, seed: int) -> Busy:
    stage.client.use_version(PODGROUPS.group, "v1alpha2")
    busy = Busy(stage, Random(seed))
    await stage.started()
    await busy.furnish()
    for name in busy.names:
        await stage.until_listed(f"podgroups/{name}", f"deployments/{name}", claim=name)
    return busy


async def prepared(stage: Stage) -> str:
    """Run ``upgrade-prepare`` as often as it says."""
    phase = ""

    async def over() -> bool:
        nonlocal phase
        plan = await plans.begin(stage.client, DowngradePlanSpec(upgrade_to="1.37"))
        status = await plans.follow(stage.client, plan, lambda _: None, patience_seconds=600)
        phase = status.phase
        return phase == PlanPhase.PREPARED and await read_old_objects(stage.client) == OldObjects()

    await stage.until(over, "no object of v1alpha2 is left", 120)
    return phase


async def restored(stage: Stage) -> None:
    async def is_back() -> bool:
        plan = await plans.begin_restore(stage.client, None)
        assert plan is not None
        status = await plans.follow(stage.client, plan, lambda _: None)
        return status.phase == PlanPhase.RESTORED

    await stage.until(is_back, "everything has returned", 240)
    await plans.end(stage.client)


async def back(busy: Busy, before: dict[str, object]) -> None:
    """The way back: the same devices and references, and all pods run."""
    await restored(busy.stage)
    await busy.until_quiet()
    for name in busy.names:
        assert {f"podgroups/{name}", f"deployments/{name}"} <= set(
            await busy.stage.references(name)
        )
    assert await busy.devices() == before
    embedded = busy.stage.cluster is not None
    assert len(await busy.refusals()) <= (0 if embedded else busy.claim_count)


async def test_users_go_on_while_it_is_prepared(stage: Stage, options: ClusterOptions) -> None:
    busy = await furnished(stage, 1)
    before = await busy.devices()
    async with busy.churn():
        await prepared(stage)
        await stage.clock.sleep(10)
    assert await prepared(stage) == PlanPhase.PREPARED
    assert await busy.devices() == before
    await back(busy, before)


@pytest.mark.parametrize("write", [2, 5])
async def test_it_is_killed_and_another_run_goes_on(
    stage: Stage, options: ClusterOptions, write: int
) -> None:
    busy = await furnished(stage, write)
    before = await busy.devices()
    await stage.stop()
    async with busy.churn():
        dying = DyingTransport(stage.connect(), write)
        await plans.begin(stage.client, DowngradePlanSpec(upgrade_to="1.37"))
        dying.arm()
        stage.manager("dying", dying, duty=Duty.PLAN)
        async with asyncio.timeout(120):
            await dying.dead.wait()
        await stage.kill("dying")
        await stage.started("second")
        await prepared(stage)
    assert await prepared(stage) == PlanPhase.PREPARED
    assert await busy.devices() == before
    await back(busy, before)
