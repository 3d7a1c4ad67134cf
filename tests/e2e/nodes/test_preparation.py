"""When a held device is prepared and unprepared: the hold keeps the allocation alone."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import yaml
from kube_in_process.habits.presence import Slow

from claimctl.wire.resources import CLAIMRESERVATIONS, DEPLOYMENTS, JOBS, PODS, RESOURCECLAIMS
from claimctl_reschedule.plan.plan import PodRef
from claimctl_reschedule.run.evicting import post_eviction
from tests.e2e import manifests
from tests.e2e.harness import HOLD_136, NAMESPACE, Stage
from tests.e2e.nodes.nodes import calls, until_called, until_unprepared, uses
from tests.e2e.scenes import hold_for_deployment
from tests.support.tutorial import PAGE

pytestmark = pytest.mark.cluster(HOLD_136)


async def test_a_deployment_that_is_scaled_to_0_and_back_has_the_device_prepared_anew(
    stage: Stage,
) -> None:
    await stage.started()
    await hold_for_deployment(stage, 2, idle_timeout_seconds="60")
    before = (await stage.claim()).status.allocation
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await until_unprepared(stage)
    await stage.until_listed("deployments/train")
    assert (await stage.claim()).status.allocation == before
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 2}})
    await stage.until_running(2)
    assert (await stage.claim()).status.allocation == before
    assert len(uses(stage)) == 2


async def test_a_rollout_by_recreate_unprepares_and_prepares_once(stage: Stage) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.deployment(replicas=1, reserve="*")
    body["spec"]["strategy"] = {"type": "Recreate"}
    await stage.create(DEPLOYMENTS, body)
    await stage.until_running(1)
    await stage.until_condition("Reserved", "True", "Reserved")
    before = (await stage.claim()).status.allocation
    await roll_out(stage)
    await until_called(stage, "prepare", 2)
    await stage.until_running(1)
    first, second = uses(stage)
    assert (await stage.claim()).status.allocation == before
    assert first.devices == second.devices
    assert first.until < second.since


async def test_a_rollout_with_a_surge_calls_no_driver(stage: Stage) -> None:
    """The pods share the claim, and the next one starts before the last one ends."""
    await stage.started()
    await hold_for_deployment(stage, 1)
    (first,) = await stage.running()
    await roll_out(stage)

    async def replaced() -> bool:
        pods = (await stage.client.list(PODS, NAMESPACE)).items
        return [pod.metadata.name for pod in pods] != [first.metadata.name] and len(pods) == 1

    await stage.until(replaced, "one other pod is left")
    assert calls(stage, "unprepare") == []


async def roll_out(stage: Stage) -> None:
    patch = {"spec": {"template": {"metadata": {"annotations": {"rolled": "out"}}}}}
    await stage.patch(DEPLOYMENTS, "train", patch)


def keeper() -> dict[str, Any]:
    """The Deployment of docs/howto.md that keeps a device prepared."""
    page = PAGE.with_name("howto.md").read_text(encoding="utf-8")
    _, _, rest = page.partition("## Keep a device prepared")
    text = rest.partition("```yaml")[2].partition("```")[0]
    made: dict[str, Any] = yaml.safe_load(text.replace("train-slice", "slice"))
    made["metadata"]["namespace"] = NAMESPACE
    return made


async def test_a_pod_that_does_nothing_keeps_the_device_prepared(stage: Stage) -> None:
    """A driver that takes 20 s is asked once: neither a rollout nor a scale-up waits for it."""
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(DEPLOYMENTS, keeper())
    body = manifests.deployment(replicas=1, reserve="*")
    body["spec"]["strategy"] = {"type": "Recreate"}
    await stage.create(DEPLOYMENTS, body)
    await stage.until_running(2)
    await stage.until_condition("Reserved", "True", "Reserved")
    asked = calls(stage)
    await stage.site.driver.take_up(Slow(unprepare_seconds=0.0))
    first = await trainers(stage)

    async def another() -> bool:
        return len(await trainers(stage) - first) == 1

    async def none() -> bool:
        return not await trainers(stage)

    await roll_out(stage)
    await timed(stage, another, "rollout by Recreate")
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until(none, "no pod trains")
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 1}})
    await timed(stage, another, "0 to 1")
    assert calls(stage) == asked
    await stage.delete(DEPLOYMENTS, "train")
    await stage.delete(DEPLOYMENTS, "keeper")
    await stage.until_released()


async def trainers(stage: Stage) -> set[str]:
    """The UIDs of the workload's pods that run."""
    pods = await stage.running()
    return {pod.metadata.uid for pod in pods if pod.metadata.name.startswith("train")}


