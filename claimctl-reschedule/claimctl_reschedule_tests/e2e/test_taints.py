"""A taint of claimctl never stays behind, and an administrator's is never touched."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import product
from typing import NamedTuple

import pytest
from kube_in_process.options import ClusterOptions, Preset
from kube_in_process.storage.requests import Fault

from claimctl.kube.errors import KubeError
from claimctl.wire.resources import PODS
from claimctl.wire.seams import Clock
from claimctl.wire.traces import CRITICAL_TAINT
from claimctl_reschedule.plan.plan import Plan
from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule.run.records import Records
from claimctl_reschedule.run.steps import HelpState
from claimctl_reschedule.run.taints import Taints
from claimctl_reschedule.shapes.records import MoveOutcome, RescheduleRecordStatus
from claimctl_reschedule.shapes.scheduling import SchedulingPod
from claimctl_reschedule_tests.e2e.moving import (
    critical,
    evictions,
    make_room,
    move,
    plan_of,
    runner,
    running,
    taint_step,
    until_evicted,
)
from tests.e2e.added_fields import FIELD
from tests.e2e.dying_transport import DyingTransport
from tests.e2e.harness import NAMESPACE, Stage, embedded_stage
from tests.e2e.node_taints import set_taints, taints
from tests.e2e.uninstalling import Remover

OPTIONS = ClusterOptions(preset=Preset.RESERVED_FOR_ANY_POD, nodes=3)
WRITES = 13
"""The writes of the plan below: record made and tried, entry, taint, two dry runs, two evictions,
memory, taint removed, entry removed, memory at the end; and one more, which is never reached."""
LAST = 8
"""The write that evicts the last victim."""
TIMEOUT = 40.0
"""The time after which the plan's taint goes in any case."""


class TaintScene(NamedTuple):
    pod: SchedulingPod
    node: str
    plan: Plan
    victims: set[str]


async def scene(stage: Stage) -> TaintScene:
    """A critical pod gets the node of two victims, which are of two workloads."""
    pods = [*(await running(stage, "one", 1)), *(await running(stage, "two", 1))]
    node = pods[0].spec.node_name
    pod = await critical(stage)
    step = await taint_step(stage, node, pod, "u")
    # the one that is on this node leaves last
    moves = [move(each, unit="u", closes=node) for each in reversed(pods)]
    return TaintScene(
        pod, node, await plan_of(stage, moves, step), {each.metadata.name for each in pods}
    )


async def recorded(stage: Stage) -> RescheduleRecordStatus:
    found = await Records(stage.client).read()
    return found.status if found is not None else RescheduleRecordStatus()


async def test_the_taint_is_there_before_the_evictions_and_goes_when_the_pod_is_bound() -> None:
    async with embedded_stage(OPTIONS) as stage:
        given = await scene(stage)
        run = asyncio.create_task(runner(stage).execute(given.plan))
        await until_evicted(stage)
        value = f"claimctl-{given.pod.metadata.uid}"
        assert await taints(stage) == [(given.node, CRITICAL_TAINT, value)]
        assert [each.pod_uid for each in (await recorded(stage)).taints] == [given.pod.metadata.uid]
        await make_room(stage, given.node)
        report = await run
        assert report.evicted == 2
        assert await taints(stage) == []
        left = await recorded(stage)
        assert (left.taints, left.attempts) == ((), ())
        bound = await stage.client.get(PODS, given.pod.metadata.name, NAMESPACE)
        assert bound.spec.node_name == given.node


async def test_a_process_with_another_record_leaves_a_taint_that_is_needed_and_no_other() -> None:
    """Or else replacements of the victims would take the room again."""
    async with embedded_stage(OPTIONS) as stage:
        given = await scene(stage)
        killed = asyncio.create_task(runner(stage).execute(given.plan))
        await until_evicted(stage)
        before = await taints(stage)
        other = Taints(stage.client, stage.clock, Records(stage.client, "other"))
        assert await other.sweep() == 0
        assert await taints(stage) == before != []
        killed.cancel()
        await asyncio.wait([killed])
        await stage.clock.sleep(TIMEOUT)
        assert await other.sweep() == 1
        assert await taints(stage) == []
        assert (await recorded(stage)).taints == ()


async def test_the_taint_goes_at_its_deadline_and_the_attempt_counts() -> None:
    async with embedded_stage(OPTIONS) as stage:
        given = await scene(stage)
        began = stage.clock.monotonic()
        report = await runner(stage).execute(given.plan)
        assert stage.clock.monotonic() - began >= TIMEOUT
        assert (report.evicted, report.failure) == (2, "")
        assert [help_.result for help_ in report.unhelped] == [HelpState.WAITS]
        assert await taints(stage) == []
        left = await recorded(stage)
        assert left.taints == ()
        (attempts,) = left.attempts
        assert (attempts.pod_uid, attempts.count) == (given.pod.metadata.uid, 1)


