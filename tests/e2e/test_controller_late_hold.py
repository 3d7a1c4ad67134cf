"""Late holds: beside a driver that wants one pod in the list, held claims start and keep devices.

``LIVES=100`` plays so many lives in place of the few of every run.
"""

from __future__ import annotations

import json
import os
from random import Random
from typing import Any

import pytest
from kube_in_process.components.drivers.driver import Driver
from kube_in_process.habits.preparing import FailsToPrepare
from kube_in_process.habits.presence import Slow
from kube_in_process.options import ClusterOptions
from kube_in_process.storage.store import Revision

from claimctl.wire.resources import DEPLOYMENTS, PODS, RESOURCECLAIMS
from tests.e2e import manifests
from tests.e2e.harness import HOLD_136, NAMESPACE, PODGROUP_136, NewStage, Stage
from tests.e2e.site import taken_for_one_pod_drivers

LIVES = int(os.environ.get("LIVES", "5"))
DRIVER = "gpu.example.com"
KNOWN: dict[str, Any] = {"one_pod_drivers": frozenset({DRIVER})}
CLUSTERS = {"1.36": HOLD_136, "1.36, PodGroups served": PODGROUP_136}
AWAY_SECONDS = 30.0


def driver_of(stage: Stage) -> Driver:
    return stage.embedded.driver(DRIVER)


def refusals(stage: Stage) -> list[str]:
    return [call.error for call in driver_of(stage).calls if call.error]


async def given(stage: Stage) -> tuple[str, str, str]:
    """The allocated device, and when it was allocated."""
    allocation = (await stage.claim()).status.allocation
    assert allocation is not None
    (result,) = allocation.devices.results or ()
    return result.pool, result.device, str(allocation.allocation_timestamp)


async def made(stage: Stage, *, strategy: str = "RollingUpdate") -> None:
    workload = manifests.deployment(reserve="*")
    workload["spec"]["strategy"] = {"type": strategy}
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(DEPLOYMENTS, workload)


async def held_late(stage: Stage) -> None:
    """A controller that knows the driver holds the claim beside it."""
    driver_of(stage).take_up("wants-one-pod")
    await stage.started(**KNOWN)
    await made(stage)
    await stage.until_condition("Reserved", "True", "HeldBetweenPods")


async def scale(stage: Stage, replicas: int) -> None:
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": replicas}})


async def scaled_to_0(stage: Stage) -> None:
    """The workload's pod is gone, and its claim rests."""
    await scale(stage, 0)

    async def gone() -> bool:
        return not (await stage.client.list(PODS, NAMESPACE)).items

    await stage.until(gone, "the pods are gone")
    await stage.until_listed()


async def scaled_to_1(stage: Stage) -> None:
    await scale(stage, 1)
    await stage.until_running(1)


async def written(stage: Stage, since: int) -> int:
    """How many versions of the claim claimctl wrote after a revision."""
    history = await stage.site.history(since)
    ours = [each for each in history if each.actor == stage.site.account]
    return sum(each.plural == "resourceclaims" for each in ours)


@pytest.mark.parametrize("options", CLUSTERS.values(), ids=CLUSTERS)
async def test_scale_to_0_and_1_keeps_the_device_and_refuses_no_pod(
    new_stage: NewStage, options: ClusterOptions
) -> None:
    async with new_stage(options) as stage:
        await held_late(stage)
        before = await given(stage)
        for _ in range(LIVES):
            since = stage.embedded.store.revision
            await scaled_to_0(stage)
            assert await written(stage, since) == 2
            since = stage.embedded.store.revision
            await scaled_to_1(stage)
            await stage.quiet(15)
            assert await written(stage, since) == 0
            assert await given(stage) == before
        assert refusals(stage) == []


@pytest.mark.parametrize("options", CLUSTERS.values(), ids=CLUSTERS)
async def test_a_pod_starts_also_while_the_controller_is_away(
    new_stage: NewStage, options: ClusterOptions
) -> None:
    """It is stopped for 30 s at a random moment between the rest and the next scale to 0."""
    async with new_stage(options) as stage:
        rng = Random(1)
        await held_late(stage)
        before = await given(stage)
        for _ in range(LIVES):
            await scaled_to_0(stage)
            await scale(stage, 1)
            await stage.quiet(rng.uniform(0, 1))
            await stage.stop()
            await stage.quiet(AWAY_SECONDS)
            await stage.until_running(1)
            await stage.started(**KNOWN)
            assert await given(stage) == before
        assert refusals(stage) == []


async def test_a_restart_of_the_workload_keeps_the_device(new_stage: NewStage) -> None:
    async with new_stage(HOLD_136) as stage:
        driver = stage.site.driver
        await driver.take_up("wants-one-pod")
        await stage.started(one_pod_drivers=frozenset({driver.name}))
        await made(stage, strategy="Recreate")
        await stage.until_running(1)
        await stage.until_condition("Reserved", "True", "HeldBetweenPods")
        before = await given(stage)
        for _ in range(LIVES):
            (old,) = await stage.running()
            await stage.delete(PODS, old.metadata.name)

            async def replaced(old: Any = old) -> bool:
                now = {pod.metadata.uid for pod in await stage.running()}
                return bool(now - {old.metadata.uid})

            await stage.until(replaced, "the next pod runs", within=10)
            assert await given(stage) == before
        assert [call.error for call in driver.calls() if call.error] == []


