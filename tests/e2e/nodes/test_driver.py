"""A driver that is slow, fails or is away, while pods come and go."""

from __future__ import annotations

import pytest
from kube_in_process.habits.presence import Slow
from kube_in_process.habits.publishing import TaintsNoSchedule

from claimctl.wire.resources import DEPLOYMENTS, PODS, RESOURCESLICES
from tests.e2e.harness import HOLD_136, NAMESPACE, Stage
from tests.e2e.nodes.nodes import (
    calls,
    machines,
    until_called,
    until_unprepared,
    uses,
)
from tests.e2e.scenes import hold_for_deployment

pytestmark = pytest.mark.cluster(HOLD_136)


async def scale(stage: Stage, pods: int) -> None:
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": pods}})


@pytest.mark.core
async def test_a_claim_stays_until_a_slow_driver_has_unprepared_it(stage: Stage) -> None:
    await stage.started()
    await hold_for_deployment(stage, 1)
    await stage.site.driver.take_up(Slow(prepare_seconds=0.0, unprepare_seconds=6.0))
    await stage.delete(DEPLOYMENTS, "train")
    await stage.quiet(3)
    assert await stage.allocated()
    await stage.until_released()
    assert len(calls(stage, "unprepare")) == 1


async def test_a_pod_that_goes_while_its_device_is_being_prepared_keeps_it_so_long(
    stage: Stage,
) -> None:
    await stage.started()
    await hold_for_deployment(stage, 1)
    await scale(stage, 0)
    await until_unprepared(stage)
    await stage.site.driver.take_up(Slow(unprepare_seconds=0.0))
    await scale(stage, 1)

    async def bound() -> bool:
        pods = (await stage.client.list(PODS, NAMESPACE)).items
        return any(pod.spec.node_name for pod in pods)

    await stage.until(bound, "a pod is bound")
    # a pod that its kubelet has not begun with uses no device
    await stage.clock.sleep(3)
    await stage.delete(DEPLOYMENTS, "train")
    await stage.quiet(8)
    assert await stage.allocated(), calls(stage)
    await stage.until_released()


async def test_a_claim_stays_while_its_driver_fails_to_unprepare_it(stage: Stage) -> None:
    await stage.started()
    await hold_for_deployment(stage, 1)
    await stage.site.driver.take_up("fails-to-unprepare")
    await stage.delete(DEPLOYMENTS, "train")
    failed = await until_called(stage, "unprepare", 2)
    assert failed.error
    assert await stage.allocated()
    await stage.site.driver.drop()
    await stage.until_released(within=120)


async def test_a_claim_stays_while_its_driver_is_away(stage: Stage) -> None:
    await stage.started()
    await hold_for_deployment(stage, 1)
    driver = machines(stage).driver
    driver.server.kill()
    await stage.delete(DEPLOYMENTS, "train")
    await stage.quiet(8)
    assert await stage.allocated()
    driver.start()
    await stage.until_released(within=120)
    assert len(uses(stage)) == 1


async def test_a_pod_waits_for_a_driver_that_cannot_prepare_its_device(stage: Stage) -> None:
    await stage.started()
    await hold_for_deployment(stage, 1)
    await scale(stage, 0)
    await until_unprepared(stage)
    before = (await stage.claim()).status.allocation
    await stage.site.driver.take_up("fails-to-prepare")
    await scale(stage, 1)
    await until_called(stage, "prepare", 2)
    await stage.until_event("FailedPrepareDynamicResources")
    await stage.site.driver.drop()
    await stage.until_running(1)
    assert (await stage.claim()).status.allocation == before


async def test_a_driver_that_offers_other_devices_does_not_disturb_pods_that_run(
    stage: Stage,
) -> None:
    """It takes a device in use out of its slice, taints another, and is restarted."""
    await stage.started()
    await hold_for_deployment(stage, 1)
    before = (await stage.claim()).status.allocation
    (pod,) = await stage.running()
    node, driver = pod.spec.node_name, stage.site.driver
    await driver.publish(node, ["dev-1", "dev-2"])
    key = "example.com/broken"
    await driver.take_up(TaintsNoSchedule(node=node, devices=("dev-2",), key=key))
    # older servers drop them, since the feature is off by default
    taints = [key] if stage.site.fleet.version >= (1, 36) else []

    async def offered() -> bool:
        found = {
            device.name: [taint.key for taint in device.all_taints]
            for piece in (await stage.client.list(RESOURCESLICES)).items
            if (piece.spec.driver, piece.spec.pool.name) == (driver.name, node)
            for device in piece.spec.devices or ()
        }
        return found == {"dev-1": [], "dev-2": taints}

    await stage.until(offered, "the driver offers two devices")
    await driver.restart()
    await stage.until(offered, "the driver offers them also when it is back")
    await stage.quiet(3)
    assert (await stage.claim()).status.allocation == before
    assert [each.verb for each in calls(stage)] == ["prepare"]
