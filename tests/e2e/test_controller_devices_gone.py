"""Held devices that their driver publishes no more, or declares broken."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from kube_in_process.options import ClusterOptions

from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    RESOURCECLAIMS,
    RESOURCESLICES,
)
from claimctl.wire.seams import Transport
from tests.e2e import manifests
from tests.e2e.drivers import devices_of
from tests.e2e.harness import HOLD_134, HOLD_136, Stage
from tests.e2e.pools import BROKEN, Pool
from tests.support.spoiling import Spoiling

pytestmark = pytest.mark.cluster(HOLD_136)

RESTARTED = {"spec": {"template": {"metadata": {"annotations": {"restarted": "now"}}}}}
AT_ONCE = 3.0
"""Seconds in which a pod runs that nothing keeps from its device."""


async def held(
    stage: Stage,
    *,
    name: str = "",
    reason: str = "Reserved",
    replicas: int = 1,
    transport: Transport | None = None,
    **spec: Any,
) -> tuple[Pool, dict[str, str]]:
    """A Deployment (Recreate) that holds a device, and the device's pool."""
    driver = stage.site.drivers("maker")
    driver = replace(driver, name=name or driver.name)
    await driver.make_class()
    nodes = stage.site.nodes[:2]
    for node in nodes:
        await driver.publish(node, node, "gpu-0", "gpu-1", fields={})
    await stage.started(transport=transport)
    await stage.create(RESOURCECLAIMS, manifests.claim(device_class=driver.name))
    await stage.create(
        CLAIMRESERVATIONS, manifests.reservation(**{"idleTimeoutSeconds": 3600, **spec})
    )
    body = manifests.deployment()
    body["spec"]["strategy"] = {"type": "Recreate"}
    await stage.create(DEPLOYMENTS, body)
    await stage.until_running(1)
    await stage.until_condition("Reserved", "True", reason)
    [device] = await devices_of(stage)
    if not replicas:
        await scaled(stage, 0)
        await stage.until_listed("deployments/train")
    return Pool(driver, device["pool"]), device


async def scaled(stage: Stage, replicas: int) -> None:
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": replicas}})

    async def done() -> bool:
        return len(await stage.running()) == replicas

    await stage.until(done, f"{replicas} pods run", within=AT_ONCE)


async def restarted(stage: Stage) -> None:
    """Replace the pod by a new one."""
    old = {pod.metadata.uid for pod in await stage.running()}
    await stage.patch(DEPLOYMENTS, "train", RESTARTED)

    async def done() -> bool:
        new = {pod.metadata.uid for pod in await stage.running()} - old
        return len(new) == 1

    await stage.until(done, "a new pod runs", within=AT_ONCE)


def others(device: dict[str, str]) -> list[str]:
    """The devices that a driver publishes without this one."""
    return sorted({"gpu-0", "gpu-1"} - {device["device"]})


async def upgraded(pool: Pool, device: dict[str, str]) -> None:
    """A new version of the driver does not offer the device."""
    await pool.offers(*others(device))


async def broken(pool: Pool, device: dict[str, str]) -> None:
    await pool.offers(device["device"], *others(device), taints=(BROKEN,))


Change = Callable[[Pool, dict[str, str]], Awaitable[None]]
BAD = pytest.mark.parametrize("change", [upgraded, broken], ids=["gone", "broken"])


WAYS = pytest.mark.parametrize(
    ("options", "change"),
    [(HOLD_134, upgraded), (HOLD_136, upgraded), (HOLD_136, broken)],
    ids=["gone, 1.34", "gone", "broken"],
)
"""1.34 knows no taints of devices by default."""


@WAYS
async def test_a_workload_at_scale_0_gets_another_device_at_once(
    stage: Stage, options: ClusterOptions, change: Change
) -> None:
    pool, device = await held(stage, replicas=0)
    await change(pool, device)
    await stage.quiet(6)
    await scaled(stage, 1)
    assert await devices_of(stage) not in ([device], [])
    await stage.until_condition("Reserved", "True", "Reserved")


