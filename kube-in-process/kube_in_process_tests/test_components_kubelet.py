"""Kubelets and nodes: what starts, what stops, and what a lost node leaves behind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kube_in_process.storage.requests import DeleteOptions, Fault

from .worlds import HOLD, NATIVE, PODGROUP, WORKLOAD, World, timed

RUN = "kube-in-process/run-seconds"
EXIT = "kube-in-process/exit-code"
QUICK = timed(HOLD, node_monitor_grace=10.0, pod_eviction=5.0)

pytestmark = pytest.mark.kube_cluster(QUICK)


def running(seconds: str, code: str = "0") -> dict[str, Any]:
    return {"annotations": {RUN: seconds, EXIT: code}}


@pytest.mark.kube_cluster(HOLD)
async def test_a_deleted_pod_gets_a_terminal_phase_before_its_object_goes(world: World) -> None:
    world.pod("p1")
    await world.passes(1)
    since = world.cluster.store.revision
    world.api.delete("pods", "default", "p1")
    await world.passes(1)
    states = [
        (
            revision.type,
            revision.object()["status"]["phase"],
            next(iter(revision.object()["status"]["containerStatuses"][0]["state"])),
        )
        for revision in world.cluster.history(since)
        if revision.plural == "pods"
    ]
    assert states == [
        ("MODIFIED", "Running", "running"),
        ("MODIFIED", "Succeeded", "terminated"),
        ("MODIFIED", "Succeeded", "terminated"),
        ("DELETED", "Succeeded", "terminated"),
    ]


@pytest.mark.kube_cluster(HOLD)
@pytest.mark.parametrize("status", [409, 500])
async def test_a_kubelet_tries_again_what_the_server_refused(world: World, status: int) -> None:
    world.pod("p1")
    await world.passes(1)
    left = [Fault(status=status, reason="Conflict" if status == 409 else "InternalError")]
    world.cluster.fault_components(
        lambda point: left.pop() if left and point.verb == "delete" else None
    )
    world.api.delete("pods", "default", "p1")
    await world.passes(30)
    assert (left, world.pods()) == ([], [])


@pytest.mark.kube_cluster(HOLD)
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
async def test_a_container_that_ends_by_itself(
    world: World, policy: str, code: str, phase: str, restarts: int
) -> None:
    world.pod("p1", restartPolicy=policy, metadata=running("2", code))
    await world.passes(7)
    status = world.get("pods", "p1")["status"]
    assert status["phase"] == phase
    assert status["containerStatuses"][0]["restartCount"] == restarts


@pytest.mark.kube_cluster(NATIVE)
async def test_a_kubelet_without_the_feature_starts_no_pod_of_a_claim_for_any_pod(
    world: World,
) -> None:
    world.cluster.switch(replace(world.cluster.features, kubelet_reserved_for=False))
    world.claim(reservedFor=WORKLOAD)
    world.pod("p1", "shared")
    await world.passes(5)
    assert world.phases() == ["Pending"]
    assert "is not allowed to use ResourceClaim" in world.events("FailedPrepareDynamicResources")[0]
    world.cluster.switch(replace(world.cluster.features, kubelet_reserved_for=True))
    await world.passes(1)
    assert world.phases() == ["Running"]


@pytest.mark.kube_cluster(PODGROUP)
async def test_a_kubelet_knows_a_group_by_its_name(world: World) -> None:
    world.claim()
    shares = [{"name": "c", "resourceClaimName": "shared"}]
    spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": shares}
    world.create("podgroups", "group", spec)
    world.pod("p1", "shared", schedulingGroup={"podGroupName": "group"})
    await world.passes(1)
    assert (world.listed(), world.phases()) == (["group"], ["Running"])


@pytest.mark.kube_cluster(HOLD)
async def test_a_pod_bound_by_hand_to_a_claim_without_allocation_does_not_start(
    world: World,
) -> None:
    world.claim()
    world.pod("p1", "shared", nodeName="node-0")
    await world.passes(5)
    assert world.phases() == ["Pending"]


async def test_pods_of_a_lost_node_fail_and_go_while_their_containers_still_run(
    world: World,
) -> None:
    world.workload("deployments", "work", replicas=3)
    await world.passes(1)
    lost = world.pods()[0]["spec"]["nodeName"]
    since = world.cluster.store.revision
    world.cluster.lose_node(lost)
    await world.passes(9)
    assert len([pod for pod in world.pods() if pod["spec"]["nodeName"] == lost]) == 1
    await world.passes(12)
    assert world.phases() == ["Running"] * 3
    assert all(pod["spec"]["nodeName"] != lost for pod in world.pods())
    (last,) = [revision for revision in world.cluster.history(since) if revision.type == "DELETED"]
    status = last.object()["status"]
    assert status["phase"] == "Failed"
    assert "running" in status["containerStatuses"][0]["state"]
    taints = {taint["key"] for taint in world.get("nodes", lost)["spec"]["taints"]}
    assert taints == {"node.kubernetes.io/unreachable"}


async def test_a_pod_of_a_lost_node_that_a_finalizer_keeps_does_not_keep_the_others(
    world: World,
) -> None:
    world.workload("deployments", "work", replicas=6)
    await world.passes(1)
    lost = world.pods()[0]["spec"]["nodeName"]
    theirs = [pod for pod in world.pods() if pod["spec"]["nodeName"] == lost]
    kept = theirs[0]["metadata"]
    finalizers = {"metadata": {"finalizers": ["example.com/kept"]}}
    world.api.patch("pods", kept["namespace"], kept["name"], finalizers, kind="merge")
    world.cluster.lose_node(lost)
    await world.passes(30)
    left = [pod for pod in world.pods() if pod["spec"]["nodeName"] == lost]
    assert len(theirs) > 1
    assert [plain["metadata"]["name"] for plain in left] == [kept["name"]]


@pytest.mark.kube_cluster(HOLD)
@pytest.mark.parametrize(("bears", "told"), [(300, ["of Pod default/p1"]), (None, [])])
async def test_a_pod_that_goes_while_it_bears_a_taint_is_told_that_it_need_not_go(
    world: World, bears: int | None, told: list[str]
) -> None:
    seconds = {} if bears is None else {"tolerationSeconds": bears}
    bearing = {"key": "broken", "operator": "Exists", "effect": "NoExecute", **seconds}
    world.pod("p1", tolerations=[bearing])
    await world.passes(1)
    node = world.get("pods", "p1")["spec"]["nodeName"]
    taints = [{"key": "broken", "effect": "NoExecute"}]
    world.api.patch("nodes", "", node, {"spec": {"taints": taints}}, kind="merge")
    await world.passes(1)
    assert world.events("TaintManagerEviction") == []
    world.api.delete("pods", "default", "p1", DeleteOptions(grace_period_seconds=0))
    await world.passes(1)
    messages = [f"Cancelling deletion {line}" for line in told]
    assert world.events("TaintManagerEviction") == messages


@pytest.mark.kube_cluster(HOLD)
async def test_a_second_taint_does_not_make_the_deletion_of_a_pod_earlier(world: World) -> None:
    bears = {"operator": "Exists", "effect": "NoExecute"}
    world.pod(
        "p1",
        tolerations=[
            {"key": "slow", "tolerationSeconds": 60, **bears},
            {"key": "quick", "tolerationSeconds": 1, **bears},
        ],
    )
    await world.passes(1)
    node = world.get("pods", "p1")["spec"]["nodeName"]
    for key in ("slow", "quick"):
        taints = {"spec": {"taints": [{"key": key, "effect": "NoExecute"}]}}
        world.api.patch("nodes", "", node, taints, kind="merge")
        await world.passes(20)
    assert world.events("TaintManagerEviction") == []
    await world.passes(30)
    assert world.events("TaintManagerEviction") == ["Marking for deletion Pod default/p1"]


@pytest.mark.kube_cluster(HOLD)
async def test_a_taint_that_a_pod_does_not_tolerate_deletes_a_waiting_pod_at_once(
    world: World,
) -> None:
    bears = {"key": "slow", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
    world.pod("p1", tolerations=[bears])
    await world.passes(1)
    node = world.get("pods", "p1")["spec"]["nodeName"]
    for key in ("slow", "other"):
        taints = {"spec": {"taints": [{"key": key, "effect": "NoExecute"}]}}
        world.api.patch("nodes", "", node, taints, kind="merge")
        await world.passes(1)
    told = ["Cancelling deletion of Pod default/p1", "Marking for deletion Pod default/p1"]
    assert world.events("TaintManagerEviction") == told


async def test_a_lost_node_whose_taints_somebody_overwrites_is_tainted_again(world: World) -> None:
    world.cluster.lose_node("node-0")
    await world.passes(11)
    broken = {"key": "broken", "effect": "NoSchedule"}
    world.api.patch("nodes", "", "node-0", {"spec": {"taints": [broken]}}, kind="merge")
    await world.passes(1)
    present = world.get("nodes", "node-0")["spec"]["taints"]
    taints = [(taint["key"], taint["effect"]) for taint in present]
    unreachable = "node.kubernetes.io/unreachable"
    assert taints == [
        ("broken", "NoSchedule"),
        (unreachable, "NoSchedule"),
        (unreachable, "NoExecute"),
    ]


async def test_a_node_that_comes_back_is_used_again(world: World) -> None:
    world.cluster.lose_node("node-0")
    await world.passes(20)
    world.cluster.restore_node("node-0")
    await world.passes(1)
    node = world.get("nodes", "node-0")
    ready = next(
        condition for condition in node["status"]["conditions"] if condition["type"] == "Ready"
    )
    assert (ready["status"], node["spec"].get("taints")) == ("True", None)


async def test_a_boot_changes_the_boot_id_and_starts_the_containers_anew(world: World) -> None:
    world.pod("p1", nodeName="node-0")
    await world.passes(1)
    before = world.get("nodes", "node-0")["status"]["nodeInfo"]["bootID"]
    world.cluster.lose_node("node-0")
    await world.passes(1)
    world.cluster.reboot_node("node-0")
    await world.passes(1)
    assert world.get("nodes", "node-0")["status"]["nodeInfo"]["bootID"] != before
    assert world.get("pods", "p1")["status"]["containerStatuses"][0]["restartCount"] == 1


async def test_after_a_boot_a_pod_that_is_not_listed_any_more_does_not_start(world: World) -> None:
    world.claim()
    world.pod("p1", "shared")
    await world.passes(1)
    node = world.get("pods", "p1")["spec"]["nodeName"]
    world.cluster.pause("resourceclaim-controller")
    world.reserve(WORKLOAD)
    world.cluster.lose_node(node)
    world.cluster.reboot_node(node)
    await world.passes(1)
    waiting = world.get("pods", "p1")["status"]["containerStatuses"][0]
    assert (waiting["ready"], list(waiting["state"])) == (False, ["waiting"])
    world.cluster.resume("resourceclaim-controller")
    world.api.patch("resourceclaims", "default", "shared", {"metadata": {"labels": {"a": "b"}}})
    await world.passes(50)
    assert world.get("pods", "p1")["status"]["containerStatuses"][0]["ready"] is False
    await world.passes(40)
    assert world.get("pods", "p1")["status"]["containerStatuses"][0]["ready"] is True