async def test_once_the_node_is_open_a_run_waits_for_victims_as_for_other_pods() -> None:
    """Their owner makes no replacements."""
    async with embedded_stage(OPTIONS) as stage:
        given = await scene(stage)
        await stage.site.pause("replicaset-controller")
        began = stage.clock.monotonic()
        run = asyncio.create_task(runner(stage).execute(given.plan))
        await stage.clock.sleep(5.0)
        await make_room(stage, given.node)
        report = await run
        assert stage.clock.monotonic() - began < TIMEOUT
        assert {step.outcome for step in report.steps} == {MoveOutcome.GONE}


@pytest.mark.parametrize("delivered", [True, False], ids=["delivered", "lost"])
@pytest.mark.parametrize("write", range(1, WRITES + 1))
async def test_a_process_that_is_killed_at_any_write_leaves_no_taint(
    write: int, delivered: bool
) -> None:
    async with embedded_stage(OPTIONS) as stage:
        given = await scene(stage)
        killed = DyingTransport(
            stage.embedded.transport(), write, delivered=delivered, concerned=lambda path: True
        )
        killed.arm()
        run = asyncio.create_task(runner(stage, killed).execute(given.plan))
        await stage.clock.sleep(10.0)
        await make_room(stage, given.node)
        with suppress(KubeError):
            await run
        assert killed.dead.is_set() == (write < WRITES)
        assert set(evictions(stage)) <= given.victims
        await _swept(stage, given.plan)
        assert set(evictions(stage)) <= given.victims
        assert await taints(stage) == []
        assert (await recorded(stage)).taints == ()


async def _swept(stage: Stage, plan: Plan) -> None:
    """A successor runs every few seconds until the deadline of the taint is over. It wants to
    finish the plan."""
    for _ in range(10):
        await runner(stage, plan=plan).run()
        await stage.clock.sleep(TIMEOUT / 8)


@pytest.mark.parametrize(
    ("write", "delivered"), [*product(range(1, LAST), (True, False)), (LAST, False)]
)
async def test_a_node_that_a_dead_run_closed_for_nothing_is_open_after_30_seconds(
    write: int, delivered: bool
) -> None:
    """As long as a victim is there. Once all have left, the room is kept for the critical pod."""
    async with embedded_stage(OPTIONS) as stage:
        given = await scene(stage)
        killed = DyingTransport(
            stage.embedded.transport(), write, delivered=delivered, concerned=lambda path: True
        )
        killed.arm()
        with suppress(KubeError):
            await runner(stage, killed).execute(given.plan)
        closed = len(await taints(stage))
        assert closed == (write >= LAST - 1 or (write == LAST - 2 and delivered))
        await stage.clock.sleep(15.0)
        assert await runner(stage).sweep() == 0
        await stage.clock.sleep(15.0)
        assert await runner(stage).sweep() == closed
        assert await taints(stage) == []
        assert (await recorded(stage)).taints == ()
        assert (await recorded(stage)).attempts == ()


async def test_a_run_that_lives_renews_its_entry() -> None:
    """Its victims may not leave for longer: a budget refuses them, or a sweep of another run."""
    async with embedded_stage(OPTIONS) as stage:
        given = await scene(stage)
        refused = True
        stage.embedded.handler.fault = lambda point: (
            Fault(status=429, reason="TooManyRequests")
            if refused and point.subresource == "eviction" and len(evictions(stage)) == 1
            else None
        )
        run = asyncio.create_task(runner(stage).execute(given.plan))
        await stage.clock.sleep(35.0)
        assert len(evictions(stage)) == 1
        assert await runner(stage).sweep() == 0
        refused = False
        await make_room(stage, given.node)
        await run
        assert await taints(stage) == []


@pytest.mark.parametrize("moment", [0.0, 5.0, 15.0], ids=["before", "during", "after"])
async def test_an_administrators_taint_stays_through_everything(moment: float) -> None:
    async with embedded_stage(OPTIONS) as stage:
        given = await scene(stage)
        theirs = {"key": CRITICAL_TAINT, "value": "true", "effect": "NoExecute"}
        other = {"key": "example.com/team", "value": "a", "effect": "NoSchedule"}
        if not moment:
            theirs["effect"] = "NoSchedule"
            await set_taints(stage, given.node, theirs, other)
        run = asyncio.create_task(runner(stage).execute(given.plan))
        await stage.clock.sleep(moment)
        if moment:
            # as an administrator adds taints: the others stay
            node = stage.embedded.admin.get("nodes", "", given.node)
            there = [each for each in node["spec"].get("taints") or () if each["key"] != "x"]
            theirs["key"] = "example.com/critical"
            await set_taints(stage, given.node, *there, other, theirs)
        await make_room(stage, given.node)
        await run
        await _swept(stage, given.plan)
        expected = {
            (given.node, theirs["key"], theirs["value"]),
            (given.node, other["key"], other["value"]),
        }
        assert set(await taints(stage)) == expected
        assert (await recorded(stage)).taints == ()


