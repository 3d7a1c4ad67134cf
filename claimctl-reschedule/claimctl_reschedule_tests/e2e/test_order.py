"""Moves that touch the same node are made in the order of the plan."""

from __future__ import annotations

from dataclasses import replace as changed

from kube_in_process.options import ClusterOptions, Preset
from msgspec.structs import replace

from claimctl_reschedule.plan.plan import Move
from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule.run.steps import Result
from claimctl_reschedule.shapes.scheduling import SchedulingPod
from claimctl_reschedule_tests.e2e.moving import (
    QUICK,
    critical,
    make_room,
    move,
    plan_of,
    runner,
    running,
    taint_step,
)
from tests.e2e.harness import Stage, embedded_stage
from tests.e2e.node_taints import taints

OPTIONS = ClusterOptions(preset=Preset.RESERVED_FOR_ANY_POD, nodes=3)


def to(pod: SchedulingPod, node: str, **parts: str) -> Move:
    """The move of a pod, with the workload that plans name."""
    return replace(move(pod, **parts), destination=node)


def times(stage: Stage) -> dict[str, tuple[float, float]]:
    """When the deletion of each pod of the first set began, and when each pod was bound."""
    deleted: dict[str, float] = {}
    bound: dict[str, float] = {}
    for revision in stage.embedded.history():
        if revision.plural == "pods":
            pod = revision.object()
            name = pod["metadata"]["name"]
            if pod["metadata"].get("deletionTimestamp"):
                deleted.setdefault(name, revision.at)
            if pod["spec"].get("nodeName"):
                bound.setdefault(name, revision.at)
    return {name: (deleted.get(name, -1.0), at) for name, at in bound.items()}


async def test_a_move_waits_until_the_one_before_it_on_its_node_has_landed() -> None:
    """Otherwise the scheduler finds the node emptier than planned, and may take it again."""
    async with embedded_stage(OPTIONS) as stage:
        (web, *_) = await running(stage)
        others = await running(stage, "other")
        here = web.spec.node_name
        other = next(each for each in others if each.spec.node_name == here)
        await stage.site.pause("scheduler")
        moves = [to(web, "node-9"), to(other, "node-8")]
        settings = changed(QUICK, deadline=40.0, landing=10.0)
        plan = await plan_of(stage, moves)
        report = await runner(stage, settings=settings, plan=plan).execute(plan)
        assert [step.result for step in report.steps] == [Result.EVICTED] * 2
        found = times(stage)
        first, second = found[web.metadata.name][0], found[other.metadata.name][0]
        # the first replacement never gets a node: the second move waits until it is given up
        assert second - first >= 10.0
        await stage.site.resume("scheduler")


async def test_a_move_is_judged_again_when_an_earlier_one_went_elsewhere() -> None:
    """What the cluster as it is now does not call for is left, and nothing takes its place."""
    async with embedded_stage(OPTIONS) as stage:
        first, second, third = await running(stage)
        one, two, three = (pod.spec.node_name for pod in (first, second, third))
        moves = [to(first, "node-9"), to(second, three), to(third, two)]
        plan = await plan_of(stage, moves)
        still = await plan_of(stage, [to(third, one)])
        report = await runner(stage, plan=still).execute(plan)
        assert [step.result for step in report.steps] == [
            Result.EVICTED,
            Result.LEFT,
            Result.EVICTED,
        ]
        assert report.steps[1].reason is Ground.CHANGED
        assert "no longer looks as planned" in report.steps[1].detail
        assert report.blocked == []


async def test_a_move_whose_replacements_went_as_expected_is_not_judged_again() -> None:
    async with embedded_stage(OPTIONS) as stage:
        first, second, _ = await running(stage)
        plan = await plan_of(stage, [move(first), move(second)])
        empty = await plan_of(stage, [])
        report = await runner(stage, plan=empty).execute(plan)
        assert report.evicted == 2


async def test_a_move_waits_until_the_node_it_goes_to_is_open_again() -> None:
    async with embedded_stage(OPTIONS) as stage:
        (web, *_) = await running(stage)
        others = await running(stage, "other")
        vital = await critical(stage)
        closed = web.spec.node_name
        other = next(each for each in others if each.spec.node_name != closed)
        step = await taint_step(stage, closed, vital, "u")
        moves = [move(web, unit="u", closes=closed), to(other, closed)]
        settings = changed(QUICK, deadline=20.0)
        report = await runner(stage, settings=settings).execute(await plan_of(stage, moves, step))
        assert [each.reason for each in report.steps] == [None, Ground.DEADLINE]
        assert await taints(stage) == []
        await make_room(stage, closed)
        again = await runner(stage, settings=settings).execute(
            await plan_of(stage, [to(other, closed)])
        )
        assert again.evicted == 1