async def timed(stage: Stage, holds: Callable[[], Awaitable[bool]], what: str) -> None:
    began = stage.clock.monotonic()
    await stage.until(holds, what)
    print(f"{what}: {stage.clock.monotonic() - began:.1f} s")


async def test_a_job_that_tries_again_has_the_device_prepared_for_each_pod(stage: Stage) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.job(seconds=3, reserve="*")
    body["spec"]["backoffLimit"] = 1
    annotations = body["spec"]["template"]["metadata"]["annotations"]
    annotations["kube-in-process/exit-code"] = json.dumps(1)
    await stage.create(JOBS, body)
    await stage.until_some_run()
    await until_called(stage, "prepare", 2, within=120)
    await stage.until_released(within=120)
    first, second = uses(stage)
    assert first.devices == second.devices
    assert first.until < second.since


async def test_a_claim_that_is_made_again_under_its_name_is_another_one(stage: Stage) -> None:
    await stage.started()
    await hold_for_deployment(stage, 1)
    await stage.delete(RESOURCECLAIMS, "slice")
    await stage.delete(DEPLOYMENTS, "train")

    async def gone() -> bool:
        return await stage.gone(RESOURCECLAIMS, "slice")

    await stage.until(gone, "the claim is gone")
    await hold_for_deployment(stage, 1)
    first, second = uses(stage)
    assert first.name == second.name
    assert first.claim != second.claim
    assert first.until < second.since


@pytest.mark.core
async def test_a_pod_ends_then_its_device_is_unprepared_then_the_claim_is_free(
    stage: Stage,
) -> None:
    await stage.started()
    await hold_for_deployment(stage, 3)
    await stage.delete(DEPLOYMENTS, "train")
    await stage.until_released()
    (use,) = uses(stage)
    assert use.until < float("inf")

    async def gone() -> bool:
        return not (await stage.client.list(PODS, NAMESPACE)).items

    await stage.until(gone, "the pods are gone")
    history = [each for each in await stage.site.history() if each.plural == "pods"]
    last = [each.object() for each in history if each.type == "DELETED"]
    assert len(last) == 3
    # a terminal phase comes before the object goes: what ghosts are told from rests on it
    assert {each["status"]["phase"] for each in last} <= {"Succeeded", "Failed"}


async def test_an_evicted_pod_is_replaced_on_the_same_device(stage: Stage) -> None:
    await stage.started()
    await hold_for_deployment(stage, 1)
    before = (await stage.claim()).status.allocation
    (pod,) = await stage.running()
    meta = pod.metadata
    await post_eviction(stage.client, PodRef(namespace=NAMESPACE, name=meta.name, uid=meta.uid))

    async def replaced() -> bool:
        return [each.metadata.uid for each in await stage.running()] not in (
            [],
            [pod.metadata.uid],
        )

    await stage.until(replaced, "another pod runs")
    assert (await stage.claim()).status.allocation == before


async def test_a_pod_of_another_device_is_not_disturbed_by_a_withdrawal(stage: Stage) -> None:
    """What is withdrawn stays prepared while its pods run."""
    await stage.started()
    await hold_for_deployment(stage, 1)
    patch = {"metadata": {"annotations": {"claimctl.io/reserve": None}}}
    await stage.patch(DEPLOYMENTS, "train", patch)

    async def withdrawn() -> bool:
        return not (await stage.client.list(CLAIMRESERVATIONS, NAMESPACE)).items

    await stage.until(withdrawn, "the reservation is gone")
    assert calls(stage, "unprepare") == []
    assert await stage.allocated()