async def test_a_driver_that_nobody_knows_is_found_out_by_its_refusal(new_stage: NewStage) -> None:
    """One pod is refused beside the hold, until the hold leaves. No later pod is refused, also by
    another controller."""
    async with new_stage(HOLD_136) as stage:
        driver_of(stage).take_up("wants-one-pod")
        await stage.started()
        await made(stage)
        await stage.until_condition("Reserved", "True", "DriverRefusesHold", within=15)
        await stage.until(lambda: runs(stage), "the kubelet has tried again", within=120)
        before = await given(stage)
        refused = len(refusals(stage))
        for _ in range(2):
            await stage.stop()
            await stage.started()
            await scaled_to_0(stage)
            await scaled_to_1(stage)
            assert await given(stage) == before
        assert len(refusals(stage)) == refused > 0


@pytest.mark.parametrize(
    ("reason", "taken"), [("DriverRefusesHold", {"slow"}), ("Reserved", set())]
)
def test_the_witness_takes_a_driver_for_one_that_wants_one_pod_as_claimctl_does(
    reason: str, taken: set[str]
) -> None:
    history = list[Revision]()

    def tell(group: str, plural: str, name: str, body: dict[str, Any]) -> None:
        whole = {"metadata": {"name": name, "namespace": NAMESPACE}, **body}
        data, number = json.dumps(whole, separators=(",", ":")).encode(), len(history) + 1
        head = (number, "ADDED", group, plural, NAMESPACE, name)
        history.append(Revision(*head, data, None, "user", "create", 0.0))

    for driver in ("slow", "good"):
        result = {"driver": driver, "pool": "node-0", "device": "dev-0", "request": "gpu"}
        allocation = {"devices": {"results": [result]}}
        claim = {"spec": {}, "status": {"allocation": allocation}}
        tell("resource.k8s.io", "resourceclaims", driver, claim)
    status = {"conditions": [{"type": "Reserved", "status": "True", "reason": reason}]}
    reservation = {"spec": {"resourceClaimName": "slow"}, "status": status}
    tell("claimctl.io", "claimreservations", "slow", reservation)
    assert taken_for_one_pod_drivers(history) == taken


async def test_a_slow_driver_is_suspected_once_at_most(new_stage: NewStage) -> None:
    """It takes 20 s to prepare a claim, and does so beside a hold."""
    async with new_stage(HOLD_136) as stage:
        driver_of(stage).take_up(Slow(prepare_seconds=20.0))
        await stage.started()
        await made(stage)
        await stage.until_condition("Reserved", "True", "DriverRefusesHold")
        await stage.until_running(1)
        await stage.until_condition("Reserved", "True", "Reserved")
        await scale(stage, 0)
        await stage.until_listed("deployments/train")
        await scale(stage, 1)
        await stage.until(lambda: runs(stage), "the pod runs")
        assert await stage.condition("Reserved") == ("True", "Reserved")


async def held_at_0(stage: Stage) -> None:
    """The claim is held, and the workload is scaled to 0."""
    await made(stage)
    await stage.until_running(1)
    await stage.until_condition("Reserved", "True", "Reserved")
    await scale(stage, 0)
    await stage.until_listed("deployments/train")


async def runs(stage: Stage) -> bool:
    return len(await stage.running()) == 1


async def test_a_driver_that_has_started_a_pod_beside_a_hold_is_never_suspected(
    new_stage: NewStage,
) -> None:
    async with new_stage(HOLD_136) as stage:
        await stage.started()
        await held_at_0(stage)
        driver_of(stage).take_up(Slow(prepare_seconds=1.0))
        await scaled_to_1(stage)
        await scale(stage, 0)
        await stage.until_listed("deployments/train")
        driver_of(stage).take_up(FailsToPrepare(text="out of order"))
        await scale(stage, 1)
        await stage.quiet(30)
        driver_of(stage).drop("fails-to-prepare")
        assert await stage.condition("Reserved") == ("True", "Reserved")
        await stage.until(lambda: runs(stage), "the kubelet has tried again", within=120)


async def test_an_idle_claim_at_rest_and_one_whose_workload_ends_are_released(
    new_stage: NewStage,
) -> None:
    async with new_stage(HOLD_136) as stage:
        await held_late(stage)
        await scaled_to_0(stage)
        await stage.quiet(50)
        assert await stage.allocated()
        await stage.until_released(within=20)
        await scaled_to_1(stage)
        await stage.until_condition("Reserved", "True", "HeldBetweenPods")
        await stage.delete(DEPLOYMENTS, "train", propagation="Background")
        await stage.until_released()


async def test_a_withdrawn_reservation_leaves_the_pod_and_no_leak(new_stage: NewStage) -> None:
    async with new_stage(HOLD_136) as stage:
        await held_late(stage)
        annotation = {"metadata": {"annotations": {"claimctl.io/reserve": None}}}
        await stage.patch(DEPLOYMENTS, "train", annotation)

        async def gone() -> bool:
            return not await stage.reservations()

        await stage.until(gone, "the reservation has gone")
        assert await stage.allocated()
        await scale(stage, 0)
        await stage.until_released()


async def test_a_pod_that_cannot_reach_the_device_moves_the_claim_at_rest(
    new_stage: NewStage,
) -> None:
    """The scheduler does it: the list is empty."""
    async with new_stage(HOLD_136) as stage:
        await held_late(stage)
        await scaled_to_0(stage)
        node, _, _ = await given(stage)
        await stage.cordon(node)
        await scale(stage, 1)
        await stage.until(lambda: runs(stage), "the pod runs elsewhere", within=5)
        assert (await given(stage))[0] != node
        assert refusals(stage) == []
