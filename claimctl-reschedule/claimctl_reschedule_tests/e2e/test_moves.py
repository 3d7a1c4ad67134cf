"""Runs of ``claimctl reschedule`` that real servers play, too."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kube_in_process.options import ClusterOptions, Preset, Timings

from claimctl.wire.base import to_plain
from claimctl.wire.resources import (
    DEPLOYMENTS,
    NODES,
    RESOURCECLAIMS,
    RESOURCECLAIMTEMPLATES,
)
from claimctl.wire.traces import AVOID_TAINT
from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule.plan.refusals import AVOIDS
from claimctl_reschedule.run.steps import Result
from claimctl_reschedule_tests.e2e.rescheduling import (
    BUDGETS,
    CPU,
    CRITICAL,
    DUPLICATES,
    EXAMPLE,
    LEAVE,
    budget,
    closed,
    critical,
    crowded,
    emptying,
    evict,
    held,
    is_held,
    names,
    occupied,
    places,
    planned,
    reasons,
    rescheduled,
    taints,
    utilization,
    workload,
)
from claimctl_reschedule_tests.e2e.unplaceable import (
    attractive,
    install_policy,
    is_live,
    looping,
    pods,
    refused,
    refused_on,
    runs,
    unplaceable,
)
from tests.e2e import manifests
from tests.e2e.drivers import devices_of, pool_of, tainted, tainted_by_rule
from tests.e2e.harness import NAMESPACE, Stage

THREE = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 36), nodes=3)
TWO = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 36), nodes=2, devices_per_node=2)
EXAMPLE_2018 = """
apiVersion: descheduler/v1alpha1
kind: DeschedulerPolicy
strategies:
  RemoveDuplicates: {enabled: false}
  LowNodeUtilization:
    enabled: true
    params:
      nodeResourceUtilizationThresholds:
        thresholds: {cpu: 20, memory: 20, pods: 20}
        targetThresholds: {cpu: 50, memory: 50, pods: 50}
