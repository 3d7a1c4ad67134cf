"""Orphans: found, listed without a write, and freed; other claims are not touched."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import pytest
from kube_in_process.options import ClusterOptions
from kube_in_process.storage.requests import Fault

from claimctl.commands.orphans.adoption import adoptions
from claimctl.commands.orphans.model import Cause, Orphan
from claimctl.wire.base import to_plain
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    PODGROUPS,
    REPLICASETS,
    RESOURCECLAIMS,
    Resource,
)
from claimctl.wire.seams import Query, Response, Transport
from tests.e2e import manifests, orphans
from tests.e2e.faulty import Faulty
from tests.e2e.harness import (
    HOLD_136,
    NAMESPACE,
    NATIVE,
    PODGROUP_136,
    PODGROUP_137,
    NewStage,
    Stage,
)
from tests.e2e.orphans import MAKERS, freed, freeing, judged, outcome_of, until_free
from tests.support.counting_server import CountingTransport

pytestmark = pytest.mark.cluster(HOLD_136)

newest = pytest.mark.parametrize("options", [HOLD_136], ids=["1.36"])
causes = pytest.mark.parametrize("cause", MAKERS)
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap", ObjectHeader)


@pytest.fixture
def stage(stage: AbstractAsyncContextManager[Stage]) -> AbstractAsyncContextManager[Stage]:
    return judged(stage)


class Interrupted:
    """Lets something happen before the n-th write of a claim, or just after it."""

    def __init__(
        self,
        inner: Transport,
        write: int,
        happens: Callable[[], Awaitable[None]],
        *,
        after: bool = False,
    ) -> None:
        self._inner, self._left, self._happens, self._after = inner, write, happens, after
        self.happened = False

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        self._left -= method == "PATCH" and "/resourceclaims/" in path
        if self._left > 0 or self.happened:
            return await self._inner.send(method, path, query, headers, body)
        self.happened = True
        if not self._after:
            await self._happens()
        answer = await self._inner.send(method, path, query, headers, body)
        if self._after:
            await self._happens()
        return answer


@causes
@newest
async def test_a_leftover_is_found_and_freed(stage: Stage, cause: str) -> None:
    await MAKERS[cause](stage)
    assert await freed(stage) == [("slice", cause, "Freed")]
    await until_free(stage)
    assert await freed(stage) == []


@causes
@newest
async def test_a_controller_that_watched_all_the_time_frees_it_without_a_grace(
    stage: Stage, cause: str
) -> None:
    """Beside waiting pods that were listed ahead, the binding time counts."""
    if cause == "ListedAhead":
        await orphans.listed_ahead(stage, writer=stage.connect())
    else:
        await MAKERS[cause](stage)
    await stage.started("two")
    await stage.clock.sleep(stage.scaled(320))
    begin = stage.clock.monotonic()
    assert await freed(stage) == [("slice", cause, "Freed")]
    most = 90 if cause == "ListedAhead" else 30
    assert stage.clock.monotonic() - begin < most
    await until_free(stage)
    assert not await stage.reservations()


@newest
async def test_a_pod_that_only_the_orphaned_hold_keeps_waiting_runs_in_the_end(
    stage: Stage,
) -> None:
    await orphans.orphaned_hold(stage)
    allocation = (await stage.claim()).status.allocation
    assert allocation is not None
    for device in allocation.devices.results or ():
        await stage.cordon(device.pool)
    await stage.create(DEPLOYMENTS, manifests.deployment("late", 1, "slice"))
    await stage.quiet(120)
    assert not await stage.running()
    assert await freed(stage) == [("slice", "OrphanedHold", "Freed")]
    await stage.until_running(1)


@newest
async def test_what_is_in_use_held_or_healthy_is_not_looked_at_twice(
    stage: Stage, options: ClusterOptions
) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim("unused"))
    await orphans.in_use(stage, "used")
    await orphans.in_use(stage, "held")
    await stage.create(
        CLAIMRESERVATIONS,
        manifests.reservation("held", workload="held", claim="held", retentionPolicy="Manual"),
    )
    await stage.until_condition("Reserved", "True", "Reserved", name="held")
    await stage.patch(DEPLOYMENTS, "held", {"spec": {"replicas": 0}})
    await stage.until_listed("deployments/held", claim="held")
    await orphans.in_use(stage, "theirs")
    await orphans.foreign(stage, "theirs", await orphans.reference(stage, "theirs"))
    await stage.patch(DEPLOYMENTS, "theirs", {"spec": {"replicas": 0}})
    await orphans.until_pods(stage, "theirs", 0)
    await stage.clock.sleep(10)
    before = await claim_writes(stage)
    assert await freed(stage, grace=0) == []
    assert await claim_writes(stage) == before


async def writes(stage: Stage) -> int:
    """How often anybody wrote anything."""
    return sum(1 for _ in await stage.site.history())


async def claim_writes(stage: Stage) -> int:
    return sum(each.plural == "resourceclaims" for each in await stage.site.history())


async def test_a_claim_that_a_reservation_names_is_the_controllers(stage: Stage) -> None:
    await orphans.dead_pods(stage)
    body = manifests.reservation("late", workload="nobody", claim="slice")
    await stage.create(CLAIMRESERVATIONS, body)
    before = await claim_writes(stage)
    assert await freed(stage, grace=0) == []
    assert await claim_writes(stage) == before


async def test_a_reservation_made_meanwhile_stops_it(stage: Stage) -> None:
    await orphans.allocated_to_nobody(stage)
    idle = manifests.deployment("slice", 0, "slice")
    await stage.create(DEPLOYMENTS, idle)
    run = asyncio.create_task(freeing(stage).run())
    await stage.clock.sleep(stage.scaled(200))
    spec: dict[str, Any] = {"retentionPolicy": "Manual"}
    if stage.cluster is None:  # as for ``freeing``
        spec["forceDeletedPodGraceSeconds"] = int(stage.scaled(300))
    body = manifests.reservation("late", workload="slice", claim="slice", **spec)
    await stage.create(CLAIMRESERVATIONS, body)
    assert list(map(outcome_of, await run)) == [("slice", "AllocatedToNobody", "NotOrphan")]
    assert await stage.allocated()


@pytest.mark.parametrize("when", [2, 290])
async def test_a_pod_that_comes_meanwhile_keeps_its_device(stage: Stage, when: float) -> None:
    await orphans.allocated_to_nobody(stage)
    run = asyncio.create_task(freeing(stage).run())
    await stage.clock.sleep(stage.scaled(when))
    await stage.create(DEPLOYMENTS, manifests.deployment("slice", 1, "slice"))
    await orphans.until_pods(stage, "slice", 1)
    assert list(map(outcome_of, await run)) == [("slice", "AllocatedToNobody", "NotOrphan")]
    assert await stage.allocated()
    assert (await stage.claim()).metadata.annotations is None


@pytest.mark.parametrize(("write", "after"), [(1, False), (1, True), (2, False)])
async def test_a_pod_scheduled_between_the_look_and_a_write_makes_it_conflict(
    stage: Stage, write: int, *, after: bool
) -> None:
    """Before the deallocation, and between that and the removal of the finalizer."""
    await orphans.allocated_to_nobody(stage)

    async def bound() -> None:
        await stage.create(DEPLOYMENTS, manifests.deployment("slice", 1, "slice"))
        await orphans.until_pods(stage, "slice", 1)

    transport = Interrupted(orphans.connection(stage), write, bound, after=after)
    found = await freeing(stage, transport, grace=0).run()
    assert transport.happened
    assert list(map(outcome_of, found)) in (
        [("slice", "AllocatedToNobody", "NotOrphan")],
        [("slice", "AllocatedToNobody", "Freed")],
    )
    assert await stage.allocated()
    claim = await stage.claim()
    assert orphans.FINALIZER in claim.metadata.finalizers
    assert claim.metadata.annotations is None


@causes
async def test_a_pod_that_vanished_just_before_has_its_grace(stage: Stage, cause: str) -> None:
    """The witness accuses of every deallocation within 300 s of the pod's disappearance."""
    await MAKERS[cause](stage, force=True)
    begin = stage.clock.monotonic()
    assert await freed(stage) == [("slice", cause, "Freed")]
    assert stage.scaled(300) <= stage.clock.monotonic() - begin
    assert stage.cluster is None or stage.clock.monotonic() - begin < 375


