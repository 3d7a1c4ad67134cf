"""Annotations that operators copy to what they make: nobody inherits a hold."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from claimctl.reservation.annotation import Annotated, plan
from claimctl.reservation.kinds.shipped import workload_reference
from claimctl.wire.base import to_plain
from claimctl.wire.reservations import RESERVE_ANNOTATION, WorkloadRef
from claimctl.wire.resources import CLAIMRESERVATIONS, JOBS, PODS, RESOURCECLAIMS, STATEFULSETS
from tests.e2e import manifests
from tests.e2e.dying_transport import DyingTransport
from tests.e2e.harness import HOLD_136, NAMESPACE, Stage
from tests.e2e.kinds import begin, define, forbid, permit
from tests.e2e.operators import (
    JOBSETS,
    LEADERS,
    RAYCLUSTERS,
    RAYJOBS,
    LeaderWorkerSets,
    RayJobs,
    owned,
)
from tests.e2e.rights import grant, permissions, strict

pytestmark = pytest.mark.cluster(HOLD_136)

TEMPLATE: dict[str, Any] = {"spec": manifests.deployment()["spec"]["template"]["spec"]}
GROUPS: dict[str, Any] = {
    "replicas": 2,
    "leaderWorkerTemplate": {"size": 2, "workerTemplate": TEMPLATE},
}
HEAD: dict[str, Any] = {"rayClusterSpec": {"headGroupSpec": {"template": TEMPLATE}}}
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
        await stage.quiet(10)
        assert len(await stage.references()) == 5
        assert await reserving(stage) == ["LeaderWorkerSet/train"]
        await stage.patch(LEADERS, "train", OFF)
        await until_holders(stage)
        await stage.quiet(10)
        assert await copies(stage) == {"train-0", "train-1"}
        assert await reserving(stage) == []
        await stage.kill()
        await stage.started("two")
        await stage.quiet(10)
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
        await stage.quiet(10)
        assert await reserving(stage) == ["RayJob/train"]
        await stage.patch(RAYJOBS, "train", OFF)
        await until_holders(stage)
        await stage.quiet(10)
        cluster = await stage.client.get(RAYCLUSTERS, "train-cluster", NAMESPACE)
        assert cluster.metadata.annotation(RESERVE_ANNOTATION) == "*"
        assert await reserving(stage) == []


async def never_without_a_hold(stage: Stage, since: str) -> None:
    """No later version of the claim lacks its allocation or a hold."""
    for revision in await stage.site.history(int(since)):
        if revision.plural == "resourceclaims":
            status = revision.object()["status"]
            assert status["allocation"]
            assert {entry["resource"] for entry in status["reservedFor"]} > {"pods"}


@pytest.mark.cluster(strict(HOLD_136))
async def test_a_copy_holds_while_its_origin_may_not_be_read_and_gives_way_then(
    stage: Stage,
) -> None:
    """The hold of the LeaderWorkerSet stands in the list before that of its copy goes. Of the
    copies, only the highest holds."""
    await grant(stage, permissions("controller.yaml"), "controller.yaml")
    role = await define(stage, LEADERS)
    await forbid(stage, LEADERS, role)
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    async with LeaderWorkerSets(stage).running():
        await begin(stage, LEADERS, **GROUPS)
        await stage.until_running(4)
        await until_holders(stage, "statefulsets/train")
        since = (await stage.claim()).metadata.resource_version
        await stage.until_condition("Reserved", "True", "Reserved")
        (made,) = await stage.reservations()
        (reserved,) = [each for each in made.status.conditions if each.type == "Reserved"]
        assert "LeaderWorkerSet train, to which it belongs, may have" in reserved.message
        assert "the controller may not get, list, watch leaderworkersets" in reserved.message
        before = stage.clock.monotonic()
        await permit(stage, LEADERS)
        await until_holders(stage, "leaderworkersets/train")
        assert stage.clock.monotonic() - before < 15
        await stage.quiet(10)
        assert await reserving(stage) == ["LeaderWorkerSet/train"]
        await never_without_a_hold(stage, since)


async def held_by_copies(stage: Stage, *names: str) -> str:
    """What earlier versions made: each of these StatefulSets has a ClaimReservation and a hold.
    Returns the version of the claim."""
    await define(stage, LEADERS)
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await begin(stage, LEADERS, **GROUPS)
    await stage.until_running(4)
    entries = list(to_plain((await stage.claim()).status.reserved_for))
    for name in names:
        copy = await stage.client.get(STATEFULSETS, name, NAMESPACE)
        ref = WorkloadRef(api_group="apps", kind="StatefulSet", name=name)
        for made in plan(Annotated(ref, "apps/v1", copy)).create:
            body = {"metadata": to_plain(made.metadata), "spec": to_plain(made.spec)}
            await stage.create(CLAIMRESERVATIONS, body)
        entries.append(to_plain(workload_reference(ref, copy.metadata.uid)))
    await stage.write_list(entries)
    return (await stage.claim()).metadata.resource_version


@pytest.mark.parametrize("write", [1, 2, 4, 7])
async def test_copies_give_way_although_the_controller_is_killed_at_any_write(
    stage: Stage, write: int
) -> None:
    async with LeaderWorkerSets(stage).running():
        since = await held_by_copies(stage, "train", "train-0", "train-1")
        transport = DyingTransport(stage.connect(), write)
        transport.arm()
        stage.manager("first", transport)
        with suppress(TimeoutError):
            async with asyncio.timeout(30):
                await transport.dead.wait()
        await stage.kill("first")
        await stage.started("second")
        await until_holders(stage, "leaderworkersets/train")
        await stage.quiet(10)
        assert await reserving(stage) == ["LeaderWorkerSet/train"]
        await never_without_a_hold(stage, since)


async def test_a_copy_holds_for_a_workload_at_scale_0_of_which_no_pod_was_seen(
    stage: Stage,
) -> None:
    """Its annotation '*' names no claim before its next pod does."""
    async with LeaderWorkerSets(stage).running():
        await held_by_copies(stage, "train")
        before = (await stage.claim()).status.allocation
        await stage.patch(LEADERS, "train", {"spec": {"replicas": 0}})
        await stage.until(lambda: stage.gone(PODS, "train-1"), "the pods are gone")
        await stage.started()
        await until_holders(stage, "statefulsets/train")
        await stage.quiet(10)
        (made,) = await stage.reservations()
        assert made.spec.workload_ref.kind == "StatefulSet"
        assert not made.metadata.deleting
        await stage.patch(LEADERS, "train", {"spec": {"replicas": 1}})
        await until_holders(stage, "leaderworkersets/train")
        assert (await stage.claim()).status.allocation == before


async def test_an_annotation_in_a_template_of_a_kind_that_copies_nothing_counts(
    stage: Stage,
) -> None:
    """A JobSet whose user wants the claim held for one of its Jobs."""
    await define(stage, JOBSETS)
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    bare = await stage.create(JOBSETS, {"metadata": {"name": "train"}, "spec": {}})
    body = manifests.job("train-0", pods=1, seconds=10_000)
    body["metadata"]["annotations"] = {RESERVE_ANNOTATION: "*"}
    await stage.create(JOBS, owned(body, bare, JOBSETS))
    await until_holders(stage, "jobs/train-0")
    note = {"metadata": {"annotations": {RESERVE_ANNOTATION: "*"}}}
    await stage.patch(JOBSETS, "train", note)
    await until_holders(stage, "jobsets/train")
    await stage.quiet(10)
    assert await reserving(stage) == ["JobSet/train"]
    # the annotation of the Job was its user's, and counts again
    await stage.patch(JOBSETS, "train", OFF)
    await until_holders(stage, "jobs/train-0")


async def test_a_users_own_reservation_for_a_copy_stays(stage: Stage) -> None:
    """Whoever wants a hold for one group makes a ClaimReservation: only annotations are copied."""
    await define(stage, LEADERS)
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    ref = {"apiGroup": "apps", "kind": "StatefulSet", "name": "train-0"}
    spec = {"resourceClaimName": "slice", "workloadRef": ref}
    await stage.create(CLAIMRESERVATIONS, {"metadata": {"name": "own"}, "spec": spec})
    async with LeaderWorkerSets(stage).running():
        await begin(stage, LEADERS, **GROUPS)
        await until_holders(stage, "leaderworkersets/train", "statefulsets/train-0")
        await stage.patch(LEADERS, "train", OFF)
        await until_holders(stage, "statefulsets/train-0")