@WAYS
async def test_the_last_pod_takes_the_device_along(
    stage: Stage, options: ClusterOptions, change: Change
) -> None:
    pool, device = await held(stage)
    [pod] = await stage.running()
    await change(pool, device)
    await stage.quiet(35)
    assert [each.metadata.uid for each in await stage.running()] == [pod.metadata.uid]
    await stage.until_listed(f"pods/{pod.metadata.name}")
    reason = "DeviceGone" if change is upgraded else "DeviceTainted"
    await stage.until_condition("Reserved", "False", reason)
    await restarted(stage)
    assert await devices_of(stage) not in ([device], [])
    await stage.until_condition("Reserved", "True", "Reserved")


@BAD
async def test_a_hold_comes_back_beside_its_pod_when_the_device_does(
    stage: Stage, change: Change
) -> None:
    pool, device = await held(stage)
    [pod] = await stage.running()
    await change(pool, device)
    await stage.until_listed(f"pods/{pod.metadata.name}")
    await pool.offers("gpu-0", "gpu-1")
    await stage.until_listed(f"pods/{pod.metadata.name}", "deployments/train")
    await restarted(stage)
    assert await devices_of(stage) == [device]


@pytest.mark.parametrize("replicas", [0, 1])
@pytest.mark.parametrize("seconds", [13, 60], ids=["a kubelet's restart", "a driver away"])
async def test_nothing_is_given_up_while_the_slices_are_away(
    stage: Stage, seconds: float, replicas: int
) -> None:
    pool, device = await held(stage, replicas=replicas)
    version = (await stage.claim()).metadata.resource_version
    await pool.leave()
    await stage.quiet(seconds)
    await pool.come_back("gpu-0", "gpu-1")
    await stage.quiet(40)
    assert (await stage.claim()).metadata.resource_version == version
    assert await devices_of(stage) == [device]


async def test_a_device_that_is_left_out_for_moments_is_kept(stage: Stage) -> None:
    pool, device = await held(stage, replicas=0)
    version = (await stage.claim()).metadata.resource_version
    for _ in range(4):
        await upgraded(pool, device)
        await stage.quiet(4)
        await pool.offers("gpu-0", "gpu-1")
        await stage.quiet(4)
    assert (await stage.claim()).metadata.resource_version == version


async def test_nothing_is_given_up_while_a_slice_cannot_be_read(stage: Stage) -> None:
    transport = Spoiling(stage.connect())
    pool, device = await held(stage, replicas=0, transport=transport)
    version = (await stage.claim()).metadata.resource_version
    await upgraded(pool, device)
    await stage.quiet(2)
    transport.spoil(RESOURCESLICES.plural, pool.slice)
    await pool.offers("gpu-0", "gpu-1")
    await stage.quiet(120)
    assert (await stage.claim()).metadata.resource_version == version


@pytest.mark.parametrize("replicas", [0, 1])
async def test_a_driver_may_hide_a_device_that_a_pod_uses(stage: Stage, replicas: int) -> None:
    stage.embedded.driver("dra.net").take_up("wants-one-pod")
    pool, device = await held(stage, name="dra.net", reason="HeldBetweenPods")
    await scaled(stage, replicas)
    await stage.quiet(10)
    version = (await stage.claim()).metadata.resource_version
    await upgraded(pool, device)
    await stage.quiet(120)
    assert (await stage.claim()).metadata.resource_version == version
    assert await devices_of(stage) == [device]
    await pool.driver.leave()


@BAD
async def test_a_device_that_comes_back_after_it_was_given_up_changes_nothing(
    stage: Stage, change: Change
) -> None:
    pool, device = await held(stage, replicas=0)
    await change(pool, device)
    await stage.until(stage.released, "the claim is released", within=8)
    await pool.offers("gpu-0", "gpu-1")
    await stage.quiet(30)
    assert await stage.released()
    await scaled(stage, 1)
    await stage.until_condition("Reserved", "True", "Reserved")


@pytest.mark.parametrize("replicas", [0, 1])
@BAD
async def test_a_device_that_is_never_to_be_given_up_stays(
    stage: Stage, change: Change, replicas: int
) -> None:
    pool, device = await held(stage, replicas=replicas, reallocateTimeoutSeconds=None)
    version = (await stage.claim()).metadata.resource_version
    await change(pool, device)
    await stage.quiet(120)
    assert (await stage.claim()).metadata.resource_version == version
    assert await stage.condition("Reserved") == ("True", "Reserved")
    [reservation] = await stage.reservations()
    said = {each.type: each.message for each in reservation.status.conditions}["Reserved"]
    assert f"device {device['device']} of pool {device['pool']}" in said
