"""``claimctl reschedule`` spreads pods of one owner, and relieves nodes that are used too much."""

from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.options import ClusterOptions, Preset

from claimctl.wire.resources import DEPLOYMENTS
from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule_tests.e2e.rescheduling import (
    DUPLICATES,
    EXAMPLE,
    HIGH,
    LOW,
    closed,
    crowded,
    planned,
    reasons,
    rescheduled,
    utilization,
    workload,
)
from tests.e2e.harness import NAMESPACE, NewStage, Stage

THREE = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 36), nodes=3)
FIVE = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 36), nodes=5)

three = pytest.mark.cluster(THREE)


@pytest.mark.cluster(FIVE)
async def test_more_pods_than_nodes_are_left_where_they_are(stage: Stage) -> None:
    """Scenario 2: 12 pods on 5 nodes; no run of 20 evicts one."""
    await stage.create(DEPLOYMENTS, workload("web", 12))
    await stage.until_running(12)
    for _ in range(20):
        assert (await rescheduled(stage, DUPLICATES)).evicted == 0


@three
async def test_enough_under_used_nodes_are_needed(stage: Stage) -> None:
    """Scenario 4: as many as numberOfNodes are not enough."""
    await crowded(stage, requests={"cpu": "8"})
    assert (await rescheduled(stage, utilization(LOW, HIGH, numberOfNodes=2))).evicted == 0
    assert (await rescheduled(stage, utilization(LOW, HIGH, numberOfNodes=1))).evicted > 0


@three
async def test_a_pod_that_would_overload_any_node_stays(stage: Stage) -> None:
    """Scenario 7."""
    await crowded(stage, replicas=1, requests={"cpu": "40"})
    for _ in range(3):
        report = await rescheduled(stage, EXAMPLE)
        assert report.evicted == 0
    assert list(reasons(report.plan).values()) == [Ground.NO_BETTER_NODE]


@pytest.mark.cluster(THREE)
async def test_pods_are_evicted_in_the_order_of_their_classes(new_stage: NewStage) -> None:
    """Scenario 5, the order: BestEffort before Burstable before Guaranteed."""
    async with new_stage(THREE) as stage:
        await closed(stage, 1, 2)
        both = {"cpu": "4", "memory": "1Gi"}
        container = {"name": "main", "image": "x", "resources": {"requests": both, "limits": both}}
        await stage.create(DEPLOYMENTS, workload("sure", 4, spec={"containers": [container]}))
        await stage.create(DEPLOYMENTS, workload("burst", 4, requests={"cpu": "4"}))
        await stage.create(DEPLOYMENTS, workload("best", 4))
        await stage.until_running(12)
        await closed(stage, 1, 2, unschedulable=False)
        plan = await planned(stage, utilization("{cpu: 20, pods: 1}", "{cpu: 40, pods: 1}"))
    apps = [each.pod.name.partition("-")[0] for each in plan.moves]
    assert apps == sorted(apps)
    assert apps


PROTECTED: dict[str, tuple[Ground, dict[str, Any]]] = {
    "critical": (Ground.CRITICAL, {"spec": {"priorityClassName": "system-cluster-critical"}}),
    "local": (Ground.LOCAL_STORAGE, {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}),
    "patient": (
        Ground.DO_NOT_DISRUPT,
        {"annotations": {"karpenter.sh/do-not-disrupt": "true"}},
    ),
    "foreign": (Ground.UNKNOWN_SCHEDULER, {"spec": {"schedulerName": "other"}}),
}


@three
async def test_protected_pods_stay_each_for_its_reason(stage: Stage) -> None:
    """Scenario 5, the rules: none is evicted, and each has one reason."""
    await closed(stage, 1, 2)
    for name, (_, given) in PROTECTED.items():
        await stage.create(DEPLOYMENTS, workload(name, 2, requests={"cpu": "10"}, **given))
    for pod in ("alone", "mirror"):
        await _pod(stage, pod)
    await _daemon_set(stage)
    await stage.until_running(11)
    await closed(stage, 1, 2, unschedulable=False)
    report = await rescheduled(stage, EXAMPLE)
    assert report.evicted == 0
    found = {name.partition("-")[0]: why for name, why in reasons(report.plan).items()}
    wanted = {name: why for name, (why, _) in PROTECTED.items() if name != "foreign"}
    wanted |= {"alone": Ground.NO_OWNER, "mirror": Ground.STATIC, "agent": Ground.DAEMON_SET}
    assert {name: found.get(name) for name in wanted} == wanted


async def _pod(stage: Stage, name: str) -> None:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    annotations = {"kubernetes.io/config.mirror": "x"} if name == "mirror" else {}
    meta = {"name": name, "namespace": NAMESPACE, "annotations": annotations}
    node = stage.site.nodes[0]
    spec = {"containers": [container], **({"nodeName": node} if name == "mirror" else {})}
    stage.embedded.admin.create("pods", {"metadata": meta, "spec": spec})


async def _daemon_set(stage: Stage) -> None:
    body = workload("agent", 0, requests={"cpu": "1"})
    del body["spec"]["replicas"]
    stage.embedded.admin.create("daemonsets", body)