"""

SLOW = replace(TWO, timings=Timings(pod_start=1.0))
SLOW_134 = replace(SLOW, kubernetes_version=(1, 34))

three = pytest.mark.cluster(THREE)


@three
async def test_a_node_that_comes_back_gets_its_share(stage: Stage) -> None:
    """Scenario 1: 3/3/0 becomes 2/2/2 by two evictions, and stays."""
    await closed(stage, 2)
    await stage.create(DEPLOYMENTS, workload("web", 6))
    await stage.until_running(6)
    assert sorted((await places(stage)).values()) == [0, 3, 3]
    await closed(stage, 2, unschedulable=False)
    report = await rescheduled(stage, DUPLICATES)
    assert report.evicted == 2
    await stage.until_running(6)
    assert set((await places(stage)).values()) == {2}
    again = await rescheduled(stage, DUPLICATES)
    assert (again.evicted, again.plan.moves) == (0, ())


@three
async def test_the_policy_of_2018_means_what_that_of_today_means(stage: Stage) -> None:
    """Scenario 3: the example 20/50 in both versions gives the same moves, and they are made."""
    await crowded(stage, requests={"cpu": "8", "memory": "4Gi"})
    old, new = await planned(stage, EXAMPLE_2018), await planned(stage, EXAMPLE)
    chosen = [(each.pod, each.destination) for each in new.moves]
    assert chosen
    assert [(each.pod, each.destination) for each in old.moves] == chosen
    report = await rescheduled(stage, EXAMPLE)
    assert report.evicted == len(chosen)
    await stage.until_running(6)
    first, *others = (await places(stage)).values()
    assert first <= 4
    assert sum(others) >= 2
    assert (await rescheduled(stage, EXAMPLE)).evicted == 0


@three
async def test_a_budget_allows_one_eviction_at_a_time(stage: Stage) -> None:
    """Scenario 6: of three pods one may be missing. The dry run says so, too."""
    await crowded(stage, replicas=3)
    await stage.create(BUDGETS, budget("web", minAvailable=2))
    await stage.clock.sleep(2)
    report = await rescheduled(stage, DUPLICATES)
    assert [step.result for step in report.steps] == [Result.EVICTED]
    assert Ground.BUDGET_SPENT in reasons(report.plan).values()


@three
async def test_a_held_claim_pins_its_pod(stage: Stage) -> None:
    """Scenario 9: the pod stays, for this reason; evicted by others, it returns to its node."""
    await held(stage, 1)
    report = await rescheduled(stage, utilization(*CPU))
    assert report.evicted == 0
    (train,) = [name for name in await names(stage) if name.startswith("train-")]
    assert reasons(report.plan, train) == {train: Ground.PINNED}
    await evict(stage, train)
    await stage.until(lambda: _is_replaced(stage, train), "another pod of train runs")
    assert await places(stage, "train") == {stage.site.nodes[0]: 1} | dict.fromkeys(
        stage.site.nodes[1:], 0
    )


async def _is_replaced(stage: Stage, pod: str) -> bool:
    found = await names(stage)
    return pod not in found and len(await stage.running()) == len(found)


@pytest.mark.cluster(TWO)
async def test_a_critical_pod_gets_the_devices_that_others_hold(stage: Stage) -> None:
    """Scenario 14: it is bound, its victims run elsewhere, and the taint is gone."""
    await occupied(stage)
    await critical(stage)
    assert (await names(stage))["vital"] == ""
    report = await rescheduled(stage, CRITICAL)
    assert report.evicted == 6
    assert (await names(stage))["vital"] == stage.site.nodes[0]
    await stage.until_running(7)
    assert (await places(stage, "train"))[stage.site.nodes[1]] == 6
    assert await taints(stage) == []


@pytest.mark.cluster(replace(THREE, taint_rules=True))
async def test_pods_leave_a_device_that_is_tainted(stage: Stage) -> None:
    """By its driver: the pod has another device then. By a rule: a held claim goes elsewhere."""
    await held(stage, 2)
    await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template("each"))
    await stage.create(DEPLOYMENTS, workload("web", 1, template="each"))
    await stage.until_running(6)
    own, before, effect = await _own(stage), await _devices(stage), "NoSchedule"
    async with tainted(stage, own, effect), tainted_by_rule(stage, effect=effect):
        report = await rescheduled(stage, LEAVE)
        assert report.evicted == 3
        await stage.until_running(6)
        assert all(device not in before for device in await _devices(stage))
        assert (await places(stage, "train"))[stage.site.nodes[0]] == 0
        assert (await rescheduled(stage, LEAVE)).plan.moves == ()
    assert await taints(stage) == []


@pytest.mark.cluster(THREE)
async def test_pods_leave_a_cordoned_node_once_its_maintenance_is_planned(stage: Stage) -> None:
    """The condition is of Kubernetes 1.37 (KEP-5683); any client may write it on older ones."""
    await held(stage, 2)
    node = stage.site.nodes[0]
    await stage.cordon(node)
    assert (await rescheduled(stage, LEAVE)).plan.moves == ()
    now = await stage.client.get(NODES, node)
    planned = {"type": "MaintenancePlanned", "status": "True", "reason": "Planned", "message": ""}
    conditions = [*map(to_plain, now.status.conditions), planned]
    await stage.site.patch_node(node, {"status": {"conditions": conditions}}, "status")
    report = await rescheduled(stage, LEAVE)
    assert report.evicted == 2
    await stage.until_running(5)
    assert (await places(stage, "train"))[node] == 0
    assert (await rescheduled(stage, LEAVE)).plan.moves == ()
    await stage.cordon(node, unschedulable=False)


@pytest.mark.cluster(replace(THREE, devices_per_node=4, nodes=4))
async def test_nodes_that_are_hardly_used_are_emptied(stage: Stage) -> None:
    """A pod, and two that share a held claim, go to the node that is used most, not to one that is
    empty or nearly so. No device is lost, and the second run does nothing."""
    await stage.started()
    await stage.clock.sleep(2)  # the claim is to be younger than the controller's Lease
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template("each"))
    train = workload("train", 2, claim="slice")
    train["metadata"]["annotations"] = {"claimctl.io/reserve": "slice"}
    web, api = workload("web", 2, template="each"), workload("api", 1, template="each")
    for node, body, running in ((0, train, 2), (1, web, 4), (2, api, 5)):
        others = [index for index in range(4) if index != node]
        await closed(stage, *others)
        await stage.create(DEPLOYMENTS, body)
        await stage.until_running(running)
        await closed(stage, *others, unschedulable=False)
    await stage.until(lambda: is_held(stage), "the claim is held")
    policy = emptying(stage, 50, moveHeldClaims="WholeUnit")
    report = await rescheduled(stage, policy)
    assert {step.move.pod.node for step in report.steps} == {stage.site.nodes[n] for n in (0, 2)}
    assert report.evicted == 3
    await stage.until_running(5)
    assert list((await places(stage)).values()) == [0, 5, 0, 0]
    assert await pool_of(stage) == stage.site.nodes[1]
    await stage.until(lambda: is_held(stage), "the claim is held again")
    for node in range(4):
        assert await taints(stage, node) == []
    again = await rescheduled(stage, policy)
    assert (again.evicted, again.plan.moves) == (0, ())


async def _own(stage: Stage) -> str:
    """The claim that was generated for the newest pod of web."""
    claims = (await stage.client.list(RESOURCECLAIMS, NAMESPACE)).items
    (own,) = [
        each.metadata
        for each in claims
        if each.metadata.name != "slice" and not each.metadata.deleting
    ]
    return own.name


async def _devices(stage: Stage) -> list[dict[str, str]]:
    return [*(await devices_of(stage)), *(await devices_of(stage, await _own(stage)))]


@pytest.mark.parametrize("options", [SLOW, SLOW_134], ids=["1.36", "1.34"])
async def test_pods_run_elsewhere_after_at_most_three_refusals(stage: Stage) -> None:
    """Scenario 22: by the admission policy, and where it is not served, by the hint of a taint."""
    served = await install_policy(stage)
    bad, good = stage.site.nodes
    await attractive(stage)
    async with looping(stage, unplaceable(keepRefused=None)):
        await stage.clock.sleep(2)
        await stage.create(DEPLOYMENTS, refused_on(bad))
        await stage.until(lambda: runs(stage, good), "it runs elsewhere")
        assert 2 <= len(await refused(stage)) <= 3
        (found,) = [each for each in await pods(stage) if is_live(each)]
        assert found.metadata.annotation(AVOIDS) == (bad if served else None)
        hint = AVOID_TAINT in {key for key, _ in await taints(stage)}
        assert hint is not served
        # nobody else avoids it
        await stage.create(DEPLOYMENTS, workload("other", 1))
        await stage.until(lambda: runs(stage, app="other"), "another workload runs")
        if served:
            assert await runs(stage, bad, app="other")