async def test_the_fields_of_a_taint_that_another_component_set_are_kept() -> None:
    """A write of the list must not lose the fields that claimctl does not know."""
    async with embedded_stage(replace(OPTIONS, added_field=FIELD)) as stage:
        given = await scene(stage)
        dated = {
            "key": "example.com/slow",
            "effect": "PreferNoSchedule",
            "timeAdded": "2026-01-01T00:00:00Z",
            FIELD: "kept",
        }
        await set_taints(stage, given.node, dated)
        run = asyncio.create_task(runner(stage).execute(given.plan))
        await stage.clock.sleep(5.0)
        await make_room(stage, given.node)
        await run
        nodes = [stage.embedded.admin.get("nodes", "", f"node-{number}") for number in range(3)]
        found = [taint for node in nodes for taint in node["spec"].get("taints") or ()]
        assert found == [dated]


@pytest.mark.parametrize("fate", ["deleted", "replaced", "lost node", "deleted node"])
async def test_the_taint_goes_whatever_becomes_of_pod_and_node(fate: str) -> None:
    async with embedded_stage(OPTIONS) as stage:
        given = await scene(stage)
        run = asyncio.create_task(runner(stage).execute(given.plan))
        await until_evicted(stage)
        match fate:
            case "deleted" | "replaced":
                await stage.delete(PODS, given.pod.metadata.name)
                if fate == "replaced":
                    await critical(stage)
            case "lost node":
                await stage.site.lose(given.node)
            case "deleted node":
                await stage.site.lose(given.node)
                await stage.site.delete_node(given.node)
        await run
        own = [each for each in await taints(stage) if each[1] == CRITICAL_TAINT]
        assert own == []
        assert (await recorded(stage)).taints == ()


@dataclass(frozen=True, slots=True)
class Ahead:
    """The clock of another machine: it is never the same time there."""

    clock: Clock

    def now(self) -> datetime:
        return self.clock.now() + timedelta(milliseconds=1)

    def monotonic(self) -> float:
        return self.clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self.clock.sleep(seconds)


async def test_two_processes_work_for_one_pod_once() -> None:
    async with embedded_stage(OPTIONS) as stage:
        given = await scene(stage)
        first, second = runner(stage), runner(stage)
        second.clock = Ahead(stage.clock)
        runs = [asyncio.create_task(each.execute(given.plan)) for each in (first, second)]
        await stage.clock.sleep(5.0)
        await make_room(stage, given.node)
        reports = await asyncio.gather(*runs)
        assert sum(report.evicted for report in reports) == 2
        assert [(report.blocked, report.unhelped) for report in reports] == [([], [])] * 2
        assert await taints(stage) == []
        assert (await recorded(stage)).taints == ()
        assert set(evictions(stage)) == given.victims


async def test_a_sweep_of_another_process_leaves_a_taint_in_use() -> None:
    async with embedded_stage(OPTIONS) as stage:
        given = await scene(stage)
        run = asyncio.create_task(runner(stage).execute(given.plan))
        await until_evicted(stage)
        assert await runner(stage).sweep() == 0
        assert len(await taints(stage)) == 1
        assert await runner(stage).sweep(everything=True) == 1
        assert await taints(stage) == []
        await make_room(stage, given.node)
        await run


async def test_without_the_right_to_patch_nodes_the_other_moves_go_on() -> None:
    async with embedded_stage(OPTIONS) as stage:
        given = await scene(stage)
        (other,) = await running(stage, "other", 1)
        plan = await plan_of(stage, [*given.plan.moves, move(other)], *given.plan.taints)
        stage.embedded.handler.fault = lambda point: (
            Fault(status=403, reason="Forbidden")
            if (point.plural, point.verb) == ("nodes", "patch")
            else None
        )
        report = await runner(stage).execute(plan)
        assert [step.reason for step in report.steps] == [Ground.FAILED, Ground.FAILED, None]
        assert "PATCH /api/v1/nodes" in report.steps[0].detail
        assert (await recorded(stage)).taints == ()


async def test_without_the_crd_no_node_is_tainted() -> None:
    async with embedded_stage(OPTIONS) as stage:
        given = await scene(stage)
        stage.embedded.admin.delete(
            "customresourcedefinitions", "", "reschedulerecords.claimctl.io"
        )
        await stage.clock.sleep(1.0)
        report = await runner(stage).execute(given.plan)
        assert report.evicted == 0
        assert "install" in report.steps[0].detail
        assert await taints(stage) == []


async def test_an_uninstall_takes_the_taints_of_killed_runs_away() -> None:
    async with embedded_stage(OPTIONS) as stage:
        given = await scene(stage)
        theirs = {"key": CRITICAL_TAINT, "value": "true", "effect": "NoExecute"}
        await set_taints(stage, "node-2", theirs)
        run = asyncio.create_task(runner(stage).execute(given.plan))
        await until_evicted(stage)
        run.cancel()
        everywhere = Remover(stage, namespaces=())
        left = await everywhere.look()
        assert (given.node, "Tainted") in {(each.name, each.reason) for each in left.left}
        done = await everywhere.run()
        assert done.left == ()
        assert await taints(stage) == [("node-2", CRITICAL_TAINT, "true")]
