"""A plan is executed as it is: in waves, under budgets, and without substitutes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from kube_in_process.options import ClusterOptions, Preset
from kube_in_process.storage.requests import Fault, FaultPoint

from claimctl.wire.resources import JOBS, PODS
from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule.run.steps import Result, RunReport
from claimctl_reschedule.shapes.records import MoveOutcome
from claimctl_reschedule_tests.e2e.moving import (
    QUICK,
    evictions,
    move,
    plan_of,
    pods,
    runner,
    running,
    taint_step,
    until_evicted,
)
from tests.e2e.harness import NAMESPACE, Stage, embedded_stage
from tests.e2e.node_taints import taints

OPTIONS = ClusterOptions(preset=Preset.RESERVED_FOR_ANY_POD, nodes=3)


def results(report: RunReport) -> list[tuple[Result, Ground | None]]:
    return [(step.result, step.reason) for step in report.steps]


async def budget(stage: Stage, name: str, minimum: int) -> None:
    stage.embedded.admin.create(
        "poddisruptionbudgets",
        {
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"minAvailable": minimum, "selector": {"matchLabels": {"app": "web"}}},
        },
    )
    await stage.clock.sleep(2.0)


async def test_one_move_of_a_workload_waits_for_the_replacement_of_the_last_one() -> None:
    async with embedded_stage(OPTIONS) as stage:
        chosen = await running(stage)
        plan = await plan_of(stage, map(move, chosen))
        report = await runner(stage).execute(plan)
        assert results(report) == [(Result.EVICTED, None)] * 3
        assert {step.outcome for step in report.steps} == {MoveOutcome.LANDED}
        assert _most_at_once(stage) == 1


def _most_at_once(stage: Stage) -> int:
    """The most pods of the Deployment that were missing at a time."""
    bound: set[str] = set()
    missing, full = 0, False
    for revision in stage.embedded.history():
        if revision.plural != "pods":
            continue
        pod = revision.object()
        uid = pod["metadata"]["uid"]
        gone = revision.type == "DELETED" or pod["metadata"].get("deletionTimestamp")
        if gone:
            bound.discard(uid)
        elif pod["spec"].get("nodeName"):
            bound.add(uid)
        full = full or len(bound) == 3
        missing = max(missing, 3 - len(bound)) if full else 0
    return missing


@pytest.mark.parametrize("end", ["scaled down", "deleted"])
async def test_a_replacement_that_will_not_come_holds_no_run(end: str) -> None:
    async with embedded_stage(OPTIONS) as stage:
        pods = await running(stage)
        plan = await plan_of(stage, map(move, pods[:2]))
        if end == "scaled down":
            # the eviction leaves as many pods as the Deployment wants
            await stage.site.pause("deployment-controller")
            await stage.site.pause("replicaset-controller")
            replicas = stage.embedded.admin.list("replicasets")[0]
            replicas["spec"]["replicas"] = 1
            stage.embedded.admin.update("replicasets", replicas)
        else:
            await stage.site.pause("garbage-collector")
            await stage.site.pause("deployment-controller")
            name = stage.embedded.admin.list("replicasets")[0]["metadata"]["name"]
            stage.embedded.admin.delete("replicasets", NAMESPACE, name)
        began = stage.clock.monotonic()
        report = await runner(stage).execute(plan)
        assert [step.outcome for step in report.steps] == [MoveOutcome.GONE] * 2
        assert stage.clock.monotonic() - began < 10.0 < QUICK.landing


async def test_a_job_that_has_all_it_wants_holds_no_run() -> None:
    """Its pod ends well when it is told to end, so that the Job is complete."""
    async with embedded_stage(OPTIONS) as stage:
        template = {"spec": {"containers": [{"name": "m", "image": "x"}], "restartPolicy": "Never"}}
        body = {
            "metadata": {"name": "job", "namespace": NAMESPACE},
            "spec": {"parallelism": 1, "completions": 1, "template": template},
        }
        await stage.create(JOBS, body)
        await stage.until_running(1)
        (pod,) = await pods(stage)
        plan = await plan_of(stage, [move(pod)])
        await stage.site.pause("job-controller")
        job = stage.embedded.admin.get("jobs", NAMESPACE, "job")
        job["status"] = {**job.get("status", {}), "succeeded": 1}
        stage.embedded.admin.update("jobs", job, subresource="status")
        began = stage.clock.monotonic()
        report = await runner(stage).execute(plan)
        assert [step.outcome for step in report.steps] == [MoveOutcome.GONE]
        assert stage.clock.monotonic() - began < 10.0


async def test_nothing_is_evicted_that_could_not_be_remembered() -> None:
    """Or else each run would evict the pods again, without a memory."""
    async with embedded_stage(OPTIONS) as stage:
        plan = await plan_of(stage, map(move, await running(stage)))
        stage.embedded.handler.fault = lambda point: (
            Fault(status=403, reason="Forbidden")
            if (point.plural, point.subresource) == ("reschedulerecords", "status")
            else None
        )
        report = await runner(stage).execute(plan)
        assert report.evicted == 0
        assert "reschedulerecords/claimctl/status" in report.failure
        assert evictions(stage) == []


async def test_a_pod_that_changed_is_left_and_no_other_is_taken() -> None:
    async with embedded_stage(OPTIONS) as stage:
        first, second, third = await running(stage)
        plan = await plan_of(stage, map(move, (first, second)))
        stage.embedded.admin.patch(
            "pods", NAMESPACE, first.metadata.name, {"metadata": {"labels": {"new": "1"}}}
        )
        report = await runner(stage).execute(plan)
        assert results(report) == [(Result.LEFT, Ground.CHANGED), (Result.EVICTED, None)]
        assert report.steps[0].detail == "changed since the plan: labels"
        assert report.blocked == []
        assert evictions(stage) == [second.metadata.name]
        assert third.metadata.uid in {pod.metadata.uid for pod in await pods(stage)}


async def test_a_new_pod_of_the_same_name_is_not_evicted() -> None:
    async with embedded_stage(OPTIONS) as stage:
        (pod,) = await running(stage, replicas=1)
        plan = await plan_of(stage, [move(pod)])
        await stage.delete(PODS, pod.metadata.name)
        report = await runner(stage).execute(plan)
        assert results(report) == [(Result.LEFT, Ground.CHANGED)]


async def test_a_refused_eviction_is_tried_until_the_deadline() -> None:
    async with embedded_stage(OPTIONS) as stage:
        (pod, *_) = await running(stage)
        await budget(stage, "all", 3)
        began = stage.clock.monotonic()
        report = await runner(stage).execute(await plan_of(stage, [move(pod)]))
        assert results(report) == [(Result.LEFT, Ground.REFUSED)]
        assert [step.move.pod.name for step in report.blocked] == [pod.metadata.name]
        assert QUICK.deadline <= stage.clock.monotonic() - began < QUICK.deadline + 10
        assert evictions(stage) == []


async def test_a_budget_that_opens_in_time_lets_the_move_happen() -> None:
    async with embedded_stage(OPTIONS) as stage:
        (pod, *_) = await running(stage)
        await budget(stage, "all", 3)
        plan = await plan_of(stage, [move(pod)])
        run = asyncio.create_task(runner(stage).execute(plan))
        await stage.clock.sleep(10.0)
        stage.embedded.admin.delete("poddisruptionbudgets", NAMESPACE, "all")
        assert results(await run) == [(Result.EVICTED, None)]


async def test_a_pod_under_two_budgets_is_reported_at_once() -> None:
    async with embedded_stage(OPTIONS) as stage:
        (pod, *_) = await running(stage)
        await budget(stage, "one", 1)
        await budget(stage, "two", 1)
        report = await runner(stage).execute(await plan_of(stage, [move(pod)]))
        assert results(report) == [(Result.LEFT, Ground.TWO_BUDGETS)]


async def test_a_missing_right_ends_the_run_and_says_what_was_done() -> None:
    async with embedded_stage(OPTIONS) as stage:
        chosen = await running(stage)
        plan = await plan_of(stage, map(move, chosen[:2]))
        stage.embedded.handler.fault = _forbidden_after(1)
        report = await runner(stage).execute(plan)
        assert report.evicted == 1
        assert "/eviction: 403" in report.failure
        assert len(evictions(stage)) == 1


def _forbidden_after(allowed: int) -> Callable[[FaultPoint], Fault | None]:
    count = 0

    def fault(point: FaultPoint) -> Fault | None:
        nonlocal count
        count += point.subresource == "eviction"
        refused = point.subresource == "eviction" and count > allowed
        return Fault(status=403, reason="Forbidden") if refused else None

    return fault


async def test_a_unit_is_evicted_whole_or_not_at_all() -> None:
    async with embedded_stage(OPTIONS) as stage:
        chosen = await running(stage)
        await budget(stage, "all", 3)
        moves = [move(pod, unit="u") for pod in chosen[:2]]
        report = await runner(stage).execute(await plan_of(stage, moves))
        assert results(report) == [(Result.LEFT, Ground.REFUSED), (Result.LEFT, Ground.UNIT)]
        assert evictions(stage) == []


async def test_a_unit_that_is_refused_in_the_middle_is_reported_and_ends_the_run() -> None:
    """The dry runs succeed one by one; the budget allows one of the two evictions only."""
    async with embedded_stage(OPTIONS) as stage:
        chosen = await running(stage)
        await running(stage, "other", 1)
        other = [pod for pod in await pods(stage) if "other" in pod.metadata.name]
        await budget(stage, "all", 2)
        # without a replacement, the budget never allows the second eviction
        await stage.site.pause("replicaset-controller")
        moves = [move(pod, unit="u") for pod in chosen[:2]]
        plan = await plan_of(stage, [*moves, move(other[0])])
        report = await runner(stage).execute(plan)
        assert [step.reason for step in report.steps] == [
            None,
            Ground.PARTLY_EVICTED,
            Ground.DEADLINE,
        ]
        assert len(evictions(stage)) == 1


async def test_an_interrupted_run_finishes_its_write_and_removes_its_taint() -> None:
    async with embedded_stage(OPTIONS) as stage:
        chosen = await running(stage)
        steps = [await taint_step(stage, chosen[0].spec.node_name, chosen[0], "u", critical=False)]
        moves = [move(chosen[0], unit="u", closes=chosen[0].spec.node_name), move(chosen[1])]
        process = runner(stage, settings=replace(QUICK, poll=2.0))
        run = asyncio.create_task(process.execute(await plan_of(stage, moves, *steps)))
        await until_evicted(stage)
        process.stop.set()
        report = await run
        assert report.interrupted
        assert await taints(stage) == []
        assert [step.reason for step in report.steps] == [None, Ground.INTERRUPTED]


async def test_an_eviction_without_an_answer_counts_as_done_if_the_pod_goes() -> None:
    """The server evicts the pod, and the connection breaks before the answer."""
    async with embedded_stage(OPTIONS) as stage:
        (pod, *_) = await running(stage)
        plan = await plan_of(stage, [move(pod)])
        stage.embedded.handler.fault = _without_answer()
        report = await runner(stage).execute(plan)
        assert results(report) == [(Result.EVICTED, None)]
        assert evictions(stage) == [pod.metadata.name]


def _without_answer() -> Callable[[FaultPoint], Fault | None]:
    told = False

    def fault(point: FaultPoint) -> Fault | None:
        nonlocal told
        if told or point.subresource != "eviction":
            return None
        told = True
        return Fault(drop=True, after_write=True)

    return fault


async def test_an_error_of_the_server_is_tried_again() -> None:
    async with embedded_stage(OPTIONS) as stage:
        (pod, *_) = await running(stage)
        plan = await plan_of(stage, [move(pod)])
        faults = [Fault(status=500), Fault(status=503)]
        stage.embedded.handler.fault = lambda point: (
            faults.pop() if faults and point.subresource == "eviction" else None
        )
        report = await runner(stage).execute(plan)
        assert results(report) == [(Result.EVICTED, None)]
