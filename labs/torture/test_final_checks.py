"""The end of a schedule: what it waits for, and how it brings the wait to an end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from kube_in_process.storage.requests import Fault, FaultPoint

from claimctl.wire.base import Object
from claimctl_demo.documents import DocumentClient
from labs.findings import RunFindings
from labs.torture.final_checks import CIRCLES, FINALIZER, MADE, WATCHED, FinalChecks
from labs.torture.reference import dialects
from labs.torture.testbed import GRACE, Testbed, opened
from tests.e2e import manifests
from tests.e2e.harness import CONTROLLER_USER, NAMESPACE

LIMIT = 3000
HOLD = {"apiGroup": "apps", "resource": "deployments", "name": "train", "uid": "u"}
THING = {"apiGroup": "example.com", "resource": "things", "name": "thing", "uid": "t"}
DEVICES: Object = {"devices": {}}


@asynccontextmanager
async def checked() -> AsyncIterator[tuple[Testbed, FinalChecks]]:
    """A cluster without a controller."""
    async with opened(dialects()["hold-1.36"]) as testbed:
        yield testbed, FinalChecks(testbed, RunFindings("SEED=1"))


def made_claim(testbed: Testbed, name: str, **status: Any) -> None:
    body = manifests.claim(name)
    body["metadata"]["finalizers"] = [FINALIZER]
    testbed.cluster.admin.create("resourceclaims", body)
    testbed.cluster.admin.patch("resourceclaims", NAMESPACE, name, {"status": status}, "status")


def made_pod(testbed: Testbed, name: str) -> None:
    spec = {"containers": [{"name": "main", "image": "x"}]}
    meta = {"name": name, "namespace": NAMESPACE}
    testbed.cluster.admin.create("pods", {"metadata": meta, "spec": spec})


@pytest.mark.virtual_limit(LIMIT)
async def test_a_reservation_that_an_annotation_makes_late_has_the_grace_of_the_schedule() -> None:
    def waits() -> list[str]:
        graces = [
            made["spec"].get("forceDeletedPodGraceSeconds", 300)
            for made in testbed.objects("claimreservations")
        ]
        return [f"{grace} s" for grace in graces if grace > GRACE]

    async def later() -> None:
        await asyncio.sleep(25.0)
        late = manifests.reservation("late", forceDeletedPodGraceSeconds=300)
        testbed.cluster.admin.create("claimreservations", late)

    async with checked() as (testbed, checks):
        testbed.cluster.admin.create("claimreservations", manifests.reservation("there"))
        task = asyncio.create_task(later())
        await checks.released(lambda: [*waits(), *(() if task.done() else ("busy",))])
        assert checks.verdict.good
        assert len(testbed.objects("claimreservations")) == 2
        assert not waits()


async def test_the_foreign_writer_takes_its_entries_back_beside_somebody_who_writes_in_a_loop() -> (
    None
):
    conflicts = iter(range(5))

    def fault(point: FaultPoint) -> Fault | None:
        refused = point.verb == "update" and next(conflicts, None) is not None
        return Fault(status=409, reason="Conflict") if refused else None

    async with checked() as (testbed, checks):
        made_claim(testbed, "slice", allocation=DEVICES, reservedFor=[HOLD, THING])
        testbed.cluster.handler.fault = fault
        await checks.expel("slice")
        (claim,) = testbed.objects("resourceclaims")
        assert claim["status"]["reservedFor"] == [HOLD]
        assert next(conflicts, None) is None


async def test_the_foreign_writer_that_frees_a_claim_leaves_nothing_of_it() -> None:
    async with checked() as (testbed, checks):
        made_claim(testbed, "slice", allocation=DEVICES, reservedFor=[THING])
        await checks.expel("slice")
        (claim,) = testbed.objects("resourceclaims")
        assert not claim["status"]
        assert not claim["metadata"].get("finalizers")


@pytest.mark.parametrize(("rounds", "stuck"), [(1, 0), (CIRCLES, 1)])
async def test_pods_that_are_made_beside_a_hold_for_a_while_are_no_circle(
    rounds: int, stuck: int
) -> None:
    """So it is while claimctl starts."""

    async def evict(testbed: Testbed) -> None:
        """A device evicts its pods, and a workload makes new ones, for some rounds."""
        for number in range(rounds):
            await asyncio.sleep(WATCHED / 2)
            for pod in range(MADE + 1):
                made_pod(testbed, f"p-{number}-{pod}")
            await asyncio.sleep(WATCHED / 4)
            status = {"reservedFor": [{**HOLD, "name": f"train-{number}"}]}
            patch = {"status": status}
            testbed.cluster.admin.patch("resourceclaims", NAMESPACE, "slice", patch, "status")
            await asyncio.sleep(WATCHED / 4)

    async with checked() as (testbed, checks):
        made_claim(testbed, "slice", allocation=DEVICES)
        await testbed.taint("node-0", "NoExecute")
        task = asyncio.create_task(evict(testbed))
        await checks.in_no_circle()
        await task
        assert len(checks.verdict.stuck) == stuck


@pytest.mark.virtual_limit(LIMIT)
async def test_what_stays_is_a_leak() -> None:
    async with checked() as (_, checks):
        await checks.released(lambda: ["claim slice is allocated"])
        assert checks.verdict.leaks == ["claim slice is allocated"]


async def test_pods_that_go_by_force_leave_nobody_time_to_stop_their_containers() -> None:
    async with checked() as (testbed, checks):
        for name in ("a", "b"):
            made_pod(testbed, name)
        await testbed.sleep(5.0)
        assert {pod["status"]["phase"] for pod in testbed.objects("pods")} == {"Running"}
        await checks.strike_out()
        assert not testbed.objects("pods")


@pytest.mark.virtual_limit(LIMIT)
async def test_only_claims_that_claimctl_never_wrote_and_nobody_reserved_are_counted_apart() -> (
    None
):
    async with checked() as (testbed, checks):
        testbed.cluster.pause(testbed.cluster.claims.name)
        for name in ("theirs", "ours", "reserved"):
            made_claim(testbed, name, allocation=DEVICES)
        controller = DocumentClient(testbed.cluster.transport(CONTROLLER_USER))
        note = {"metadata": {"annotations": {"a": "b"}}}
        await controller.patch(testbed.bodies.fleet.claims, NAMESPACE, "ours", note)
        reservation = manifests.reservation(claim="reserved")
        testbed.cluster.admin.create("claimreservations", reservation)
        for name in ("theirs", "ours", "reserved"):
            testbed.cluster.admin.delete("resourceclaims", NAMESPACE, name)
        known = checks._known()
        await checks.strip_strangers(known)
        assert checks.verdict.others == ["claim theirs is left, deleted and allocated"]
        assert [text.split()[1] for text in checks._unreleased(known)] == ["ours", "reserved"]
        assert testbed.find("resourceclaims", "theirs") is None
