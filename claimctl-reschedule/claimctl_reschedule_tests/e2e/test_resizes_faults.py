"""Nothing is evicted in vain for a resize, and no round stays behind: faults and bad moments."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest
from kube_in_process.options import ClusterOptions, Preset
from kube_in_process.storage.requests import Fault, FaultPoint

from claimctl.kube.errors import KubeError
from claimctl.wire.resources import PODS
from claimctl.wire.seams import Query, Response, Transport
from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule_tests.e2e.moving import evictions
from claimctl_reschedule_tests.e2e.rescheduling import BUDGETS, budget, planned, reasons, runner
from claimctl_reschedule_tests.e2e.resizing import (
    cpu_of,
    node_with,
    pod_of,
    refused,
    resize,
    resizes,
    until_cpu,
    until_deferred,
)
from tests.e2e.dying_transport import DyingTransport
from tests.e2e.harness import NAMESPACE, Stage, embedded_stage

OPTIONS = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 36), nodes=2)
NEWER = replace(OPTIONS, kubernetes_version=(1, 37))
POLICY = resizes()
WRITES = 10
"""The writes of a run with two victims: record made and tried, round, two dry runs, two evictions,
memory, memory at the end; and one more, which is never reached."""


async def scene(stage: Stage, high: str = "high") -> None:
    """A pod is to grow by 20 cpus, and two pods of 12 may leave."""
    await node_with(stage, big=(30, high), one=(12, "low"), two=(12, "low"))
    await resize(stage, "big", 54)
    await until_deferred(stage, "big")


def rounds(stage: Stage) -> list[Any]:
    found: list[Any] = []
    for each in stage.embedded.admin.list("reschedulerecords"):
        found += (each.get("status") or {}).get("resizes") or ()
    return found


async def reason(stage: Stage, policy: str = POLICY) -> Ground:
    """Why nobody leaves for the pod."""
    plan = await planned(stage, policy)
    assert plan.moves == ()
    name = (await pod_of(stage, "big")).metadata.name
    return reasons(plan, name)[name]


async def test_a_round_is_noted_before_its_evictions_and_forgotten_once_it_has_helped() -> None:
    async with embedded_stage(OPTIONS) as stage:
        await scene(stage)
        big = await pod_of(stage, "big")
        report = await runner(stage, POLICY).run()
        assert report.evicted == 2
        (noted,) = rounds(stage)
        assert (noted["podUID"], noted["generation"]) == (big.metadata.uid, 2)
        assert len(noted["victims"]) == 2
        history = [each.object() for each in stage.embedded.history()]
        begun = next(
            i for i, each in enumerate(history) if (each.get("status") or {}).get("resizes")
        )
        gone = [i for i, each in enumerate(history) if each["metadata"]["uid"] in noted["victims"]]
        leaving = [i for i in gone if history[i]["metadata"].get("deletionTimestamp")]
        assert begun < min(leaving)
        await until_cpu(stage, "big", 54)
        await runner(stage, POLICY).run()
        assert rounds(stage) == []


@pytest.mark.parametrize("delivered", [True, False], ids=["delivered", "lost"])
@pytest.mark.parametrize("write", range(1, WRITES + 1))
async def test_a_process_that_is_killed_at_any_write_evicts_nobody_in_vain(
    write: int, delivered: bool
) -> None:
    """A successor ends what was begun: two victims in all, and the pod has grown."""
    async with embedded_stage(OPTIONS) as stage:
        await scene(stage)
        killed = DyingTransport(
            stage.embedded.transport(), write, delivered=delivered, concerned=lambda path: True
        )
        killed.arm()
        with suppress(KubeError):
            await runner(stage, POLICY, killed).run()
        assert killed.dead.is_set() == (write < WRITES)
        for _ in range(6):
            await runner(stage, POLICY).run()
            await stage.clock.sleep(6)
        assert len(set(evictions(stage))) == 2
        await until_cpu(stage, "big", 54)
        await runner(stage, POLICY).run()
        assert rounds(stage) == []


async def test_without_a_record_nobody_leaves() -> None:
    async with embedded_stage(OPTIONS) as stage:
        await scene(stage)
        process = runner(stage, POLICY)
        plan = await process.plan()
        name = "reschedulerecords.claimctl.io"
        stage.embedded.admin.delete("customresourcedefinitions", "", name)
        await stage.clock.sleep(5)
        report = await process.execute(plan)
        assert report.evicted == 0
        assert {step.reason for step in report.steps} == {Ground.FAILED}
        assert "without a record" in report.steps[0].detail


async def test_a_node_that_is_gone_costs_no_pod() -> None:
    async with embedded_stage(OPTIONS) as stage:
        await scene(stage)
        process = runner(stage, POLICY)
        plan = await process.plan()
        await stage.site.delete_node(stage.site.nodes[0])
        await stage.until(lambda: _none_runs_there(stage), "the pods of the node are gone")
        report = await process.execute(plan)
        assert (report.evicted, report.failure) == (0, "")
        assert {step.reason for step in report.steps} <= {Ground.CHANGED, Ground.UNIT}
        await runner(stage, POLICY).run()
        assert rounds(stage) == []


async def _none_runs_there(stage: Stage) -> bool:
    found = (await stage.client.list(PODS, NAMESPACE)).items
    return all(pod.spec.node_name != stage.site.nodes[0] for pod in found)


@dataclass
class Between:
    """A connection that lets something happen after the first eviction."""

    inner: Transport
    happens: Callable[[], Awaitable[None]]
    done: bool = False

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        answer = await self.inner.send(method, path, query, headers, body)
        real = b"dryRun" not in (body or b"") and "dryRun" not in dict(query)
        if path.endswith("/eviction") and real and not self.done:
            self.done = True
            await self.happens()
        return answer


async def test_the_second_victim_stays_if_the_resize_fits_after_the_first() -> None:
    """Between the two evictions a third pod has shrunk."""
    async with embedded_stage(OPTIONS) as stage:
        await node_with(stage, big=(20, "high"), one=(12, "low"), two=(12, "low"), mid=(20, "high"))
        await resize(stage, "big", 44)
        await until_deferred(stage, "big")

        async def shrinks() -> None:
            await resize(stage, "mid", 1)
            await stage.clock.sleep(3)

        between = Between(stage.embedded.transport(), shrinks)
        report = await runner(stage, POLICY, between).run()
        assert (len(report.steps), report.evicted, report.failure) == (2, 1, "")
        assert [step.reason for step in report.steps] == [None, Ground.CHANGED]
        assert await cpu_of(stage, "big") == "44"


async def test_a_budget_that_was_spent_meanwhile_costs_no_pod() -> None:
    """All server-side dry runs come before the first eviction."""
    async with embedded_stage(OPTIONS) as stage:
        await scene(stage)
        process = runner(stage, POLICY)
        plan = await process.plan()
        await stage.create(BUDGETS, budget("two", maxUnavailable=0))
        await stage.clock.sleep(3)
        report = await process.execute(plan)
        assert report.evicted == 0
        assert evictions(stage) == []


async def test_a_clock_that_jumps_makes_no_second_round() -> None:
    """The victims go, and the pod still waits: a larger one took the room."""
    async with embedded_stage(OPTIONS) as stage:
        await scene(stage)
        await stage.site.pause("kubelet")
        await runner(stage, POLICY).run()
        assert len(evictions(stage)) == 2
        (noted,) = rounds(stage)
        record = stage.embedded.admin.list("reschedulerecords")[0]
        for since in ("2020-01-01T00:00:00Z", "2040-01-01T00:00:00Z"):
            status = {"resizes": [{**noted, "since": since}]}
            stage.embedded.admin.patch(
                "reschedulerecords", "", record["metadata"]["name"], {"status": status}, "status"
            )
            await runner(stage, POLICY).run()
        assert len(evictions(stage)) == 2


async def test_an_api_server_that_is_away_for_a_while_ends_the_run_without_a_victim() -> None:
    async with embedded_stage(OPTIONS) as stage:
        await scene(stage)
        process = runner(stage, POLICY)
        plan = await process.plan()

        def away(point: FaultPoint) -> Fault | None:
            return Fault(status=503) if point.plural == "reschedulerecords" else None

        stage.embedded.handler.fault = away
        report = await process.execute(plan)
        stage.embedded.handler.fault = None
        assert report.failure
        assert evictions(stage) == []
        assert (await runner(stage, POLICY).run()).evicted == 2


async def test_an_infeasible_resize_costs_no_pod() -> None:
    """Scenario 35. Such a size is refused by the server of 1.36, unless the node shrinks later."""
    async with embedded_stage(OPTIONS) as stage:
        await node_with(stage, big=(30, "high"), one=(12, "low"))
        assert "enough allocatable resources" in await refused(stage, "big", 65)
        await stage.site.pause("kubelet")
        await resize(stage, "big", 60)
        small = {"status": {"allocatable": {"cpu": "50", "memory": "64Gi", "pods": "100"}}}
        await stage.site.patch_node(stage.site.nodes[0], small, "status")
        await stage.site.resume("kubelet")
        await stage.clock.sleep(400)
        plan = await planned(stage, POLICY)
        assert (plan.moves, plan.skipped) == ((), ())


async def test_with_the_gate_the_scheduler_makes_the_room() -> None:
    """Scenario 33: an API server of 1.37 or newer is asked."""
    async with embedded_stage(NEWER) as stage:
        await scene(stage)
        assert len((await planned(stage, POLICY)).moves) == 2
        features = stage.embedded.features
        stage.embedded.switch(replace(features, resize_preemption=True))
        assert await reason(stage) is Ground.SCHEDULER_PREEMPTS
        assert len((await planned(stage, resizes(standBack="Never"))).moves) == 2


async def test_a_policy_can_only_report() -> None:
    async with embedded_stage(OPTIONS) as stage:
        await scene(stage)
        assert await reason(stage, resizes(standBack="Always")) is Ground.LEFT_TO_SCHEDULER
