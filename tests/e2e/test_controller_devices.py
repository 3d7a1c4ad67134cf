"""Drivers that report conditions and taint devices: the same on an embedded cluster and a real one.

No controller runs: this is what claimctl has to live with.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from claimctl.kube.errors import NotServed
from claimctl.wire.pods import Pod
from claimctl.wire.resources import DEPLOYMENTS, RESOURCECLAIMS, STATEFULSETS
from tests.e2e import manifests
from tests.e2e.harness import HOLD_136, Stage
from tests.support.drivers import FAILED, Drivers

TAINT = {"key": "example.com/broken", "effect": "NoExecute"}
pytestmark = pytest.mark.cluster(replace(HOLD_136, taint_rules=True))


async def fabric(stage: Stage, *devices: str) -> Drivers:
    """A driver of slow devices on the first node, and a Deployment that uses one of them."""
    drivers = stage.site.drivers("fabric")
    await drivers.make_class()
    await drivers.publish("pool", stage.site.nodes[0], *devices)
    await stage.create(RESOURCECLAIMS, manifests.claim(device_class=drivers.name))
    await stage.create(DEPLOYMENTS, manifests.deployment())
    await stage.until(stage.allocated, "the claim is allocated")
    return drivers


async def test_a_pod_runs_after_its_driver_has_reported(stage: Stage) -> None:
    drivers = await fabric(stage, "a")
    await stage.quiet(12.0)
    assert await stage.running() == ()
    [listed] = await stage.references()
    assert listed.startswith("pods/train-")
    await drivers.report("slice")
    await stage.until_running(1)


async def test_a_failed_device_is_given_back_and_the_claim_allocated_anew(stage: Stage) -> None:
    drivers = await fabric(stage, "a")
    await drivers.report("slice", FAILED)

    async def anew() -> bool:
        found = await drivers.client.get(
            (drivers.resource_api, "ResourceClaim"), drivers.namespace, "slice"
        )
        return bool(found["status"].get("allocation")) and not found["status"].get("devices")

    await stage.until(anew, "the claim is allocated anew")
    await drivers.report("slice")
    await stage.until_running(1)


async def evicted(stage: Stage, pod: Pod) -> None:
    async def gone() -> bool:
        return pod.metadata.uid not in [each.metadata.uid for each in await stage.running()]

    await stage.until(gone, f"{pod.metadata.name} is evicted")
    await stage.until_event("DeviceTaintManagerEviction")


async def test_a_taint_of_a_device_moves_its_pod_to_another_device(stage: Stage) -> None:
    """A StatefulSet waits for the end of the old pod; then nothing holds the device any more."""
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(STATEFULSETS, manifests.stateful_set())
    await stage.until_running(1)
    [pod] = await stage.running()
    allocation = (await stage.claim()).status.allocation
    assert allocation is not None
    [device] = allocation.devices.results or ()
    await stage.site.drivers().taint(device.pool, TAINT, device=device.device)
    await evicted(stage, pod)
    await stage.until_running(1)


async def test_a_rule_about_devices_evicts_their_pods_until_it_is_gone(stage: Stage) -> None:
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(DEPLOYMENTS, manifests.deployment())
    await stage.until_running(1)
    [pod] = await stage.running()
    drivers = stage.site.drivers()
    try:
        await drivers.make_rule("broken", TAINT)
    except NotServed as missing:
        pytest.skip(str(missing))
    await evicted(stage, pod)
    await drivers.drop_rule("broken")
    await stage.until_running(1)