async def test_a_pod_that_came_and_vanished_meanwhile_has_its_grace(stage: Stage) -> None:
    await orphans.allocated_to_nobody(stage)
    run = asyncio.create_task(freeing(stage, grace=300).run())
    await stage.clock.sleep(stage.scaled(200))
    await stage.create(DEPLOYMENTS, manifests.deployment("slice", 1, "slice"))
    await orphans.until_pods(stage, "slice", 1)
    await stage.site.pause(orphans.KCM)
    await orphans.without_pods(stage, "slice", force=True)
    begin = stage.clock.monotonic()
    await orphans.foreign(stage, "slice")
    await stage.site.resume(orphans.KCM)
    assert list(map(outcome_of, await run)) == [("slice", "AllocatedToNobody", "Freed")]
    assert stage.clock.monotonic() - begin >= stage.scaled(295)


async def test_another_claim_of_the_same_name_keeps_its_holder(stage: Stage) -> None:
    await orphans.allocated_to_nobody(stage)
    run = asyncio.create_task(freeing(stage).run())
    await stage.clock.sleep(stage.scaled(100))
    left = (await stage.claim()).status
    await stage.patch(RESOURCECLAIMS, "slice", {"metadata": {"finalizers": None}})
    await stage.delete(RESOURCECLAIMS, "slice")
    await stage.create(RESOURCECLAIMS, manifests.claim())
    status = {**to_plain(left), "reservedFor": [orphans.VM]}
    await stage.patch_status(RESOURCECLAIMS, "slice", {"status": status})
    assert list(map(outcome_of, await run)) == [("slice", "AllocatedToNobody", "Freed")]
    assert await stage.allocated()


