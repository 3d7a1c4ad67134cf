"""HighNodeUtilization while it is executed: what is closed meanwhile, and what stops it."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from kube_in_process.options import ClusterOptions, Preset

from claimctl.wire.resources import DEPLOYMENTS, NODES, PODS
from claimctl.wire.traces import MOVING_TAINT, is_own
from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule.run.steps import Result
from claimctl_reschedule.run.taints import YOUNG, Closed, Taints
from claimctl_reschedule_tests.e2e.rescheduling import (
    BUDGETS,
    budget,
    closed,
    filled,
    names,
    places,
    rescheduled,
    runner,
    taints,
    workload,
)
from tests.e2e.harness import NAMESPACE, Stage

FIVE = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 36), nodes=5)
POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: empty
  pluginConfig:
  - {name: DefaultEvictor, args: {}}
  - {name: HighNodeUtilization, args: {thresholds: {cpu: 50}}}
  plugins:
    balance: {enabled: [HighNodeUtilization]}
"""
pytestmark = pytest.mark.cluster(FIVE)


async def prepared(stage: Stage) -> None:
    """Most of the first node is used by pods that stay; web and api have a node each, and two nodes
    are empty."""
    start = (0, filled(stage, 2), 2), (1, web(stage, "web", 3), 5), (2, web(stage, "api", 1), 6)
    for node, begun, running in start:
        others = [index for index in range(5) if index != node]
        await closed(stage, *others)
        await begun
        await stage.until_running(running)
        await closed(stage, *others, unschedulable=False)


async def web(stage: Stage, name: str, replicas: int) -> None:
    await stage.create(DEPLOYMENTS, workload(name, replicas, requests={"cpu": "1"}))


async def closed_now(stage: Stage) -> list[int]:
    """The numbers of the nodes that claimctl has tainted."""
    return [node for node in range(5) if any(is_own(*taint) for taint in await taints(stage, node))]


async def used(stage: Stage) -> list[int]:
    return [index for index, count in enumerate((await places(stage)).values()) if count]


async def test_all_nodes_are_closed_until_the_last_pod_has_left(stage: Stage) -> None:
    """Also the empty ones. The pods of a workload leave one by one."""
    await prepared(stage)
    report = await rescheduled(stage, POLICY)
    assert report.evicted == 4
    await stage.until_running(6)
    assert (await used(stage), await closed_now(stage)) == ([0], [])
    tainted, evicted, closed_once = set[str](), set[str](), Counter[str]()
    for revision in stage.embedded.history():
        meta = revision.object()["metadata"]
        if revision.plural == "nodes":
            own = revision.object()["spec"].get("taints") or ()
            before, closes = meta["name"] in tainted, any(map(_is_moving, own))
            closed_once[meta["name"]] += closes and not before
            change = tainted.add if closes else tainted.discard
            change(meta["name"])
        if revision.plural == "pods" and meta.get("deletionTimestamp"):
            evicted.add(meta["uid"])
            assert tainted == {f"node-{node}" for node in (1, 2, 3, 4)}
    assert len(evicted) == 4
    assert set(closed_once.values()) == {0, 1}
    assert _most_missing(stage) == 1


def _is_moving(taint: dict[str, str]) -> bool:
    return taint["key"] == MOVING_TAINT


def _most_missing(stage: Stage) -> int:
    """How many pods of web had no node at a time, at most, once it was complete."""
    bound, most, complete = set[str](), 0, False
    for revision in stage.embedded.history():
        pod = revision.object()
        if revision.plural != "pods" or pod["metadata"].get("labels", {}).get("app") != "web":
            continue
        gone = revision.type == "DELETED" or pod["metadata"].get("deletionTimestamp")
        change = bound.discard if gone or not pod["spec"].get("nodeName") else bound.add
        change(pod["metadata"]["uid"])
        complete = complete or len(bound) == 3
        most = max(most, 3 - len(bound)) if complete else 0
    return most


async def test_an_autoscaler_may_take_an_empty_node_meanwhile(stage: Stage) -> None:
    await prepared(stage)
    process = runner(stage, POLICY)
    plan = await process.plan()
    await stage.client.delete(NODES, stage.site.nodes[4])
    report = await process.execute(plan)
    assert (report.evicted, await used(stage)) == (4, [0])


async def test_a_node_is_not_begun_if_the_server_refuses_one_of_its_pods(stage: Stage) -> None:
    """The budget came after the plan."""
    await prepared(stage)
    process = runner(stage, POLICY)
    plan = await process.plan()
    await stage.create(BUDGETS, budget("web", maxUnavailable=0))
    await stage.clock.sleep(2)
    report = await process.execute(plan)
    left = {step.move.pod.node: step.result for step in report.steps}
    assert left == {"node-1": Result.LEFT, "node-2": Result.EVICTED}
    assert (await used(stage), await closed_now(stage)) == ([0, 1], [])


async def test_no_further_node_is_begun_once_a_replacement_finds_none(stage: Stage) -> None:
    await prepared(stage)
    process = runner(stage, POLICY)
    plan = await process.plan()
    await closed(stage, 0)
    report = await process.execute(plan)
    reasons = {step.move.pod.node: step.reason for step in report.steps}
    assert reasons == {"node-2": None, "node-1": Ground.REPLACEMENT_PENDING}
    assert await closed_now(stage) == []
    await stage.until_running(6)
    assert all((await names(stage)).values())


async def test_an_empty_node_that_a_dead_process_closed_is_opened(stage: Stage) -> None:
    await prepared(stage)
    process = runner(stage, POLICY)
    plan = await process.plan()
    (step,) = [taint for taint in plan.taints if taint.node == "node-4"]
    assert (step.unit, step.key) == ("", MOVING_TAINT)
    alive = Taints(process.client, stage.clock, process.records)
    result, entry = await alive.close(step, plan.moves[0].pod)
    assert result is Closed.OURS
    await process.sweep()
    assert await closed_now(stage) == [4]
    # as long as its process lives, the node stays closed, although its first pod has left
    await stage.client.delete(PODS, plan.moves[0].pod.name, NAMESPACE)
    for _ in range(5):
        await stage.clock.sleep(8)
        await alive.renew([entry])
    await stage.until_running(6)
    await process.sweep()
    assert await closed_now(stage) == [4]
    await stage.clock.sleep((YOUNG + timedelta(seconds=1)).total_seconds())
    await process.sweep()
    assert await closed_now(stage) == []
