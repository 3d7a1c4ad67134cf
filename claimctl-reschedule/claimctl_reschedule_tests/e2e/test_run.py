"""Whole runs: sweep, look, plan, act, remember. The embedded scheduler places the replacements."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import MutableMapping
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from kube_in_process.options import ClusterOptions, Preset
from structlog.testing import capture_logs

from claimctl.kube.client import Client
from claimctl.kube.events import EventRecorder
from claimctl.kube.leases import LeaderElection, LeadershipLost
from claimctl.wire.resources import EVENTS, LEASES
from claimctl_reschedule.plan.plan import Plan
from claimctl_reschedule.plan.planning import plan
from claimctl_reschedule.plan.policy import Policy
from claimctl_reschedule.policyfile.reading import check
from claimctl_reschedule.run.loop import Loop, election_settings
from claimctl_reschedule.run.records import Records
from claimctl_reschedule.run.run import Runner
from claimctl_reschedule.run.signs import Signs
from claimctl_reschedule.run.steps import Result
from claimctl_reschedule_tests.e2e.moving import QUICK, evictions, pods, running
from tests.e2e.harness import NAMESPACE, Stage, embedded_stage
from tests.e2e.site import CONTROLLER_NAMESPACE

OPTIONS = ClusterOptions(preset=Preset.RESERVED_FOR_ANY_POD, nodes=3)
SPREAD = check(
    {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "profiles": [{"name": "spread", "plugins": {"balance": {"enabled": ["RemoveDuplicates"]}}}],
    }
).policy


def runner(stage: Stage, policy: Policy = SPREAD) -> Runner:
    client = Client(stage.embedded.transport(), stage.clock)
    events = EventRecorder(client, stage.clock, "claimctl.io/rescheduler", "one")
    return Runner(
        client=client,
        clock=stage.clock,
        policy=policy,
        planner=plan,
        records=Records(client),
        settings=replace(QUICK, max_unavailable=policy.max_unavailable_per_workload),
        signs=Signs(client.telemetry, events),
        rng=Random(0),
    )


async def crowded(stage: Stage) -> None:
    """Six replicas on two nodes: the third was closed when they came."""
    await stage.cordon("node-2")
    await running(stage, replicas=6)
    await stage.cordon("node-2", unschedulable=False)
    # the taint of a cordon goes a moment later
    await stage.clock.sleep(1.0)
    assert await spread(stage) == [3, 3]


async def spread(stage: Stage) -> list[int]:
    """How many pods each node has, the most first."""
    counts = Counter(pod.spec.node_name for pod in await pods(stage) if not pod.metadata.deleting)
    return sorted(counts.values(), reverse=True)


def chosen(made: Plan) -> list[tuple[str, str]]:
    return [(move.pod.name, move.destination) for move in made.moves]


async def test_a_node_that_comes_back_gets_its_share_and_then_nothing_moves() -> None:
    async with embedded_stage(OPTIONS) as stage:
        await crowded(stage)
        report = await runner(stage).run()
        assert report.evicted == 2
        assert await spread(stage) == [2, 2, 2]
        for _ in range(3):
            assert (await runner(stage).run()).steps == []


async def test_a_dry_run_says_what_the_real_run_does() -> None:
    async with embedded_stage(OPTIONS) as stage:
        await crowded(stage)
        before = max(each.number for each in stage.embedded.history())
        dry = await runner(stage).plan()
        asked = await runner(stage).rehearse(dry)
        assert {step.result for step in asked.steps} == {Result.ALLOWED}
        assert evictions(stage) == []
        written = {each.plural for each in stage.embedded.history(before)}
        assert not written & {"pods", "nodes", "reschedulerecords"}
        report = await runner(stage).run()
        assert chosen(report.plan) == chosen(dry)
        assert report.plan.digest == dry.digest
        assert sorted(evictions(stage)) == sorted(move.pod.name for move in dry.moves)
        assert [step.landed for step in report.steps] == [move.destination for move in dry.moves]


async def test_a_run_is_remembered_with_its_outcomes() -> None:
    async with embedded_stage(OPTIONS) as stage:
        await crowded(stage)
        report = await runner(stage).run()
        record = await Records(stage.client).read()
        assert record is not None
        (workload,) = record.status.workloads
        assert workload.kind == "ReplicaSet"
        assert {(each.outcome, each.landed) for each in workload.moves} == {("Landed", "node-2")}
        last = record.status.last_run
        assert last is not None
        assert (last.planned, last.evicted, last.digest) == (2, 2, report.plan.digest)


async def test_a_run_tells_pods_and_owners_by_events() -> None:
    async with embedded_stage(OPTIONS) as stage:
        await crowded(stage)
        process = runner(stage)
        await process.run()
        assert process.signs.events is not None
        await process.signs.events.drain()
        events = (await stage.client.list(EVENTS, NAMESPACE)).items
        kinds = sorted(each.regarding.kind for each in events if each.reason == "Rescheduled")
        assert kinds == ["Pod", "Pod", "ReplicaSet", "ReplicaSet"]


async def test_a_loop_runs_while_it_has_the_lease_and_a_second_one_waits() -> None:
    async with embedded_stage(OPTIONS) as stage:
        await crowded(stage)
        loops = [_loop(stage, name) for name in ("one", "two")]
        tasks = [asyncio.create_task(loop.run()) for loop in loops]
        await stage.until(lambda: _is_spread(stage), "the pods are spread", within=120)
        lease = await stage.client.get(LEASES, "claimctl-rescheduler", CONTROLLER_NAMESPACE)
        assert lease.spec.holder_identity in ("one", "two")
        assert len(evictions(stage)) == 2
        for loop in loops:
            loop.runner.stop.set()
        await asyncio.gather(*tasks)
        lease = await stage.client.get(LEASES, "claimctl-rescheduler", CONTROLLER_NAMESPACE)
        assert not lease.spec.holder_identity


async def test_a_loop_that_loses_its_lease_leaves_no_task_behind() -> None:
    async with embedded_stage(OPTIONS) as stage:
        await crowded(stage)
        task = asyncio.create_task(_loop(stage, "one").run())
        await stage.until(lambda: _is_spread(stage), "the pods are spread", within=120)
        await stage.clock.sleep(5)
        thief = {"spec": {"holderIdentity": "thief"}}
        stage.embedded.admin.patch("leases", CONTROLLER_NAMESPACE, "claimctl-rescheduler", thief)
        with pytest.raises(LeadershipLost):
            await task
        await stage.clock.sleep(1)
        left = [each for each in asyncio.all_tasks() if "Event.wait" in repr(each.get_coro())]
        assert left == []


async def test_a_loop_that_is_a_dry_run_logs_each_move_and_evicts_nothing() -> None:
    async with embedded_stage(OPTIONS) as stage:
        await crowded(stage)
        before = await spread(stage)
        loop = replace(_loop(stage, "one"), dry_run=True)
        with capture_logs() as logs:
            task = asyncio.create_task(loop.run())
            await stage.until(lambda: _has_run(logs, 2), "two runs", within=120)
            loop.runner.stop.set()
            await task
        told = [each for each in logs if each["event"] == "would evict"]
        assert len(told) == 4
        assert told[0].keys() >= {"pod", "strategy", "node", "expected"}
        assert (evictions(stage), await spread(stage)) == ([], before)
        assert await Records(stage.client).read() is None


async def _has_run(logs: list[MutableMapping[str, Any]], times: int) -> bool:
    return [each["event"] for each in logs].count("dry run ended") >= times


def _loop(stage: Stage, name: str) -> Loop:
    process = runner(stage)
    settings = election_settings(CONTROLLER_NAMESPACE)
    election = LeaderElection(process.client, stage.clock, settings, name, rng=Random(name))
    assert process.signs.events is not None
    return Loop(process, election, 30.0, process.signs.events)


async def _is_spread(stage: Stage) -> bool:
    return await spread(stage) == [2, 2, 2]
