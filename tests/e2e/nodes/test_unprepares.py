"""Kubelets before 1.37 and claims that are unprepared and prepared again (kubernetes#140527)."""

from __future__ import annotations

import os

import pytest
from kube_in_process.device_witness import RAN_UNPREPARED
from kube_in_process.habits.presence import Slow

from claimctl.wire.resources import DEPLOYMENTS, RESOURCECLAIMS
from tests.e2e import manifests
from tests.e2e.harness import HOLD_136, Stage
from tests.e2e.scenes import come_while_unprepared

pytestmark = pytest.mark.cluster(HOLD_136)
LIVES = int(os.environ.get("LIVES", "3"))


async def test_a_pod_that_comes_while_its_claim_is_unprepared_may_run_without_devices(
    stage: Stage,
) -> None:
    await come_while_unprepared(stage)
    found = await stage.site.device_faults()
    print(*found, sep="\n")
    is_old = stage.site.fleet.version < (1, 37)
    assert {each.rule for each in found} == ({RAN_UNPREPARED} if is_old else set())
    stage.site.excused.add(RAN_UNPREPARED)


async def roll_out(stage: Stage, number: int) -> None:
    """Roll out, and go on as soon as another pod runs."""
    before = {pod.metadata.uid for pod in await stage.running()}
    template = {"metadata": {"annotations": {"number": str(number)}}}
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"template": template}})

    async def another() -> bool:
        return bool({pod.metadata.uid for pod in await stage.running()} - before)

    await stage.until(another, "the next pod runs")


@pytest.mark.long
@pytest.mark.parametrize("seconds", [0.0, 1.0], ids=["quick", "slow"])
async def test_no_pod_of_rollouts_by_recreate_runs_without_devices(
    stage: Stage, seconds: float
) -> None:
    """A kubelet tells that a pod has ended when its claim is unprepared. So the next one is late.

    ``LIVES=25`` plays so many rollouts in place of the few of every run.
    """
    await stage.site.driver.take_up(Slow(prepare_seconds=0.0, unprepare_seconds=seconds))
    await stage.started()
    body = manifests.deployment(reserve="*")
    body["spec"]["strategy"] = {"type": "Recreate"}
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(DEPLOYMENTS, body)
    await stage.until_running(1)
    await stage.until_condition("Reserved", "True", "Reserved")
    for number in range(LIVES):
        await roll_out(stage, number)
    await stage.clock.sleep(3)
    verbs = [call.verb for call in stage.site.driver.calls()]
    assert verbs == [*["prepare", "unprepare"] * LIVES, "prepare"]
    assert await stage.site.device_faults() == []
