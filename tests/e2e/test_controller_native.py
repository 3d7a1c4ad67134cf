"""The controller in the dialect `native` (KEP-5194)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from kube_in_process.options import Timings

from claimctl.downgrade import plans
from claimctl.wire.base import to_plain
from claimctl.wire.claims import Reference
from claimctl.wire.reservations import DOWNGRADE_PLAN_NAME, DowngradePlan, DowngradePlanSpec
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    DOWNGRADEPLANS,
    JOBS,
    RESOURCECLAIMS,
    RESOURCECLAIMTEMPLATES,
    STATEFULSETS,
)
from claimctl.wire.seams import Query, Response
from tests.e2e import manifests
from tests.e2e.harness import HOLD_136, NATIVE, Stage

pytestmark = pytest.mark.cluster(NATIVE)

MACHINE = Reference(api_group="kubevirt.io", resource="virtualmachines", name="vm", uid="v-1")


async def reserved_deployment(stage: Stage, replicas: int = 3, **spec: Any) -> None:
    """A Deployment whose claim is made by claimctl from a template, its pods running."""
    await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template())
    await stage.create(DEPLOYMENTS, manifests.deployment(replicas=replicas))
    body = manifests.reservation(resourceClaimTemplateName="template", **spec)
    await stage.create(CLAIMRESERVATIONS, body)
    await stage.until_running(replicas)


async def test_scaling_to_zero_keeps_the_device_within_the_idle_timeout_and_releases_it_after(
    stage: Stage,
) -> None:
    await stage.started()
    await reserved_deployment(stage, idleTimeoutSeconds=30)
    before = (await stage.claim()).status.allocation
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until_running(0)
    await stage.clock.sleep(20)
    assert await stage.references() == ("deployments/train",)
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 2}})
    await stage.until_running(2)
    assert (await stage.claim()).status.allocation == before
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until_released()
    await stage.until_condition("Released", "True", "Idle")
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 1}})
    await stage.until_listed("deployments/train")
    await stage.until_running(1)


async def test_a_job_that_has_ended_gives_its_claim_back(stage: Stage) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template())
    await stage.create(JOBS, manifests.job(pods=4, seconds=5))
    body = manifests.reservation(kind="Job", resourceClaimTemplateName="template")
    await stage.create(CLAIMRESERVATIONS, body)
    await stage.until_listed("jobs/train")
    await stage.until_released()
    await stage.until_condition("Released", "True", "WorkloadEnded")


async def test_a_stateful_set_holds_through_the_loss_of_a_pod_and_releases_when_deleted(
    stage: Stage,
) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template())
    await stage.create(STATEFULSETS, manifests.stateful_set(replicas=3))
    body = manifests.reservation(kind="StatefulSet", resourceClaimTemplateName="template")
    await stage.create(CLAIMRESERVATIONS, body)
    await stage.until_running(3)
    await stage.until_listed("statefulsets/train")
    await stage.delete(STATEFULSETS, "train")
    await stage.until_released()
    await stage.until_condition("Released", "True", "WorkloadEnded")


async def test_a_claim_that_claimctl_did_not_make_keeps_its_pods_and_says_so(stage: Stage) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(DEPLOYMENTS, manifests.deployment(reserve="*"))
    await stage.until_running(1)
    await stage.until_condition("Reserved", "False", "ClaimNotCreatedForWorkload")
    await stage.until_event("ClaimNotCreatedForWorkload")
    (listed,) = await stage.references()
    assert listed.startswith("pods/train-")


async def test_deleting_the_reservation_takes_the_claim_it_made_with_it_once_unused(
    stage: Stage,
) -> None:
    await stage.started()
    await reserved_deployment(stage, replicas=2)
    await stage.delete(CLAIMRESERVATIONS, "train-slice")
    await stage.clock.sleep(30)
    assert len(await stage.running()) == 2
    assert await stage.allocated()
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until(
        lambda: stage.gone(CLAIMRESERVATIONS, "train-slice"), "the reservation is gone"
    )
    await stage.until(lambda: stage.gone(RESOURCECLAIMS, "slice"), "the claim is gone")


async def test_a_pod_that_comes_between_fence_and_settling_gets_its_holder_back(
    stage: Stage,
) -> None:
    """The scheduler's cache is three seconds late, and the scheduler binds pods by its cache."""
    await stage.started()
    await reserved_deployment(stage, replicas=1, idleTimeoutSeconds=1)
    await stage.site.set_lag(3.0)
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})

    async def fenced() -> bool:
        return await stage.allocated() and not await stage.references()

    await stage.until(fenced, "the claim is fenced")
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 1}})
    await stage.until_running(1)
    await stage.until_listed("deployments/train")
    await stage.until_condition("Reserved", "True", "Reserved")


