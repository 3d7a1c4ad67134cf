"""``claimctl reschedule`` gives a critical pod the devices that it waits for."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from kube_in_process.options import ClusterOptions, Preset, Timings

from claimctl.wire.meta import ObjectHeader
from claimctl.wire.resources import (
    DEPLOYMENTS,
    PODS,
    RESOURCECLAIMS,
    RESOURCECLAIMTEMPLATES,
    Resource,
)
from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule.run.steps import HelpState, Result
from claimctl_reschedule.shapes.records import RecordedTaint
from claimctl_reschedule_tests.e2e.rescheduling import (
    CRITICAL,
    KEY,
    closed,
    critical,
    names,
    occupied,
    planned,
    reasons,
    rescheduled,
    runner,
    taints,
    workload,
)
from claimctl_reschedule_tests.e2e.unplaceable import looping, status
from tests.e2e import manifests
from tests.e2e.harness import NAMESPACE, Stage
from tests.e2e.operators import owned

TWO = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 36), nodes=2, devices_per_node=2)
ADMINISTRATORS = {"key": KEY, "value": "true", "effect": "NoSchedule"}

two = pytest.mark.cluster(TWO)


@two
async def test_a_taint_of_an_administrator_stays(stage: Stage) -> None:
    """Scenario 15."""
    await occupied(stage)
    node = stage.site.nodes[0]
    await stage.site.patch_node(node, {"spec": {"taints": [ADMINISTRATORS]}})
    await critical(stage)
    await runner(stage, CRITICAL).run()
    await runner(stage, CRITICAL).sweep(everything=True)
    assert await taints(stage) == [(KEY, "true")]


@two
async def test_a_critical_pod_must_bear_the_taint(stage: Stage) -> None:
    """Scenario 16: the taint would keep it away, too."""
    await occupied(stage)
    await critical(stage, tolerations=[])
    report = await rescheduled(stage, CRITICAL)
    assert (report.evicted, reasons(report.plan, "vital")) == (
        0,
        {"vital": Ground.TOLERATION_MISSING},
    )


@two
async def test_a_critical_pod_that_never_fits_costs_nobody_anything(stage: Stage) -> None:
    """Scenario 17."""
    await occupied(stage)
    await critical(stage, count=3)
    report = await rescheduled(stage, CRITICAL)
    assert (report.evicted, reasons(report.plan, "vital")) == (
        0,
        {"vital": Ground.DOES_NOT_FIT_EVEN_EMPTY},
    )


@two
async def test_where_only_cpu_lacks_the_scheduler_preempts(stage: Stage) -> None:
    """Scenario 21: it makes the room itself; claimctl leaves the pod to it."""
    await closed(stage, 1)
    graceful = {"terminationGracePeriodSeconds": 600}
    await stage.site.pause("kubelet")
    await stage.create(DEPLOYMENTS, workload("web", 1, requests={"cpu": "60"}, spec=graceful))
    await stage.clock.sleep(3)
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "10"}}}
    await critical(stage, count=0, containers=[container])
    plan = await planned(stage, CRITICAL)
    assert plan.moves == ()
    assert reasons(plan, "vital") == {"vital": Ground.SCHEDULER_PREEMPTS}
    await stage.site.resume("kubelet")
    await stage.until(lambda: _is_bound(stage), "the scheduler has bound it")


async def _is_bound(stage: Stage) -> bool:
    return bool((await names(stage)).get("vital"))


FOUR = replace(TWO, devices_per_node=4)


@pytest.mark.cluster(FOUR)
async def test_a_critical_pod_wakes_the_loop(stage: Stage) -> None:
    """The interval is an hour; the pod is helped as soon as it has waited long enough."""
    await closed(stage, 1)
    await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template("own"))
    await stage.create(DEPLOYMENTS, workload("train", 4, template="own"))
    await stage.until_running(4)
    async with looping(stage, CRITICAL, interval=3600.0):
        await stage.clock.sleep(5)
        await critical(stage)
        await stage.until(lambda: _is_bound(stage), "it is bound", within=2)
        await stage.until(lambda: _no_taint(stage), "the node is open", within=5)


async def _no_taint(stage: Stage) -> bool:
    return not await taints(stage)


@two
async def test_without_a_controller_nobody_leaves_a_held_claim(stage: Stage) -> None:
    """Nobody would give the claim up, so the evictions would be in vain."""
    await occupied(stage)
    await critical(stage)
    process = runner(stage, CRITICAL)
    plan = await process.plan()
    assert len(plan.moves) == 6
    await stage.stop()
    report = await process.execute(plan)
    assert {step.reason for step in report.steps} == {Ground.CONTROLLER_AWAY}
    assert [help_.result for help_ in report.helps] == [HelpState.WAITS]
    plan = await planned(stage, CRITICAL)
    assert reasons(plan, "vital") == {"vital": Ground.VICTIMS_STAY}
    assert "6 ControllerAway" in plan.skipped[0].detail
    assert await taints(stage) == []


@two
async def test_a_controller_that_does_not_know_the_claim_yet_is_waited_for(stage: Stage) -> None:
    """It would keep the claim for its grace, and all pods would be down for so long."""
    await occupied(stage)
    await critical(stage)
    process = runner(stage, CRITICAL)
    before = await process.plan()
    await stage.stop()
    await stage.started("two")
    report = await process.execute(before)
    assert {step.reason for step in report.steps} == {Ground.CHANGED}
    plan = await planned(stage, CRITICAL)
    assert reasons(plan, "vital") == {"vital": Ground.VICTIMS_STAY}
    assert "6 ControllerIsNew" in plan.skipped[0].detail
    await stage.clock.sleep(300)
    report = await rescheduled(stage, CRITICAL)
    assert [help_.result for help_ in report.helps] == [HelpState.HELPED]


SLOW = replace(TWO, timings=Timings(pod_stop=60.0))


async def _interrupted(stage: Stage) -> None:
    """A run is killed while its victims still stop: the taint is there."""
    await occupied(stage)
    await critical(stage)
    run = asyncio.create_task(runner(stage, CRITICAL).run())
    await stage.until(lambda: _is_tainted(stage), "the node is tainted")
    await stage.clock.sleep(2)
    run.cancel()
    await asyncio.wait({run})


async def _is_tainted(stage: Stage) -> bool:
    return bool(await taints(stage))


@pytest.mark.cluster(SLOW)
async def test_a_node_that_is_gone_leaves_no_entry(stage: Stage) -> None:
    """Scenario 19."""
    await _interrupted(stage)
    await stage.site.delete_node(stage.site.nodes[0])
    await stage.clock.sleep(40)  # a young entry may be of a process that is about to set its taint
    await runner(stage, CRITICAL).sweep()
    assert await _entries(stage) == ()


@pytest.mark.cluster(SLOW)
async def test_a_node_that_is_not_ready_loses_the_taint_in_time(stage: Stage) -> None:
    """Scenario 19: the time is over, and nobody's pod came."""
    await _interrupted(stage)
    await stage.site.lose(stage.site.nodes[0])
    await stage.clock.sleep(60)
    await runner(stage, CRITICAL).sweep()
    assert await _entries(stage) == ()
    assert KEY not in dict(await taints(stage))


