"""A downgrade on a busy cluster: pods start, end and are force-deleted while lists are written.

Afterwards the feature goes off in every component, every sandbox is made anew, and the pods end. No
pod is refused, no claim loses its devices before, and every claim is deallocated at the end.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random

import pytest
from kube_in_process.options import ClusterOptions, Preset

from claimctl.controller.settings import Duty
from claimctl.downgrade import plans
from claimctl.downgrade.records import PlanPhase
from claimctl.wire.reservations import DowngradePlanSpec
from claimctl.wire.resources import DEPLOYMENTS
from tests.e2e.busy import Busy
from tests.e2e.dying_transport import DyingTransport
from tests.e2e.harness import Stage

NATIVE = ClusterOptions(preset=Preset.RESERVED_FOR_ANY_POD, nodes=1, devices_per_node=6)
PODGROUP = replace(NATIVE, preset=Preset.POD_GROUPS)
both = pytest.mark.parametrize(
    "options",
    [
        pytest.param(NATIVE, marks=pytest.mark.cluster(NATIVE), id="native"),
        pytest.param(PODGROUP, marks=pytest.mark.cluster(PODGROUP), id="podgroup"),
    ],
)


def switch(stage: Stage, **gates: bool) -> None:
    embedded = stage.embedded
    embedded.switch(replace(embedded.features, **gates))  # type: ignore[arg-type]  # gates


async def prepared(stage: Stage) -> str:
    plan = await plans.begin(stage.client, DowngradePlanSpec())
    return (await plans.follow(stage.client, plan, lambda _: None, patience_seconds=600)).phase


async def off(busy: Busy) -> None:
    """Switch the feature off in the order of the runbook, and lose every sandbox."""
    switch(
        busy.stage, scheduler_pod_groups=False, kcm_pod_groups=False, scheduler_reserved_for=False
    )
    await busy.until_quiet()
    assert await prepared(busy.stage) == PlanPhase.PREPARED
    await busy.expect_exactly_the_pods()
    switch(busy.stage, kubelet_pod_groups=False, kubelet_reserved_for=False)
    switch(busy.stage, api_pod_groups=False, api_reserved_for=False)
    busy.stage.embedded.reboot_node("node-0")
    await busy.stage.clock.sleep(5)
    await busy.until_quiet()
    assert await busy.refusals() == []


async def until_all_are_free(busy: Busy) -> None:
    """Let the pods end; every claim is deallocated."""
    for name in busy.names:
        await busy.stage.patch(DEPLOYMENTS, name, {"spec": {"replicas": 0}})

    async def free() -> bool:
        return all(each.status.allocation is None for each in await busy.claims())

    await busy.stage.until(free, "every claim is deallocated", 1200)


@both
async def test_a_busy_cluster(stage: Stage, options: ClusterOptions) -> None:
    busy = Busy(stage, Random(1))
    await stage.started()
    await busy.furnish()
    before = await busy.devices()
    async with busy.churn():
        await prepared(stage)
        await stage.clock.sleep(10)
    await off(busy)
    assert await busy.devices() == before
    await until_all_are_free(busy)


@pytest.mark.parametrize(
    ("options", "write"),
    [
        pytest.param(options, write, marks=pytest.mark.cluster(options))
        for write, options in zip((1, 4, 7, 10), 2 * (NATIVE, PODGROUP), strict=True)
    ],
)
async def test_it_is_killed_and_another_run_goes_on(
    stage: Stage, options: ClusterOptions, write: int
) -> None:
    """The controller that carries the plan out dies at a write.

    Half of them are the controllers of commands, which do nothing else.
    """
    busy = Busy(stage, Random(write))
    await stage.started()
    await busy.furnish()
    before = await busy.devices()
    await stage.stop()
    duty = Duty.PLAN if write % 4 in (1, 2) else Duty.EVERYTHING
    async with busy.churn():
        dying = DyingTransport(stage.connect(), write, concerned=concerns_the_downgrade)
        await plans.begin(stage.client, DowngradePlanSpec())
        dying.arm()
        stage.manager("dying", dying, duty=duty)
        async with asyncio.timeout(120):
            await dying.dead.wait()
        await stage.kill("dying")
        await stage.started()
        await prepared(stage)
    await off(busy)
    assert await busy.devices() == before
    await until_all_are_free(busy)


def concerns_the_downgrade(path: str) -> bool:
    return "resourceclaims" in path or "downgradeplans" in path


@both
async def test_two_commands_at_once(stage: Stage, options: ClusterOptions) -> None:
    busy = Busy(stage, Random(2))
    await stage.started()
    await busy.furnish()
    before = await busy.devices()
    await stage.stop()
    async with busy.churn():
        for name in ("one", "two"):
            await stage.started(name, duty=Duty.PLAN, leader_elect=False)
        await prepared(stage)
        for name in ("one", "two"):
            await stage.stop(name)
        await stage.started("three")
        await prepared(stage)
    await off(busy)
    assert await busy.devices() == before
    await until_all_are_free(busy)