async def test_a_downgrade_plan_lists_the_pods_and_its_deletion_folds_them_again(
    stage: Stage,
) -> None:
    await stage.started()
    await reserved_deployment(stage, replicas=20)
    await stage.client.create(DOWNGRADEPLANS, {"metadata": {"name": DOWNGRADE_PLAN_NAME}})

    async def prepared() -> bool:
        plan = await stage.client.get(DOWNGRADEPLANS, DOWNGRADE_PLAN_NAME)
        return plan.status.phase == "Prepared"

    await stage.until(prepared, "the downgrade is prepared")
    pods = sorted(f"pods/{pod.metadata.name}" for pod in await stage.running())
    assert sorted(await stage.references()) == pods
    await stage.clock.sleep(60)
    assert sorted(await stage.references()) == pods
    await stage.client.delete(DOWNGRADEPLANS, DOWNGRADE_PLAN_NAME)
    await stage.until_listed("deployments/train")


async def test_two_controllers_carry_out_one_plan_beside_a_hold_that_comes_and_goes(
    stage: Stage,
) -> None:
    for name in ("one", "two"):
        await stage.started(name, leader_elect=False)
    await reserved_deployment(stage, replicas=4)
    await stage.client.create(DOWNGRADEPLANS, {"metadata": {"name": DOWNGRADE_PLAN_NAME}})
    await carried_out(stage, "Prepared")
    pods = await stage.references()
    await write_list(stage, (*(await stage.claim()).status.reserved_for, MACHINE))
    await ask_again(stage)
    plan = await carried_out(stage, "Blocked")
    assert [each.reason for each in plan.status.claims] == ["UnknownReference"]
    assert await stage.references() == (*pods, "virtualmachines/vm")
    await write_list(stage, (await stage.claim()).status.reserved_for[:-1])
    await ask_again(stage)
    plan = await carried_out(stage, "Prepared")
    (record,) = plan.status.claims
    assert [each.name for each in record.replaced_references] == ["train"]
    assert await stage.references() == pods


async def carried_out(stage: Stage, phase: str) -> DowngradePlan:
    async def holds() -> bool:
        plan = await stage.client.get(DOWNGRADEPLANS, DOWNGRADE_PLAN_NAME)
        return plan.status.phase == phase

    await stage.until(holds, f"the plan is {phase}", within=120)
    await stage.clock.sleep(30)
    assert await holds()
    return await stage.client.get(DOWNGRADEPLANS, DOWNGRADE_PLAN_NAME)


async def ask_again(stage: Stage) -> None:
    await plans.begin(stage.client, DowngradePlanSpec())


async def write_list(stage: Stage, listed: tuple[Reference, ...]) -> None:
    await stage.write_list([to_plain(each) for each in listed])


class SlowRelease:
    """A connection over which the write that deallocates takes its time."""

    def __init__(self, stage: Stage) -> None:
        self._inner = stage.connect()
        self.begun = asyncio.Event()

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if method == "PATCH" and b'"/status/allocation"' in (body or b""):
            self.begun.set()
            await asyncio.sleep(0.3)
        return await self._inner.send(method, path, query, headers, body)


@pytest.mark.cluster(replace(HOLD_136, timings=Timings(kcm_cache_lag=0.5)))
async def test_a_hold_from_before_the_feature_came_is_fenced_before_its_claim_is_released(
    stage: Stage,
) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(DEPLOYMENTS, manifests.deployment(replicas=1))
    body = manifests.reservation(idleTimeoutSeconds=2, forceDeletedPodGraceSeconds=0)
    await stage.create(CLAIMRESERVATIONS, body)
    await stage.until_condition("Reserved", "True", "Reserved")
    await stage.stop()
    features = stage.embedded.features
    stage.embedded.switch(
        replace(
            features,
            api_reserved_for=True,
            scheduler_reserved_for=True,
            kubelet_reserved_for=True,
        )
    )
    slow = SlowRelease(stage)
    manager = await stage.started("two", transport=slow)
    assert manager.detection is not None
    assert manager.detection.dialect == "native"
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await slow.begun.wait()
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 1}})
    await stage.until_running(1)
    assert await stage.allocated()
