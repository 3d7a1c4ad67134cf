"""The resourceclaim controller: what it cleans, what it puts back, and what it leaves alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kube_in_process_tests.worlds import world

from .worlds import HOLD, HOLD_134, NATIVE, PODGROUP, WORKLOAD, World, timed

pytestmark = pytest.mark.kube_cluster(HOLD)

DEAD_POD = {"resource": "pods", "name": "dead", "uid": "dead-uid"}
FINALIZER = "resource.kubernetes.io/delete-protection"


def templated(name: str) -> dict[str, Any]:
    claims = [{"name": "c", "resourceClaimTemplateName": name}]
    return {"containers": [{"name": "c", "image": "x"}], "resourceClaims": claims}


async def test_the_last_reference_and_the_allocation_go_in_one_write_and_the_finalizer_after(
    world: World,
) -> None:
    world.claim()
    world.pod("p1", "shared")
    await world.passes(1)
    since = world.cluster.store.revision
    world.api.delete("pods", "default", "p1")
    await world.passes(1)
    states = [
        (revision.object().get("status"), revision.object()["metadata"].get("finalizers"))
        for revision in world.cluster.history(since)
        if revision.plural == "resourceclaims"
    ]
    assert states == [({}, [FINALIZER]), ({}, None)]


async def test_a_list_that_a_client_emptied_stays_allocated(world: World) -> None:
    world.claim()
    world.pod("p1", "shared")
    await world.passes(1)
    world.cluster.pause("resourceclaim-controller")
    world.cluster.force_delete("default", "p1")
    world.reserve()
    world.cluster.resume("resourceclaim-controller")
    await world.passes(60)
    assert (world.listed(), world.allocated()) == ([], True)


@pytest.mark.kube_cluster(replace(NATIVE, kcm_deallocates_empty_lists=True))
async def test_a_controller_that_deallocates_empty_lists_can_be_played(world: World) -> None:
    world.claim(reservedFor=WORKLOAD)
    world.pod("p1", "shared")
    await world.passes(1)
    world.api.delete("pods", "default", "p1")
    await world.passes(1)
    world.reserve()
    await world.passes(1)
    assert not world.allocated()
    assert "finalizers" not in world.get("resourceclaims", "shared")["metadata"]


async def test_a_claim_without_the_finalizer_is_never_deallocated(world: World) -> None:
    world.claim()
    world.pod("p1", "shared")
    await world.passes(1)
    world.api.patch("resourceclaims", "default", "shared", {"metadata": {"finalizers": None}})
    world.api.delete("pods", "default", "p1")
    await world.passes(1)
    assert (world.listed(), world.allocated()) == ([], True)


async def test_a_claim_that_is_being_deleted_goes_whoever_emptied_the_list(world: World) -> None:
    world.claim()
    world.pod("p1", "shared")
    await world.passes(1)
    world.reserve(WORKLOAD)
    world.cluster.force_delete("default", "p1")
    world.api.delete("resourceclaims", "default", "shared")
    await world.passes(1)
    world.reserve(WORKLOAD)
    await world.passes(1)
    assert world.listed() == ["work"]
    world.reserve()
    await world.passes(1)
    assert world.api.find("resourceclaims", "default", "shared") is None


@pytest.mark.kube_cluster(HOLD_134)
async def test_up_to_1_35_nothing_is_cleaned_beside_a_reference_that_is_not_known(
    world: World,
) -> None:
    world.claim()
    world.pod("p1", "shared")
    await world.passes(1)
    world.reserve(
        WORKLOAD, DEAD_POD, *world.get("resourceclaims", "shared")["status"]["reservedFor"]
    )
    world.api.delete("pods", "default", "p1")
    await world.passes(60)
    assert world.listed() == ["work", "dead", "p1"]
    references = world.get("resourceclaims", "shared")["status"]["reservedFor"]
    world.reserve(*(reference for reference in references if reference["name"] != "work"))
    await world.passes(1)
    assert (world.listed(), world.allocated()) == ([], False)


@pytest.mark.parametrize(("version", "looks"), [((1, 33), False), ((1, 34), True)])
async def test_from_1_34_kcm_looks_at_a_claim_that_changes(
    version: tuple[int, int], looks: bool
) -> None:
    async with world(replace(HOLD, kubernetes_version=version)) as w:
        w.claim()
        w.pod("p1", "shared")
        await w.passes(1)
        w.reserve(DEAD_POD, *w.get("resourceclaims", "shared")["status"]["reservedFor"])
        await w.passes(60)
        assert w.listed() == (["p1"] if looks else ["dead", "p1"])
        w.api.delete("pods", "default", "p1")
        await w.passes(1)
        assert (w.listed(), w.allocated()) == ([], False)


@pytest.mark.parametrize(("version", "at_once"), [((1, 33), False), ((1, 34), True)])
async def test_a_claim_that_stopped_kcm_waits_for_its_back_off_before_1_34(
    version: tuple[int, int], at_once: bool
) -> None:
    async with world(replace(HOLD, kubernetes_version=version)) as w:
        w.claim()
        w.pod("p1", "shared")
        await w.passes(1)
        w.reserve(WORKLOAD, *w.get("resourceclaims", "shared")["status"]["reservedFor"])
        w.api.delete("pods", "default", "p1")
        await w.passes(2)
        w.reserve(*w.get("resourceclaims", "shared")["status"]["reservedFor"][1:])
        await w.passes(0.1)
        assert w.allocated() is not at_once
        await w.passes(10)
        assert not w.allocated()


async def test_from_1_36_pods_are_cleaned_beside_what_is_not_known(world: World) -> None:
    world.claim()
    world.pod("p1", "shared")
    await world.passes(1)
    world.reserve(
        WORKLOAD, DEAD_POD, *world.get("resourceclaims", "shared")["status"]["reservedFor"]
    )
    world.api.delete("pods", "default", "p1")
    await world.passes(1)
    assert (world.listed(), world.allocated()) == (["work"], True)


def finished_beside_a_hold(w: World) -> None:
    w.claim()
    w.pod(
        "p1",
        "shared",
        restartPolicy="Never",
        metadata={"annotations": {"kube-in-process/run-seconds": "2"}},
    )


@pytest.mark.kube_cluster(timed(HOLD, kcm_finished_pod_loop=0.05))
async def test_a_finished_pod_beside_a_hold_is_taken_out_and_put_back_for_ever(
    world: World,
) -> None:
    finished_beside_a_hold(world)
    await world.passes(1)
    world.reserve(*world.get("resourceclaims", "shared")["status"]["reservedFor"], WORKLOAD)
    await world.passes(11)
    assert 180 <= world.cluster.claims.finished_pod_writes <= 200
    world.api.delete("pods", "default", "p1")
    await world.passes(1)
    writes = world.cluster.claims.finished_pod_writes
    await world.passes(10)
    assert (world.listed(), world.cluster.claims.finished_pod_writes) == (["work"], writes)


@pytest.mark.kube_cluster(
    replace(timed(HOLD, kcm_finished_pod_loop=0.05), kubernetes_version=(1, 38))
)
async def test_from_1_38_on_a_finished_pod_beside_a_hold_stays_out(world: World) -> None:
    """By the changelog of 1.38.0-alpha.2 (kubernetes/kubernetes#141276)."""
    finished_beside_a_hold(world)
    await world.passes(1)
    world.reserve(*world.get("resourceclaims", "shared")["status"]["reservedFor"], WORKLOAD)
    await world.passes(11)
    assert (world.listed(), world.cluster.claims.finished_pod_writes) == (["work"], 0)


async def test_an_entry_of_any_kind_with_the_uid_of_a_finished_pod_ends_the_loop(
    world: World,
) -> None:
    finished_beside_a_hold(world)
    await world.passes(1)
    pod = world.get("pods", "p1")["metadata"]
    world.reserve(*world.get("resourceclaims", "shared")["status"]["reservedFor"], WORKLOAD)
    await world.passes(5)
    tombstone = {"apiGroup": "example.com", "resource": "finishedpods"}
    world.reserve(WORKLOAD, {**tombstone, "name": "p1", "uid": pod["uid"]})
    since = world.cluster.store.revision
    await world.passes(20)
    assert world.listed() == ["work", "p1"]
    assert [
        revision for revision in world.cluster.history(since) if revision.plural == "resourceclaims"
    ] == []


@pytest.mark.kube_cluster(HOLD_134)
async def test_on_1_34_a_finished_pod_that_a_client_removes_comes_back(world: World) -> None:
    finished_beside_a_hold(world)
    await world.passes(1)
    world.reserve(WORKLOAD)
    await world.passes(5)
    assert world.listed() == ["work", "p1"]


async def test_a_bound_pod_that_is_not_listed_is_put_back(world: World) -> None:
    world.claim()
    world.pod("p1", "shared")
    await world.passes(1)
    world.reserve()
    await world.passes(1)
    assert world.listed() == ["p1"]


@pytest.mark.kube_cluster(NATIVE)
async def test_no_pod_is_put_back_where_the_allocation_is_for_any_pod(world: World) -> None:
    world.claim(reservedFor=WORKLOAD)
    world.pod("p1", "shared")
    await world.passes(1)
    world.reserve()
    await world.passes(10)
    assert (world.listed(), world.allocated()) == ([], True)


async def test_a_claim_is_generated_for_a_pod_and_goes_when_the_pod_has_ended(world: World) -> None:
    exactly = {"deviceClassName": "gpu.example.com"}
    devices = {"requests": [{"name": "d", "exactly": exactly}]}
    world.create("resourceclaimtemplates", "slice", {"spec": {"devices": devices}})
    pod = {"restartPolicy": "Never", **templated("slice")}
    metadata = {"annotations": {"kube-in-process/run-seconds": "2"}}
    world.create("pods", "p1", pod, **metadata)
    await world.passes(1)
    status = world.get("pods", "p1")["status"]
    name = status["resourceClaimStatuses"][0]["resourceClaimName"]
    claim = world.get("resourceclaims", name)
    assert name.startswith("p1-c-")
    annotation = {"resource.kubernetes.io/pod-claim-name": "c"}
    assert claim["metadata"]["annotations"] == annotation
    assert claim["metadata"]["ownerReferences"][0]["name"] == "p1"
    assert (status["phase"], world.listed(name)) == ("Running", ["p1"])
    await world.passes(2)
    assert world.get("pods", "p1")["status"]["phase"] == "Succeeded"
    assert world.api.find("resourceclaims", "default", name) is None


@pytest.mark.kube_cluster(PODGROUP)
async def test_a_group_shares_a_claim_that_is_generated_for_it_and_keeps_it(world: World) -> None:
    exactly = {"deviceClassName": "gpu.example.com"}
    devices = {"requests": [{"name": "d", "exactly": exactly}]}
    world.create("resourceclaimtemplates", "slice", {"spec": {"devices": devices}})
    shares = [{"name": "c", "resourceClaimTemplateName": "slice"}]
    spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": shares}
    world.create("podgroups", "group", spec)
    member = {"schedulingGroup": {"podGroupName": "group"}, **templated("slice")}
    world.create("pods", "p1", member)
    world.create("pods", "p2", member)
    await world.passes(1)
    (claim,) = world.api.list("resourceclaims", "default")
    assert world.listed(claim["metadata"]["name"]) == ["group"]
    assert world.phases() == ["Running", "Running"]
    for plain in ("p1", "p2"):
        world.api.delete("pods", "default", plain)
    await world.passes(1)
    assert world.allocated(claim["metadata"]["name"])
    world.api.delete("podgroups", "default", "group")
    await world.passes(1)
    assert world.api.list("resourceclaims", "default") == []


def grouped(name: str, claim: str = "shared") -> dict[str, Any]:
    return {"schedulingGroup": {"podGroupName": name}, "restartPolicy": "Never"}


def podgroup(w: World, name: str = "g") -> dict[str, Any]:
    claims = [{"name": "c", "resourceClaimName": "shared"}]
    spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": claims}
    return w.create("podgroups", name, spec)


RUNS = {"annotations": {"kube-in-process/run-seconds": "0.2"}}


@pytest.mark.kube_cluster(PODGROUP)
async def test_a_finished_pod_whose_group_is_not_listed_has_the_group_listed_once(
    world: World,
) -> None:
    world.claim()
    group = podgroup(world)
    world.pod("p1", "shared", metadata=RUNS, **grouped("g"))
    await world.passes(2)
    assert world.listed() == ["g"]
    world.reserve(WORKLOAD)
    since = len(world.writes("resourceclaims", "shared"))
    await world.passes(30)
    references = world.get("resourceclaims", "shared")["status"]["reservedFor"]
    assert [reference["uid"] for reference in references] == ["work-uid", group["metadata"]["uid"]]
    assert len(world.writes("resourceclaims", "shared")) - since == 1


@pytest.mark.kube_cluster(PODGROUP)
async def test_an_entry_with_the_uid_of_a_finished_pod_keeps_its_group_out(world: World) -> None:
    world.claim()
    podgroup(world)
    pod = world.pod("p1", "shared", metadata=RUNS, **grouped("g"))
    await world.passes(2)
    tomb = {"apiGroup": "x.io", "resource": "tombs", "name": "p1"}
    world.reserve({**tomb, "uid": pod["metadata"]["uid"]})
    await world.passes(30)
    assert world.listed() == ["p1"]


@pytest.mark.kube_cluster(PODGROUP)
async def test_for_a_finished_pod_of_a_group_that_is_gone_nothing_is_written(world: World) -> None:
    world.claim()
    podgroup(world)
    world.pod("p1", "shared", metadata=RUNS, **grouped("g"))
    await world.passes(2)
    reference = world.get("resourceclaims", "shared")["status"]["reservedFor"][0]
    world.reserve(reference, WORKLOAD)
    world.api.delete("podgroups", "default", "g")
    await world.passes(30)
    assert world.listed() == ["work"]