async def test_with_less_grace_the_operator_answers_for_it(new_stage: NewStage) -> None:
    async with judged(new_stage(HOLD_136), grace=10) as stage:
        await orphans.dead_pods(stage)
        begin = stage.clock.monotonic()
        assert await freed(stage, grace=10) == [("slice", "DeadPods", "Freed")]
        assert stage.clock.monotonic() - begin >= 10
        assert stage.cluster is None or stage.clock.monotonic() - begin < 17


async def test_custom_resources_and_every_other_kind_are_found_by_discovery(stage: Stage) -> None:
    """A ConfigMap of the core group, a ReplicaSet, a custom resource: each there, then gone."""
    await orphans.allocated_to_nobody(stage)
    made: dict[Resource[Any], dict[str, Any]] = {
        CONFIGMAPS: {"metadata": {"name": "box", "namespace": NAMESPACE}},
        CLAIMRESERVATIONS: manifests.reservation("box", claim="another"),
        REPLICASETS: orphans.replica_set("box"),
    }
    for resource, body in made.items():
        uid = (await stage.create(resource, body)).metadata.uid
        held = {"resource": resource.plural, "name": "box", "uid": uid}
        if resource.group:
            held["apiGroup"] = resource.group
        await orphans.foreign(stage, "slice", held)
        assert await freeing(stage).preview() == (), resource.plural
        await stage.delete(resource, "box")
        await stage.until(partial(stage.gone, resource, "box"), f"{resource.plural} is gone")
        (found,) = await freeing(stage).preview()
        assert outcome_of(found) == ("slice", "DanglingReference", "WouldFree"), resource.plural
    assert await freed(stage) == [("slice", "DanglingReference", "Freed")]


@pytest.mark.parametrize("recorded", [False, True], ids=["made", "recorded"])
async def test_what_has_the_form_of_an_adoption_frees_no_claim_of_others(
    stage: Stage, *, recorded: bool
) -> None:
    """A user of the namespace makes it, and an administrator runs the command."""
    await stage.started()
    await orphans.in_use(stage)
    await orphans.foreign(stage, "slice", orphans.VM, keep=True)
    await stage.patch(DEPLOYMENTS, "slice", {"spec": {"replicas": 0}})
    await orphans.until_pods(stage, "slice", 0)
    orphan = Orphan(Cause.ORPHANED_HOLD, "")
    ((forged, _),) = adoptions(await stage.claim(), orphan, grace=0).values()
    body = to_plain(forged)
    if recorded:
        # as if the API server let users write the status when they create an object
        body["status"] = {"claimUID": forged.metadata.uid, "reservedFor": orphans.VM}
    await stage.create(CLAIMRESERVATIONS, body)
    assert await freed(stage) in ([], [("slice", "UnknownReference", "Left")])
    await stage.quiet(400)
    assert await stage.references() == ("virtualmachines/vm",)
    assert await stage.allocated()


@pytest.mark.cluster(NATIVE)
async def test_a_claim_shared_by_any_pod_is_fenced_before_it_is_freed(stage: Stage) -> None:
    await stage.create(DEPLOYMENTS, manifests.deployment("slice", 3, "slice"))
    held = await orphans.reference(stage, "slice")
    body = manifests.claim("slice")
    body["spec"]["reservedFor"] = held
    await stage.create(RESOURCECLAIMS, body)
    await orphans.until_pods(stage, "slice", 3)
    assert await stage.references() == ("deployments/slice",)
    await orphans.without_pods(stage, "slice")
    assert await freed(stage) == [("slice", "DanglingReference", "Freed")]
    assert await orphans.lists(stage) == [["deployments/slice"], []]