@pytest.mark.cluster(SLOW)
async def test_a_pod_made_anew_is_another_pod(stage: Stage) -> None:
    """Scenario 20: the taint was for the pod that is gone."""
    await _interrupted(stage)
    await stage.client.delete(PODS, "vital", NAMESPACE)
    await stage.until(lambda: stage.gone(PODS, "vital"), "the pod is gone")
    await stage.client.delete(RESOURCECLAIMS, "vital", NAMESPACE)
    await stage.until(lambda: stage.gone(RESOURCECLAIMS, "vital"), "its claim is gone")
    await critical(stage)
    await runner(stage, CRITICAL).sweep()
    assert await _entries(stage) == ()
    assert await taints(stage) == []


async def _entries(stage: Stage) -> tuple[RecordedTaint, ...]:
    return (await status(runner(stage, CRITICAL))).taints


VITAL = tuple(f"vital-{number}" for number in range(10))
TWENTY = replace(TWO, devices_per_node=20)


async def _full(stage: Stage) -> None:
    """Each critical pod needs the devices of two pods, whose replacements find no node."""
    await closed(stage, 1)
    await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template("own"))
    await stage.create(DEPLOYMENTS, workload("train", 20, template="own"))
    await stage.until_running(20)


async def _all_are_helped(stage: Stage) -> bool:
    nodes = await names(stage)
    return all(nodes.get(name) == stage.site.nodes[0] for name in VITAL)


