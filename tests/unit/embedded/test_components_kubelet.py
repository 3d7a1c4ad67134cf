"""Kubelets and nodes: what starts, what stops, and what a lost node leaves behind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from claimctl.embedded.storage.requests import DeleteOptions, Fault

from .worlds import HOLD, NATIVE, PODGROUP, WORKLOAD, World, play, timed

RUN = "embedded.claimctl.io/run-seconds"
EXIT = "embedded.claimctl.io/exit-code"
QUICK = timed(HOLD, node_monitor_grace=10.0, pod_eviction=5.0)


def running(seconds: str, code: str = "0") -> dict[str, Any]:
    return {"annotations": {RUN: seconds, EXIT: code}}


def test_a_deleted_pod_gets_a_terminal_phase_before_its_object_goes() -> None:
    async def story(w: World) -> None:
        w.pod("p1")
        await w.passes(1)
        since = w.cluster.store.revision
        w.api.delete("pods", "default", "p1")
        await w.passes(1)
        states = [
            (
                each.type,
                each.object()["status"]["phase"],
                next(iter(each.object()["status"]["containerStatuses"][0]["state"])),
            )
            for each in w.cluster.history(since)
            if each.plural == "pods"
        ]
        assert states == [
            ("MODIFIED", "Running", "running"),
            ("MODIFIED", "Succeeded", "terminated"),
            ("MODIFIED", "Succeeded", "terminated"),
            ("DELETED", "Succeeded", "terminated"),
        ]

    play(HOLD, story)


@pytest.mark.parametrize("status", [409, 500])
def test_a_kubelet_tries_again_what_the_server_refused(status: int) -> None:
    async def story(w: World) -> None:
        w.pod("p1")
        await w.passes(1)
        left = [Fault(status=status, reason="Conflict" if status == 409 else "InternalError")]
        w.cluster.fault_components(
            lambda point: left.pop() if left and point.verb == "delete" else None
        )
        w.api.delete("pods", "default", "p1")
        await w.passes(30)
        assert (left, w.pods()) == ([], [])

    play(HOLD, story)


@pytest.mark.parametrize(
    ("policy", "code", "phase", "restarts"),
    [
        ("Never", "0", "Succeeded", 0),
        ("Never", "3", "Failed", 0),
        ("OnFailure", "0", "Succeeded", 0),
        ("OnFailure", "3", "Running", 3),
        ("Always", "0", "Running", 3),
    ],
)
def test_a_container_that_ends_by_itself(policy: str, code: str, phase: str, restarts: int) -> None:
    async def story(w: World) -> None:
        w.pod("p1", restartPolicy=policy, metadata=running("2", code))
        await w.passes(7)
        status = w.get("pods", "p1")["status"]
        assert status["phase"] == phase
        assert status["containerStatuses"][0]["restartCount"] == restarts

    play(HOLD, story)


def test_a_kubelet_without_the_feature_starts_no_pod_of_a_claim_for_any_pod() -> None:
    async def story(w: World) -> None:
        w.cluster.switch(replace(w.cluster.features, kubelet_reserved_for=False))
        w.claim(reservedFor=WORKLOAD)
        w.pod("p1", "shared")
        await w.passes(5)
        assert w.phases() == ["Pending"]
        assert "is not allowed to use ResourceClaim" in w.events("FailedPrepareDynamicResources")[0]
        w.cluster.switch(replace(w.cluster.features, kubelet_reserved_for=True))
        await w.passes(1)
        assert w.phases() == ["Running"]

    play(NATIVE, story)


def test_a_kubelet_knows_a_group_by_its_name() -> None:
    async def story(w: World) -> None:
        w.claim()
        shares = [{"name": "c", "resourceClaimName": "shared"}]
        spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": shares}
        w.create("podgroups", "group", spec)
        w.pod("p1", "shared", schedulingGroup={"podGroupName": "group"})
        await w.passes(1)
        assert (w.listed(), w.phases()) == (["group"], ["Running"])

    play(PODGROUP, story)


def test_a_pod_bound_by_hand_to_a_claim_without_allocation_does_not_start() -> None:
    async def story(w: World) -> None:
        w.claim()
        w.pod("p1", "shared", nodeName="node-0")
        await w.passes(5)
        assert w.phases() == ["Pending"]

    play(HOLD, story)


def test_pods_of_a_lost_node_fail_and_go_while_their_containers_still_run() -> None:
    async def story(w: World) -> None:
        w.workload("deployments", "work", replicas=3)
        await w.passes(1)
        lost = w.pods()[0]["spec"]["nodeName"]
        since = w.cluster.store.revision
        w.cluster.lose_node(lost)
        await w.passes(9)
        assert len([each for each in w.pods() if each["spec"]["nodeName"] == lost]) == 1
        await w.passes(12)
        assert w.phases() == ["Running"] * 3
        assert all(each["spec"]["nodeName"] != lost for each in w.pods())
        (last,) = [each for each in w.cluster.history(since) if each.type == "DELETED"]
        status = last.object()["status"]
        assert status["phase"] == "Failed"
        assert "running" in status["containerStatuses"][0]["state"]
        taints = {each["key"] for each in w.get("nodes", lost)["spec"]["taints"]}
        assert taints == {"node.kubernetes.io/unreachable"}

    play(QUICK, story)


def test_a_pod_of_a_lost_node_that_a_finalizer_keeps_does_not_keep_the_others() -> None:
    async def story(w: World) -> None:
        w.workload("deployments", "work", replicas=6)
        await w.passes(1)
        lost = w.pods()[0]["spec"]["nodeName"]
        theirs = [each for each in w.pods() if each["spec"]["nodeName"] == lost]
        kept = theirs[0]["metadata"]
        finalizers = {"metadata": {"finalizers": ["example.com/kept"]}}
        w.api.patch("pods", kept["namespace"], kept["name"], finalizers, kind="merge")
        w.cluster.lose_node(lost)
        await w.passes(30)
        left = [each for each in w.pods() if each["spec"]["nodeName"] == lost]
        assert len(theirs) > 1
        assert [each["metadata"]["name"] for each in left] == [kept["name"]]

    play(QUICK, story)


@pytest.mark.parametrize(("bears", "told"), [(300, ["of Pod default/p1"]), (None, [])])
def test_a_pod_that_goes_while_it_bears_a_taint_is_told_that_it_need_not_go(
    bears: int | None, told: list[str]
) -> None:
    async def story(w: World) -> None:
        seconds = {} if bears is None else {"tolerationSeconds": bears}
        bearing = {"key": "broken", "operator": "Exists", "effect": "NoExecute", **seconds}
        w.pod("p1", tolerations=[bearing])
        await w.passes(1)
        node = w.get("pods", "p1")["spec"]["nodeName"]
        taints = [{"key": "broken", "effect": "NoExecute"}]
        w.api.patch("nodes", "", node, {"spec": {"taints": taints}}, kind="merge")
        await w.passes(1)
        assert w.events("TaintManagerEviction") == []
        w.api.delete("pods", "default", "p1", DeleteOptions(grace_period_seconds=0))
        await w.passes(1)
        messages = [f"Cancelling deletion {each}" for each in told]
        assert w.events("TaintManagerEviction") == messages

    play(HOLD, story)


def test_a_lost_node_whose_taints_somebody_overwrites_is_tainted_again() -> None:
    async def story(w: World) -> None:
        w.cluster.lose_node("node-0")
        await w.passes(11)
        broken = {"key": "broken", "effect": "NoSchedule"}
        w.api.patch("nodes", "", "node-0", {"spec": {"taints": [broken]}}, kind="merge")
        await w.passes(1)
        found = w.get("nodes", "node-0")["spec"]["taints"]
        taints = [(each["key"], each["effect"]) for each in found]
        unreachable = "node.kubernetes.io/unreachable"
        assert taints == [
            ("broken", "NoSchedule"),
            (unreachable, "NoSchedule"),
            (unreachable, "NoExecute"),
        ]

    play(QUICK, story)


def test_a_node_that_comes_back_is_used_again() -> None:
    async def story(w: World) -> None:
        w.cluster.lose_node("node-0")
        await w.passes(20)
        w.cluster.restore_node("node-0")
        await w.passes(1)
        node = w.get("nodes", "node-0")
        ready = next(each for each in node["status"]["conditions"] if each["type"] == "Ready")
        assert (ready["status"], node["spec"].get("taints")) == ("True", None)

    play(QUICK, story)


def test_a_boot_changes_the_boot_id_and_starts_the_containers_anew() -> None:
    async def story(w: World) -> None:
        w.pod("p1", nodeName="node-0")
        await w.passes(1)
        before = w.get("nodes", "node-0")["status"]["nodeInfo"]["bootID"]
        w.cluster.lose_node("node-0")
        await w.passes(1)
        w.cluster.reboot_node("node-0")
        await w.passes(1)
        assert w.get("nodes", "node-0")["status"]["nodeInfo"]["bootID"] != before
        assert w.get("pods", "p1")["status"]["containerStatuses"][0]["restartCount"] == 1

    play(QUICK, story)


def test_after_a_boot_a_pod_that_is_not_listed_any_more_does_not_start() -> None:
    async def story(w: World) -> None:
        w.claim()
        w.pod("p1", "shared")
        await w.passes(1)
        node = w.get("pods", "p1")["spec"]["nodeName"]
        w.cluster.pause("resourceclaim-controller")
        w.reserve(WORKLOAD)
        w.cluster.lose_node(node)
        w.cluster.reboot_node(node)
        await w.passes(1)
        waiting = w.get("pods", "p1")["status"]["containerStatuses"][0]
        assert (waiting["ready"], list(waiting["state"])) == (False, ["waiting"])
        w.cluster.resume("resourceclaim-controller")
        w.api.patch("resourceclaims", "default", "shared", {"metadata": {"labels": {"a": "b"}}})
        await w.passes(1)
        assert w.get("pods", "p1")["status"]["containerStatuses"][0]["ready"] is True

    play(QUICK, story)
