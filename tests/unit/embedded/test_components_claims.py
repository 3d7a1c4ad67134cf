"""The resourceclaim controller: what it cleans, what it puts back, and what it leaves alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from .worlds import HOLD, HOLD_134, NATIVE, PODGROUP, WORKLOAD, World, play, timed

DEAD_POD = {"resource": "pods", "name": "dead", "uid": "dead-uid"}
FINALIZER = "resource.kubernetes.io/delete-protection"


def templated(name: str) -> dict[str, Any]:
    claims = [{"name": "c", "resourceClaimTemplateName": name}]
    return {"containers": [{"name": "c", "image": "x"}], "resourceClaims": claims}


def test_the_last_reference_and_the_allocation_go_in_one_write_and_the_finalizer_after() -> None:
    async def story(w: World) -> None:
        w.claim()
        w.pod("p1", "shared")
        await w.passes(1)
        since = w.cluster.store.revision
        w.api.delete("pods", "default", "p1")
        await w.passes(1)
        states = [
            (each.object().get("status"), each.object()["metadata"].get("finalizers"))
            for each in w.cluster.history(since)
            if each.plural == "resourceclaims"
        ]
        assert states == [({}, [FINALIZER]), ({}, None)]

    play(HOLD, story)


def test_a_list_that_a_client_emptied_stays_allocated() -> None:
    async def story(w: World) -> None:
        w.claim()
        w.pod("p1", "shared")
        await w.passes(1)
        w.cluster.pause("resourceclaim-controller")
        w.cluster.force_delete("default", "p1")
        w.reserve()
        w.cluster.resume("resourceclaim-controller")
        await w.passes(60)
        assert (w.listed(), w.allocated()) == ([], True)

    play(HOLD, story)


def test_a_controller_that_deallocates_empty_lists_can_be_played() -> None:
    async def story(w: World) -> None:
        w.claim(reservedFor=WORKLOAD)
        w.pod("p1", "shared")
        await w.passes(1)
        w.api.delete("pods", "default", "p1")
        await w.passes(1)
        w.reserve()
        await w.passes(1)
        assert not w.allocated()
        assert "finalizers" not in w.get("resourceclaims", "shared")["metadata"]

    play(replace(NATIVE, kcm_deallocates_empty_lists=True), story)


def test_a_claim_without_the_finalizer_is_never_deallocated() -> None:
    async def story(w: World) -> None:
        w.claim()
        w.pod("p1", "shared")
        await w.passes(1)
        w.api.patch("resourceclaims", "default", "shared", {"metadata": {"finalizers": None}})
        w.api.delete("pods", "default", "p1")
        await w.passes(1)
        assert (w.listed(), w.allocated()) == ([], True)

    play(HOLD, story)


def test_a_claim_that_is_being_deleted_goes_whoever_emptied_the_list() -> None:
    async def story(w: World) -> None:
        w.claim()
        w.pod("p1", "shared")
        await w.passes(1)
        w.reserve(WORKLOAD)
        w.cluster.force_delete("default", "p1")
        w.api.delete("resourceclaims", "default", "shared")
        await w.passes(1)
        w.reserve(WORKLOAD)
        await w.passes(1)
        assert w.listed() == ["work"]
        w.reserve()
        await w.passes(1)
        assert w.api.find("resourceclaims", "default", "shared") is None

    play(HOLD, story)


def test_up_to_1_35_nothing_is_cleaned_beside_a_reference_that_is_not_known() -> None:
    async def story(w: World) -> None:
        w.claim()
        w.pod("p1", "shared")
        await w.passes(1)
        w.reserve(WORKLOAD, DEAD_POD, *w.get("resourceclaims", "shared")["status"]["reservedFor"])
        w.api.delete("pods", "default", "p1")
        await w.passes(60)
        assert w.listed() == ["work", "dead", "p1"]
        found = w.get("resourceclaims", "shared")["status"]["reservedFor"]
        w.reserve(*(each for each in found if each["name"] != "work"))
        await w.passes(1)
        assert (w.listed(), w.allocated()) == ([], False)

    play(HOLD_134, story)


@pytest.mark.parametrize(("version", "at_once"), [((1, 32), False), ((1, 34), True)])
def test_a_claim_that_stopped_the_controller_waits_for_its_back_off_on_1_32(
    version: tuple[int, int], at_once: bool
) -> None:
    async def story(w: World) -> None:
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

    play(replace(HOLD_134, kubernetes_version=version), story)


def test_from_1_36_pods_are_cleaned_beside_what_is_not_known() -> None:
    async def story(w: World) -> None:
        w.claim()
        w.pod("p1", "shared")
        await w.passes(1)
        w.reserve(WORKLOAD, DEAD_POD, *w.get("resourceclaims", "shared")["status"]["reservedFor"])
        w.api.delete("pods", "default", "p1")
        await w.passes(1)
        assert (w.listed(), w.allocated()) == (["work"], True)

    play(HOLD, story)


def finished_beside_a_hold(w: World) -> None:
    w.claim()
    w.pod(
        "p1",
        "shared",
        restartPolicy="Never",
        metadata={"annotations": {"embedded.claimctl.io/run-seconds": "2"}},
    )


def test_a_finished_pod_beside_a_hold_is_taken_out_and_put_back_for_ever() -> None:
    async def story(w: World) -> None:
        finished_beside_a_hold(w)
        await w.passes(1)
        w.reserve(*w.get("resourceclaims", "shared")["status"]["reservedFor"], WORKLOAD)
        await w.passes(11)
        assert 180 <= w.cluster.claims.finished_pod_writes <= 200
        w.api.delete("pods", "default", "p1")
        await w.passes(1)
        writes = w.cluster.claims.finished_pod_writes
        await w.passes(10)
        assert (w.listed(), w.cluster.claims.finished_pod_writes) == (["work"], writes)

    play(timed(HOLD, kcm_finished_pod_loop=0.05), story)


def test_an_entry_of_any_kind_with_the_uid_of_a_finished_pod_ends_the_loop() -> None:
    async def story(w: World) -> None:
        finished_beside_a_hold(w)
        await w.passes(1)
        pod = w.get("pods", "p1")["metadata"]
        w.reserve(*w.get("resourceclaims", "shared")["status"]["reservedFor"], WORKLOAD)
        await w.passes(5)
        tombstone = {"apiGroup": "claimctl.io", "resource": "finishedpods"}
        w.reserve(WORKLOAD, {**tombstone, "name": "p1", "uid": pod["uid"]})
        since = w.cluster.store.revision
        await w.passes(20)
        assert w.listed() == ["work", "p1"]
        assert [each for each in w.cluster.history(since) if each.plural == "resourceclaims"] == []

    play(HOLD, story)


def test_on_1_34_a_finished_pod_that_a_client_removes_comes_back() -> None:
    async def story(w: World) -> None:
        finished_beside_a_hold(w)
        await w.passes(1)
        w.reserve(WORKLOAD)
        await w.passes(5)
        assert w.listed() == ["work", "p1"]

    play(HOLD_134, story)


def test_a_bound_pod_that_is_not_listed_is_put_back() -> None:
    async def story(w: World) -> None:
        w.claim()
        w.pod("p1", "shared")
        await w.passes(1)
        w.reserve()
        await w.passes(1)
        assert w.listed() == ["p1"]

    play(HOLD, story)


def test_no_pod_is_put_back_where_the_allocation_is_for_any_pod() -> None:
    async def story(w: World) -> None:
        w.claim(reservedFor=WORKLOAD)
        w.pod("p1", "shared")
        await w.passes(1)
        w.reserve()
        await w.passes(10)
        assert (w.listed(), w.allocated()) == ([], True)

    play(NATIVE, story)


def test_a_claim_is_generated_for_a_pod_and_goes_when_the_pod_has_ended() -> None:
    async def story(w: World) -> None:
        exactly = {"deviceClassName": "gpu.example.com"}
        devices = {"requests": [{"name": "d", "exactly": exactly}]}
        w.create("resourceclaimtemplates", "slice", {"spec": {"devices": devices}})
        pod = {"restartPolicy": "Never", **templated("slice")}
        metadata = {"annotations": {"embedded.claimctl.io/run-seconds": "2"}}
        w.create("pods", "p1", pod, **metadata)
        await w.passes(1)
        status = w.get("pods", "p1")["status"]
        name = status["resourceClaimStatuses"][0]["resourceClaimName"]
        claim = w.get("resourceclaims", name)
        assert name.startswith("p1-c-")
        annotation = {"resource.kubernetes.io/pod-claim-name": "c"}
        assert claim["metadata"]["annotations"] == annotation
        assert claim["metadata"]["ownerReferences"][0]["name"] == "p1"
        assert (status["phase"], w.listed(name)) == ("Running", ["p1"])
        await w.passes(2)
        assert w.get("pods", "p1")["status"]["phase"] == "Succeeded"
        assert w.api.find("resourceclaims", "default", name) is None

    play(HOLD, story)


def test_a_group_shares_a_claim_that_is_generated_for_it_and_keeps_it() -> None:
    async def story(w: World) -> None:
        exactly = {"deviceClassName": "gpu.example.com"}
        devices = {"requests": [{"name": "d", "exactly": exactly}]}
        w.create("resourceclaimtemplates", "slice", {"spec": {"devices": devices}})
        shares = [{"name": "c", "resourceClaimTemplateName": "slice"}]
        spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": shares}
        w.create("podgroups", "group", spec)
        member = {"schedulingGroup": {"podGroupName": "group"}, **templated("slice")}
        w.create("pods", "p1", member)
        w.create("pods", "p2", member)
        await w.passes(1)
        (claim,) = w.api.list("resourceclaims", "default")
        assert w.listed(claim["metadata"]["name"]) == ["group"]
        assert w.phases() == ["Running", "Running"]
        for each in ("p1", "p2"):
            w.api.delete("pods", "default", each)
        await w.passes(1)
        assert w.allocated(claim["metadata"]["name"])
        w.api.delete("podgroups", "default", "group")
        await w.passes(1)
        assert w.api.list("resourceclaims", "default") == []

    play(PODGROUP, story)


def grouped(name: str, claim: str = "shared") -> dict[str, Any]:
    return {"schedulingGroup": {"podGroupName": name}, "restartPolicy": "Never"}


def podgroup(w: World, name: str = "g") -> dict[str, Any]:
    claims = [{"name": "c", "resourceClaimName": "shared"}]
    spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": claims}
    return w.create("podgroups", name, spec)


RUNS = {"annotations": {"embedded.claimctl.io/run-seconds": "0.2"}}


def test_a_finished_pod_whose_group_is_not_listed_has_the_group_listed_once() -> None:
    async def story(w: World) -> None:
        w.claim()
        group = podgroup(w)
        w.pod("p1", "shared", metadata=RUNS, **grouped("g"))
        await w.passes(2)
        assert w.listed() == ["g"]
        w.reserve(WORKLOAD)
        since = len(w.writes("resourceclaims", "shared"))
        await w.passes(30)
        found = w.get("resourceclaims", "shared")["status"]["reservedFor"]
        assert [each["uid"] for each in found] == ["work-uid", group["metadata"]["uid"]]
        assert len(w.writes("resourceclaims", "shared")) - since == 1

    play(PODGROUP, story)


def test_an_entry_with_the_uid_of_a_finished_pod_keeps_its_group_out() -> None:
    async def story(w: World) -> None:
        w.claim()
        podgroup(w)
        pod = w.pod("p1", "shared", metadata=RUNS, **grouped("g"))
        await w.passes(2)
        tomb = {"apiGroup": "x.io", "resource": "tombs", "name": "p1"}
        w.reserve({**tomb, "uid": pod["metadata"]["uid"]})
        await w.passes(30)
        assert w.listed() == ["p1"]

    play(PODGROUP, story)


def test_for_a_finished_pod_of_a_group_that_is_gone_nothing_is_written() -> None:
    async def story(w: World) -> None:
        w.claim()
        podgroup(w)
        w.pod("p1", "shared", metadata=RUNS, **grouped("g"))
        await w.passes(2)
        reference = w.get("resourceclaims", "shared")["status"]["reservedFor"][0]
        w.reserve(reference, WORKLOAD)
        w.api.delete("podgroups", "default", "g")
        await w.passes(30)
        assert w.listed() == ["work"]

    play(PODGROUP, story)
