"""Listing ahead: claimctl lists pending pods before the scheduler does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    JOBS,
    PODS,
    RESOURCECLAIMS,
    STATEFULSETS,
    Resource,
)
from tests.e2e import manifests
from tests.e2e.harness import HOLD_136, NAMESPACE, Stage

pytestmark = pytest.mark.cluster(HOLD_136)

STORM = pytest.mark.cluster(replace(HOLD_136, conflict_storm=True))
"""The scheduler takes a while to list the pods, as a real one does."""
WORKLOADS = [
    (DEPLOYMENTS, manifests.deployment(replicas=1, reserve="*")),
    (STATEFULSETS, manifests.stateful_set(replicas=1, reserve="*")),
    (JOBS, manifests.job(pods=1, seconds=600, reserve="*")),
]


def _more(resource: Resource[Any], pods: int) -> dict[str, Any]:
    wanted = {"parallelism": pods} if resource is JOBS else {"replicas": pods}
    return {"spec": wanted}


async def ahead(stage: Stage, claim: str = "slice") -> int:
    """How many pods the claim lists by claimctl's own writes, as managedFields show."""
    found = await stage.claim(claim)
    mine = [each for each in found.metadata.managed_fields if each.manager == "claimctl"]
    text = b"".join(bytes(each.fields_v1) for each in mine).decode()
    return sum(each.resource == "pods" and each.uid in text for each in found.status.reserved_for)


async def held(stage: Stage, resource: Resource[Any], body: dict[str, Any], **on: Any) -> None:
    await stage.started(list_ahead=True, **on)
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(resource, body)
    await stage.until_condition("Reserved", "True", "Reserved")


@STORM
async def test_pods_that_the_scheduler_has_not_listed_yet_are_listed_ahead(stage: Stage) -> None:
    await held(stage, DEPLOYMENTS, manifests.deployment(replicas=30, reserve="*"))
    await stage.until_running(30)
    assert await ahead(stage) > 0


@pytest.mark.core
async def test_a_claim_whose_pods_were_listed_ahead_is_released_at_the_end(stage: Stage) -> None:
    await held(stage, JOBS, manifests.job(pods=6, seconds=5, reserve="*"))
    await stage.until_released()
    assert len((await stage.client.list(PODS, NAMESPACE)).items) == 6


@STORM
@pytest.mark.parametrize(("resource", "body"), WORKLOADS, ids=["Deployment", "StatefulSet", "Job"])
async def test_later_pods_are_listed_for_every_kind_of_workload(
    stage: Stage, resource: Resource[Any], body: dict[str, Any]
) -> None:
    if resource is JOBS:
        body = {**body, "spec": {**body["spec"], "completions": 25}}
    await held(stage, resource, body)
    await stage.until_running(1)
    await stage.patch(resource, body["metadata"]["name"], _more(resource, 25))
    await stage.until_running(25)
    assert await ahead(stage) > 0


async def test_pods_with_two_claims_run(stage: Stage) -> None:
    await stage.started(list_ahead=True)
    for name in ("slice", "other"):
        await stage.create(RESOURCECLAIMS, manifests.claim(name))
    body = manifests.deployment(replicas=12, reserve="*")
    spec = body["spec"]["template"]["spec"]
    spec["resourceClaims"].append({"name": "other", "resourceClaimName": "other"})
    spec["containers"][0]["resources"]["claims"].append({"name": "other"})
    await stage.create(DEPLOYMENTS, body)
    await stage.until_running(12)
    names = [f"pods/{pod.metadata.name}" for pod in await stage.running()]
    for name in ("slice", "other"):
        await stage.until_listed("deployments/train", *names, claim=name)


async def test_without_the_setting_no_pod_is_listed_ahead(stage: Stage) -> None:
    await stage.started(list_ahead=False)
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(DEPLOYMENTS, manifests.deployment(replicas=8, reserve="*"))
    await stage.until_running(8)
    await stage.until_condition("Reserved", "True", "Reserved")
    assert await ahead(stage) == 0


@pytest.mark.core
async def test_a_rollout_keeps_the_claim_and_ends(stage: Stage) -> None:
    await held(stage, DEPLOYMENTS, manifests.deployment(replicas=8, reserve="*"))
    await stage.until_running(8)
    before = (await stage.claim()).status.allocation
    template = {"metadata": {"labels": {"app": "train", "version": "two"}}}
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"template": template}})

    async def rolled() -> bool:
        pods = await stage.running()
        return len(pods) == 8 and all(
            (pod.metadata.labels or {}).get("version") == "two" for pod in pods
        )

    await stage.until(rolled, "all pods are new")
    assert (await stage.claim()).status.allocation == before
    names = tuple(f"pods/{pod.metadata.name}" for pod in await stage.running())
    await stage.until_listed("deployments/train", *names)


@pytest.mark.core
async def test_withdrawing_beside_pods_that_find_no_node_ends(stage: Stage) -> None:
    await held(stage, DEPLOYMENTS, manifests.deployment(replicas=3, reserve="*"))
    await stage.until_running(3)
    (reservation,) = await stage.reservations()
    await stage.patch(
        DEPLOYMENTS, "train", {"metadata": {"annotations": {"claimctl.io/reserve": None}}}
    )
    await stage.until(
        lambda: stage.gone(CLAIMRESERVATIONS, reservation.metadata.name), "it is withdrawn"
    )
    await stage.until_running(3)
