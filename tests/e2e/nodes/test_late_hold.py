"""Late holds: a driver that wants one pod in the claim's list, called by real kubelets.

``LIVES=30`` plays so many lives in place of the few of every run.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest
from kube_in_process.real.nodes.kubelet import SYNC_FREQUENCY

from claimctl.wire.resources import DEPLOYMENTS, PODS, RESOURCECLAIMS
from tests.e2e import manifests
from tests.e2e.harness import HOLD_136, NAMESPACE, Stage
from tests.e2e.nodes.nodes import calls, machines, make_deaf, starts

pytestmark = pytest.mark.cluster(HOLD_136)
LIVES = int(os.environ.get("LIVES", "3"))
OWN_GRACE = 2
"""How long pods that ignore SIGTERM are left to run."""
SOON = 6.0
"""Seconds within which a pod runs whose kubelet was not refused. One that was tries again after
its ``SYNC_FREQUENCY`` at the earliest."""
READY_SECONDS = 3.0
"""A controller that has just begun to lead may miss what happens at once."""


async def hold(stage: Stage, *, strategy: str = "RollingUpdate", deaf: bool = False) -> None:
    """Hold a claim of a driver that wants one pod, and that claimctl knows."""
    await stage.site.driver.take_up("wants-one-pod")
    await stage.started(one_pod_drivers=frozenset({stage.site.fleet.driver}))
    await create(stage, strategy=strategy, deaf=deaf)
    await stage.until_running(1)
    await stage.until_condition("Reserved", "True", "HeldBetweenPods")


async def create(stage: Stage, *, strategy: str = "RollingUpdate", deaf: bool = False) -> None:
    body = manifests.deployment(reserve="*")
    body["spec"]["strategy"] = {"type": strategy}
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(DEPLOYMENTS, make_deaf(body, OWN_GRACE) if deaf else body)


async def given(stage: Stage) -> Any:
    """The allocation with its time: another one of the same device is another."""
    allocation = (await stage.claim()).status.allocation
    assert allocation is not None, "the device is lost"
    return allocation


async def scale(stage: Stage, replicas: int) -> None:
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": replicas}})


async def roll_out(stage: Stage, number: int) -> None:
    """Roll out, and wait until the next pod is the only one, and runs."""
    before = {pod.metadata.uid for pod in await stage.running()}
    patch = {"spec": {"template": {"metadata": {"annotations": {"rollout": str(number)}}}}}
    await stage.patch(DEPLOYMENTS, "train", patch)

    async def replaced() -> bool:
        pods = (await stage.client.list(PODS, NAMESPACE)).items
        runs = [pod for pod in pods if pod.status.phase == "Running"]
        return len(pods) == len(runs) == 1 and before.isdisjoint(p.metadata.uid for p in pods)

    await stage.until(replaced, "the next pod runs alone")


async def at_rest(stage: Stage) -> None:
    """The pods are gone, and nothing is listed."""

    async def gone() -> bool:
        return not (await stage.client.list(PODS, NAMESPACE)).items

    await stage.until(gone, "the pods are gone")
    await stage.until_listed()


def refusals(stage: Stage) -> list[str]:
    return [call.error for call in calls(stage) if call.error]


async def unhindered(stage: Stage, what: str) -> None:
    """No prepare was refused, and each pod started soon."""
    assert refusals(stage) == []
    took = await starts(stage)
    print(f"{what}: {len(took)} pods ran {min(took):.2f} to {max(took):.2f} s after creation")
    assert max(took) < SOON


@pytest.mark.parametrize(
    "deaf",
    [pytest.param(False, marks=pytest.mark.core), True],
    ids=["ends-at-once", "ends-late"],
)
async def test_scale_to_0_and_1_keeps_the_device_of_a_driver_that_wants_one_pod(
    stage: Stage, deaf: bool
) -> None:
    await hold(stage, deaf=deaf)
    before = await given(stage)
    for _ in range(LIVES):
        await scale(stage, 0)
        await at_rest(stage)
        assert await given(stage) == before
        await scale(stage, 1)
        await stage.until_running(1)
        assert await given(stage) == before
    await unhindered(stage, "scale 0 and 1")


@pytest.mark.core
@pytest.mark.parametrize("deaf", [False, True], ids=["ends-at-once", "ends-late"])
async def test_a_rollout_by_recreate_keeps_the_device_of_a_driver_that_wants_one_pod(
    stage: Stage, deaf: bool
) -> None:
    """The next pod is there as soon as the last one is terminal."""
    await hold(stage, strategy="Recreate", deaf=deaf)
    before = await given(stage)
    for number in range(LIVES):
        await roll_out(stage, number)
        assert await given(stage) == before
    await unhindered(stage, "Recreate")


async def test_a_rollout_with_a_surge_keeps_the_device_of_a_driver_that_wants_one_pod(
    stage: Stage,
) -> None:
    """Two pods share the claim meanwhile; the kubelet does not ask the driver again."""
    await hold(stage)
    before = await given(stage)
    for number in range(LIVES):
        await roll_out(stage, number)
        assert await given(stage) == before
    await unhindered(stage, "rollout with a surge")
    assert [call.verb for call in calls(stage)] == ["prepare"]


async def hold_unknown(stage: Stage) -> None:
    """Hold a claim at 0 pods whose driver wants one pod, and that claimctl does not know.

    The first pod may be prepared before the hold is listed, which would prove nothing.
    """
    await stage.started()
    await create(stage)
    await stage.until_running(1)
    await stage.until_condition("Reserved", "True", "Reserved")
    await scale(stage, 0)
    await stage.until_listed("deployments/train")
    await stage.site.driver.take_up("wants-one-pod")


async def refused_until_found(stage: Stage) -> None:
    """The next pod is refused, and runs at a later try of its kubelet."""
    before = len(refusals(stage))
    await scale(stage, 1)

    async def refused() -> bool:
        return len(refusals(stage)) > before

    await stage.until(refused, "the driver refuses the pod")
    await stage.until_condition("Reserved", "True", "DriverRefusesHold", within=60)
    await stage.until_running(1)
    print(f"the refused pod ran {(await starts(stage))[-1]:.0f} s after its creation")


async def never_refused_again(stage: Stage) -> None:
    """Also with another process, which learns it from the status."""
    before, refused = await given(stage), refusals(stage)
    for _ in range(LIVES):
        await stage.stop()
        await stage.started()
        await stage.quiet(READY_SECONDS)
        await scale(stage, 0)
        await at_rest(stage)
        await scale(stage, 1)
        await stage.until_running(1)
        assert await given(stage) == before
    assert refusals(stage) == refused
    assert set(refused) == {"driver only supports one pod per claim, got 2"}


@pytest.mark.alone
@pytest.mark.long
async def test_an_unknown_driver_that_wants_one_pod_is_found_out_by_its_refusal(
    stage: Stage,
) -> None:
    """One pod is refused, and runs when its kubelet tries again, after 60 to 90 s. No other is."""
    synchronize(stage, "1m")
    try:
        await asyncio.to_thread(machines(stage).cluster.wait_until_ready)
        await hold_unknown(stage)
        await refused_until_found(stage)
        assert len(refusals(stage)) == 1
        await never_refused_again(stage)
    finally:
        synchronize(stage, SYNC_FREQUENCY)


def synchronize(stage: Stage, frequency: str) -> None:
    """Restart the kubelets with how often they try again to prepare a device."""
    for node in machines(stage).cluster.nodes:
        node.kill_kubelet()
        node.kubelet.configure(syncFrequency=frequency)
        node.start_kubelet()


@pytest.mark.long
async def test_kubelets_that_try_again_soon_do_not_hide_a_driver_that_wants_one_pod(
    stage: Stage,
) -> None:
    """The refused pod starts as soon as with a slow driver. So the next pod is refused, too."""
    await hold_unknown(stage)
    await refused_until_found(stage)
    await stage.until_condition("Reserved", "True", "Reserved")
    await scale(stage, 0)
    await stage.until_listed("deployments/train")
    await refused_until_found(stage)
    await never_refused_again(stage)