@pytest.mark.cluster(TWENTY)
async def test_ten_critical_pods_in_a_row_are_all_helped(stage: Stage) -> None:
    await _full(stage)
    victims: list[str] = []
    for name in VITAL:
        await critical(stage, name=name)
        report = await rescheduled(stage, CRITICAL)
        assert [help_.result for help_ in report.helps] == [HelpState.HELPED]
        victims += [step.move.pod.uid for step in report.steps if step.result is Result.EVICTED]
    assert len(victims) == len(set(victims)) == 20
    assert await _all_are_helped(stage)
    assert await taints(stage) == []


@pytest.mark.cluster(TWENTY)
async def test_ten_critical_pods_at_once_are_helped_one_after_the_other(stage: Stage) -> None:
    """One node is closed for one pod at a time. The interval of the loop is an hour."""
    await _full(stage)
    for name in VITAL:
        await critical(stage, name=name)
    others = dict.fromkeys(VITAL[1:], Ground.ROOM_FOR_ANOTHER)
    assert reasons(await planned(stage, CRITICAL), *VITAL) == others
    async with looping(stage, CRITICAL, interval=3600.0):
        await stage.until(lambda: _all_are_helped(stage), "all are bound", within=60)
        await stage.until(lambda: _no_taint(stage), "the node is open", within=5)


CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", ObjectHeader)
REPLACING = "{name: DefaultEvictor, args: {replacingOwners: [{kind: ConfigMap}]}}"


@pytest.mark.cluster(replace(TWO, devices_per_node=6))
async def test_the_next_critical_pod_does_not_wait_for_replacements(stage: Stage) -> None:
    """Those of the first one's victims never come: a ConfigMap makes no pods."""
    await closed(stage, 1)
    await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template("own"))
    keeper = await stage.create(CONFIG_MAPS, {"metadata": {"name": "keeper"}})
    spec = workload("train", 1, template="own")["spec"]["template"]["spec"]
    for number in range(6):
        body = {"metadata": {"name": f"train-{number}"}, "spec": spec}
        await stage.create(PODS, owned(body, keeper, CONFIG_MAPS))
    await stage.until_running(6)
    for name in VITAL[:3]:
        await critical(stage, name=name)
    policy = CRITICAL.replace("{name: DefaultEvictor, args: {}}", REPLACING)
    async with looping(stage, policy, interval=3600.0):
        await stage.until(lambda: _are_bound(stage, *VITAL[:3]), "all are bound", within=20)


@two
async def test_a_critical_pod_whose_room_another_one_took_is_helped_at_once(stage: Stage) -> None:
    """The plan has a node for each of them; the scheduler binds the more urgent one to the first
    node that is free. Nothing but the end of that run can begin the next one."""
    await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template("own"))
    await stage.create(DEPLOYMENTS, workload("train", 4, template="own"))
    await stage.until_running(4)
    more = "system-node-critical"
    async with looping(stage, CRITICAL, interval=3600.0):
        await stage.clock.sleep(5)
        first = critical(stage, name="vital-0", nodeSelector={})
        other = critical(stage, name="vital-1", nodeSelector={}, priorityClassName=more)
        await asyncio.gather(first, other)
        await stage.until(lambda: _are_bound(stage, "vital-0", "vital-1"), "both run", within=20)


async def _are_bound(stage: Stage, *pods: str) -> bool:
    nodes = await names(stage)
    return all(nodes.get(pod) for pod in pods)
