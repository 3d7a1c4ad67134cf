"""Annotations that operators copy to what they make: nobody inherits a hold."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.wire.reservations import RESERVE_ANNOTATION
from claimctl.wire.resources import CLAIMRESERVATIONS, JOBS, RESOURCECLAIMS, STATEFULSETS
from tests.e2e import manifests
from tests.e2e.harness import HOLD_136, NAMESPACE, Stage
from tests.e2e.kinds import begin, define, forbid, gangs, permit
from tests.e2e.operators import (
    JOBSETS,
    LEADERS,
    RAYCLUSTERS,
    RAYJOBS,
    LeaderWorkerSets,
    RayJobs,
    owned,
)

pytestmark = pytest.mark.cluster(HOLD_136)

TEMPLATE = {"spec": manifests.deployment()["spec"]["template"]["spec"]}
GROUPS = {"replicas": 2, "leaderWorkerTemplate": {"size": 2, "workerTemplate": TEMPLATE}}
HEAD = {"rayClusterSpec": {"headGroupSpec": {"template": TEMPLATE}}}
OFF = {"metadata": {"annotations": {RESERVE_ANNOTATION: None}}}


async def holders(stage: Stage) -> list[str]:
    """The entries of the claim's list that are no pods."""
    return [entry for entry in await stage.references() if not entry.startswith("pods/")]


async def reserving(stage: Stage) -> list[str]:
    """The workloads for which there is a ClaimReservation, sorted."""
    refs = [made.spec.workload_ref for made in await stage.reservations()]
    return sorted(f"{ref.kind}/{ref.name}" for ref in refs)


async def until_holders(stage: Stage, *expected: str) -> None:
    async def holds() -> bool:
        return sorted(await holders(stage)) == sorted(expected)

    await stage.until(holds, f"the claim is held by {expected}")


async def copies(stage: Stage) -> set[str]:
    """The StatefulSets that have the annotation."""
    sets = (await stage.client.list(STATEFULSETS, NAMESPACE)).items
    noted = (each.metadata for each in sets)
    return {meta.name for meta in noted if meta.annotation(RESERVE_ANNOTATION) is not None}


async def test_the_statefulsets_of_a_leaderworkerset_hold_nothing(stage: Stage) -> None:
    """Two groups. Also the copies that stay when the annotation goes hold nothing, and a controller
    that starts then knows it."""
    await define(stage, LEADERS)
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    async with LeaderWorkerSets(stage).running():
        await begin(stage, LEADERS, **GROUPS)
        await stage.until_running(4)
        await until_holders(stage, "leaderworkersets/train")
        assert await copies(stage) == {"train", "train-0", "train-1"}
        await stage.quiet(30)
        assert len(await stage.references()) == 5
        assert await reserving(stage) == ["LeaderWorkerSet/train"]
        await stage.patch(LEADERS, "train", OFF)
        await until_holders(stage)
        await stage.quiet(30)
        assert await copies(stage) == {"train-0", "train-1"}
        assert await reserving(stage) == []
        await stage.kill()
        await stage.started("two")
        await stage.quiet(30)
        assert await reserving(stage) == []
        assert await holders(stage) == []


async def test_the_raycluster_of_a_rayjob_holds_nothing(stage: Stage) -> None:
    await define(stage, RAYJOBS)
    await define(stage, RAYCLUSTERS)
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    async with RayJobs(stage).running():
        await begin(stage, RAYJOBS, **HEAD)
        await stage.until_running(1)
        await until_holders(stage, "rayjobs/train")
        await stage.quiet(30)
        assert await reserving(stage) == ["RayJob/train"]
        await stage.patch(RAYJOBS, "train", OFF)
        await until_holders(stage)
        await stage.quiet(30)
        cluster = await stage.client.get(RAYCLUSTERS, "train-cluster", NAMESPACE)
        assert cluster.metadata.annotation(RESERVE_ANNOTATION) == "*"
        assert await reserving(stage) == []
