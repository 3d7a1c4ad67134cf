"""``claimctl reschedule`` makes room for resizes, as real servers play it, too."""

from __future__ import annotations

import pytest
from kube_in_process.options import ClusterOptions, Preset

from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule_tests.e2e.rescheduling import planned, reasons, rescheduled, runner
from claimctl_reschedule_tests.e2e.resizing import (
    cpu_of,
    node_with,
    pod_of,
    resize,
    resizes,
    uids,
    until_cpu,
    until_deferred,
    waits,
)
from tests.e2e.harness import Stage

TWO = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 36), nodes=2)
POLICY = resizes()

two = pytest.mark.cluster(TWO)


@two
async def test_one_pod_leaves_where_the_scheduler_would_take_three(stage: Stage) -> None:
    """Scenario 30, the case of KEP-5836 with 2 X = 64 cpus: the kubelet grants the resize."""
    lower = ("a", "b", "c")
    await node_with(stage, big=(16, "high"), **dict.fromkeys(lower, (16, "low")))
    for name in lower:
        await resize(stage, name, 64)
    await resize(stage, "big", 32)
    await until_deferred(stage, "big", *lower)
    before = await uids(stage)
    report = await rescheduled(stage, POLICY)
    assert report.evicted == 1
    await until_cpu(stage, "big", 32)
    assert len(before - await uids(stage)) == 1
    # the others wait on, and nobody leaves for them: no pod has a lower priority
    again = await rescheduled(stage, POLICY)
    assert again.evicted == 0
    assert set(reasons(again.plan).values()) == {Ground.NOT_ENOUGH}


@two
async def test_the_first_in_the_order_of_the_kubelet_gets_the_room(stage: Stage) -> None:
    """Scenario 31: one pod of lower priority may leave, and two wait for its room."""
    await node_with(stage, first=(20, "high"), second=(20, "mid"), low=(20, "low"))
    await resize(stage, "second", 40)
    await until_deferred(stage, "second")
    await resize(stage, "first", 40)
    await until_deferred(stage, "first")
    report = await rescheduled(stage, POLICY)
    assert [step.move.owner is not None for step in report.steps] == [True]
    await until_cpu(stage, "first", 40)
    assert await cpu_of(stage, "second") == "20"
    assert await waits(stage, "second")


@two
async def test_a_resize_that_was_taken_back_costs_no_pod(stage: Stage) -> None:
    """Scenario 32: between the plan and the eviction."""
    await node_with(stage, big=(30, "high"), low=(30, "low"))
    await resize(stage, "big", 60)
    await until_deferred(stage, "big")
    process = runner(stage, POLICY)
    plan = await process.plan()
    assert len(plan.moves) == 1
    await resize(stage, "big", 30)
    before = await uids(stage)
    report = await process.execute(plan)
    assert (report.evicted, report.failure) == (0, "")
    assert [step.reason for step in report.steps] == [Ground.CHANGED]
    assert await uids(stage) == before


@two
async def test_a_pod_that_must_not_preempt_waits(stage: Stage) -> None:
    """Scenario 33; and an API server before 1.37 is not asked for its gate."""
    await node_with(stage, big=(30, "never"), low=(30, "low"))
    await resize(stage, "big", 60)
    await until_deferred(stage, "big")
    pod = await pod_of(stage, "big")
    plan = await planned(stage, POLICY)
    assert plan.moves == ()
    assert reasons(plan, pod.metadata.name) == {pod.metadata.name: Ground.NEVER_PREEMPTS}


@two
async def test_a_victim_that_takes_its_time_is_the_only_one(stage: Stage) -> None:
    """Scenario 34: the first run ends, the victim is still going, the second run waits for it."""
    await node_with(stage, big=(20, "high"), one=(20, "low"), other=(20, "low"))
    await resize(stage, "big", 40)
    await until_deferred(stage, "big")
    await stage.site.pause("kubelet")
    report = await rescheduled(stage, POLICY)
    assert report.evicted == 1
    await stage.clock.sleep(stage.scaled(300.0))
    again = await rescheduled(stage, POLICY)
    assert again.evicted == 0
    name = (await pod_of(stage, "big")).metadata.name
    assert reasons(again.plan, name) == {name: Ground.ROOM_IS_COMING}
    await stage.site.resume("kubelet")
    await until_cpu(stage, "big", 40)