@pytest.mark.parametrize("options", [PODGROUP_136, PODGROUP_137], ids=["1.36", "1.37"])
async def test_a_group_that_is_gone_does_not_keep_a_claim(
    stage: Stage, options: ClusterOptions
) -> None:
    version = "v1beta1" if options.kubernetes_version >= (1, 37) else "v1alpha2"
    stage.client.use_version(PODGROUPS.group, version)
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(PODGROUPS, manifests.pod_group("slice", "slice"))
    body = manifests.in_group(manifests.deployment("slice", 3, "slice"), "slice")
    await stage.create(DEPLOYMENTS, body)
    await orphans.until_pods(stage, "slice", 3)
    assert await stage.references() == ("podgroups/slice",)
    await stage.site.pause(orphans.KCM)
    await orphans.without_pods(stage, "slice")
    assert await freeing(stage).preview() == ()
    patch = {"metadata": {"finalizers": None}}
    await stage.patch(PODGROUPS, "slice", patch)
    await stage.delete(PODGROUPS, "slice")
    assert await freed(stage) == [("slice", "DanglingReference", "Freed")]


async def test_one_claim_in_trouble_does_not_stop_the_others(stage: Stage) -> None:
    await orphans.allocated_to_nobody(stage, "broken")
    await orphans.allocated_to_nobody(stage, "good")

    def refuse(method: str, path: str) -> Fault | None:
        broken = method == "PATCH" and "/resourceclaims/broken" in path
        return Fault(status=403) if broken else None

    found = await freeing(stage, Faulty(orphans.connection(stage), refuse), grace=0).run()
    assert [outcome_of(each)[0::2] for each in found] == [("broken", "Left"), ("good", "Freed")]
    assert orphans.reasons(found[0]) == ["Forbidden"]


async def test_a_missing_right_is_told_before_anything_is_written(stage: Stage) -> None:
    await orphans.allocated_to_nobody(stage)
    await stage.started()

    def refuse(method: str, path: str) -> Fault | None:
        return Fault(status=403) if method == "POST" and "/claimreservations" in path else None

    begin, before = stage.clock.monotonic(), await writes(stage)
    link = Faulty(orphans.connection(stage), refuse)
    assert await freed(stage, transport=link) == [("slice", "AllocatedToNobody", "Failed")]
    assert stage.cluster is None or stage.clock.monotonic() == begin
    assert await writes(stage) == before


async def test_kcm_back_at_work_wins(stage: Stage) -> None:
    await orphans.deleted_but_allocated(stage)
    run = asyncio.create_task(freeing(stage).run())
    await stage.clock.sleep(stage.scaled(100))
    await stage.site.resume(orphans.KCM)
    assert list(map(outcome_of, await run)) == [("slice", "DeletedButAllocated", "Freed")]


async def test_a_finalizer_that_somebody_else_left_is_reported_and_left(stage: Stage) -> None:
    await orphans.deleted_but_allocated(stage)
    nothing = {"status": {"allocation": None, "reservedFor": None}}
    await stage.patch_status(RESOURCECLAIMS, "slice", nothing)
    (found,) = await freeing(stage, grace=0).run()
    assert outcome_of(found) == ("slice", "FinalizerLeft", "Left")
    assert orphans.FINALIZER in (await stage.claim()).metadata.finalizers
    await stage.site.resume(orphans.KCM)
    await until_free(stage)


async def test_thousands_of_healthy_claims_cost_pages_and_no_questions(stage: Stage) -> None:
    for number in range(0, 1200, 50):
        some = (manifests.claim(f"c{number + more}") for more in range(50))
        await asyncio.gather(*(stage.create(RESOURCECLAIMS, body) for body in some))
    await orphans.orphaned_hold(stage)
    counting = CountingTransport(orphans.connection(stage))
    found = await freeing(stage, counting).preview()
    assert list(map(outcome_of, found)) == [("slice", "OrphanedHold", "WouldFree")]
    asked = [each for each in counting.requests if "/deployments/" in each]
    namespace = (await stage.claim()).metadata.namespace
    assert asked == [f"GET /apis/apps/v1/namespaces/{namespace}/deployments/slice"]
    assert len(counting.requests) < 12
