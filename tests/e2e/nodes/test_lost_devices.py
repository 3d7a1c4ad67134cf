"""Held devices that a driver does not offer any more, or taints, on nodes that work."""

from __future__ import annotations

import pytest
from kube_in_process.habits.publishing import TaintsNoSchedule

from claimctl.reservation.facts.devices import GONE_BESIDE_PODS_SECONDS, GONE_SECONDS
from claimctl.wire.pods import Pod
from claimctl.wire.resources import CLAIMRESERVATIONS, DEPLOYMENTS, RESOURCECLAIMS, RESOURCESLICES
from tests.e2e import manifests
from tests.e2e.drivers import devices_of
from tests.e2e.harness import HOLD_136, Stage
from tests.e2e.nodes.nodes import machines, starts

pytestmark = pytest.mark.cluster(HOLD_136)
SOON = 4.0
"""Seconds within which a pod runs that waits for nothing."""


async def hold(stage: Stage, *names: str, node: str = "") -> None:
    """Hold a claim for each of some Deployments of one pod (Recreate), on one node or on any."""
    await stage.started()
    for name in names:
        body = manifests.deployment(name, claim=name)
        body["spec"]["strategy"] = {"type": "Recreate"}
        if node:
            body["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
        held = manifests.reservation(name, workload=name, claim=name, idleTimeoutSeconds=3600)
        await stage.create(RESOURCECLAIMS, manifests.claim(name))
        await stage.create(DEPLOYMENTS, body)
        await stage.create(CLAIMRESERVATIONS, held)
    await stage.until_running(len(names))
    for name in names:
        await stage.until_condition("Reserved", "True", "Reserved", name=name)


async def scale(stage: Stage, name: str, replicas: int) -> None:
    """Scale a Deployment, and wait for its pods."""
    others = [pod for pod in await stage.running() if _app(pod) != name]
    await stage.patch(DEPLOYMENTS, name, {"spec": {"replicas": replicas}})
    await stage.until_running(len(others) + replicas)
    if not replicas:
        await stage.until_listed(f"deployments/{name}", claim=name)


def _app(pod: Pod) -> str:
    return (pod.metadata.labels or {}).get("app", "")


async def offers(stage: Stage, node: str) -> list[str] | None:
    """The names of the devices in the slice of the scenario's driver; None without a slice."""
    driver = machines(stage).driver.name
    for piece in (await stage.client.list(RESOURCESLICES)).items:
        if (piece.spec.driver, piece.spec.pool.name) == (driver, node):
            return [device.name for device in piece.spec.devices or ()]
    return None


async def withdraw(stage: Stage, given: dict[str, str]) -> None:
    """Let the driver offer a device no more."""
    node = given["pool"]
    left = [each for each in await offers(stage, node) or () if each != given["device"]]
    await stage.site.driver.publish(node, left)

    async def withdrawn() -> bool:
        return await offers(stage, node) == left

    await stage.until(withdrawn, "the device is not offered any more")


async def runs_elsewhere(stage: Stage, before: dict[str, str], what: str) -> None:
    """The last pod that was made runs at once, with another device, which is held."""
    seconds = (await starts(stage))[-1]
    (now,) = await devices_of(stage, "train")
    print(f"{what}: ran {seconds:.2f} s after its creation, {_named(before)} -> {_named(now)}")
    assert now != before
    assert seconds < SOON
    await stage.until_condition("Reserved", "True", "Reserved")


def _named(device: dict[str, str]) -> str:
    return f"{device['pool']}/{device['device']}"


@pytest.mark.core
async def test_a_workload_at_scale_0_gets_another_device_than_one_that_is_lost(
    stage: Stage,
) -> None:
    """One is not offered any more, the next one has a taint: then it is released at once."""
    await hold(stage, "train")
    (gone,) = await devices_of(stage, "train")
    await scale(stage, "train", 0)
    await withdraw(stage, gone)
    await stage.quiet(GONE_SECONDS + 1)
    await scale(stage, "train", 1)
    await runs_elsewhere(stage, gone, "not offered at scale 0")
    if stage.site.fleet.version < (1, 36):
        # taints of devices are off by default
        return
    (broken,) = await devices_of(stage, "train")
    await scale(stage, "train", 0)
    await stage.site.driver.take_up(
        TaintsNoSchedule(node=broken["pool"], devices=(broken["device"],))
    )
    begin = stage.clock.monotonic()
    await stage.until_released("train")
    print(f"released {stage.clock.monotonic() - begin:.2f} s after the driver's taint")
    await scale(stage, "train", 1)
    await runs_elsewhere(stage, broken, "tainted at scale 0")


@pytest.mark.long
async def test_the_pod_after_a_rollout_by_recreate_gets_another_device_than_one_that_is_lost(
    stage: Stage,
) -> None:
    await hold(stage, "train")
    (gone,) = await devices_of(stage, "train")
    (pod,) = await stage.running()
    await withdraw(stage, gone)
    await stage.clock.sleep(GONE_BESIDE_PODS_SECONDS + 5)
    await stage.until_listed(f"pods/{pod.metadata.name}", claim="train")
    assert await stage.condition("Reserved") == ("False", "DeviceGone")
    patch = {"spec": {"template": {"metadata": {"annotations": {"rollout": "1"}}}}}
    await stage.patch(DEPLOYMENTS, "train", patch)

    async def replaced() -> bool:
        return [each.metadata.uid for each in await stage.running()] not in (
            [pod.metadata.uid],
            [],
        )

    await stage.until(replaced, "the next pod runs")
    await runs_elsewhere(stage, gone, "Recreate 35 s after its device was not offered any more")


@pytest.mark.alone
async def test_a_restart_of_a_kubelet_and_its_driver_costs_no_device(stage: Stage) -> None:
    """A kubelet that starts takes the slices of its node away. Then nothing is known of devices.

    The driver comes back so late that a device would count as lost if its pool were complete.
    """
    driver, node = stage.site.driver, machines(stage).cluster.nodes[0]
    await hold(stage, "train", "rest", node=node.name)
    await scale(stage, "rest", 0)
    before = [(await stage.claim(name)).status for name in ("train", "rest")]

    async def away() -> bool:
        return await offers(stage, node.name) is None

    async def back() -> bool:
        return not await away()

    node.kill_kubelet()
    await driver.leave()
    node.start_kubelet()
    await stage.until(away, "the slice is gone")
    begin = stage.clock.monotonic()
    await stage.quiet(2 * GONE_SECONDS)
    assert await away()
    await driver.come_back()
    await stage.until(back, "the slice is back")
    print(f"the slice was away for {stage.clock.monotonic() - begin:.1f} s")
    await stage.quiet(2)
    assert [(await stage.claim(name)).status for name in ("train", "rest")] == before
    await scale(stage, "rest", 1)
    assert (await stage.claim("rest")).status.allocation == before[1].allocation
