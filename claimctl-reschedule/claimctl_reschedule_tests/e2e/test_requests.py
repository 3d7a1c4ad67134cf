"""A request to give a held claim up does not outlive its purpose, wherever a run is killed."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from kube_in_process.options import ClusterOptions, Preset
from msgspec.structs import replace

from claimctl.kube.errors import KubeError
from claimctl.wire.resources import CLAIMRESERVATIONS
from claimctl.wire.seams import Transport
from claimctl_reschedule.plan.plan import Plan, Reallocation
from claimctl_reschedule_tests.e2e.moving import (
    critical,
    led_since,
    make_room,
    move,
    plan_of,
    runner,
    running,
    taint_step,
)
from tests.e2e import manifests
from tests.e2e.dying_transport import DyingTransport
from tests.e2e.harness import NAMESPACE, Stage, embedded_stage
from tests.e2e.node_taints import taints

OPTIONS = ClusterOptions(preset=Preset.RESERVED_FOR_ANY_POD, nodes=3)
ASKED = "claimctl.io/reallocate"


async def scene(stage: Stage) -> tuple[Plan, str]:
    """A critical pod gets the node of a pod whose claim is held. Returns the node, too."""
    (pod,) = await running(stage, replicas=1)
    await stage.client.create(CLAIMRESERVATIONS, manifests.reservation(), NAMESPACE)
    node = pod.spec.node_name
    step = await taint_step(stage, node, await critical(stage), "u")
    plan = await plan_of(stage, [move(pod, unit="u", closes=node)], step)
    asked = Reallocation(
        namespace=NAMESPACE,
        reservation="train-slice",
        claim="slice",
        claim_uid="c-1",
        unit="u",
        leader_since=await led_since(stage),
    )
    return replace(plan, reallocations=(asked,)).sealed(), node


async def noted(stage: Stage) -> dict[str, str]:
    found = await stage.client.get(CLAIMRESERVATIONS, "train-slice", NAMESPACE)
    return {key: value for key, value in (found.metadata.annotations or {}).items() if value}


async def _played(stage: Stage, plan: Plan, transport: Transport | None = None) -> None:
    with suppress(KubeError):
        await runner(stage, transport).execute(plan)


async def test_a_request_is_made_for_the_time_of_the_taint() -> None:
    async with embedded_stage(OPTIONS) as stage:
        plan, node = await scene(stage)
        run = asyncio.create_task(_played(stage, plan))
        await stage.clock.sleep(5.0)
        found = await noted(stage)
        assert found == {ASKED: "c-1", f"{ASKED}-for": plan.taints[0].value}
        await make_room(stage, node)
        await run
        assert await noted(stage) == {}


@pytest.mark.parametrize("write", [2, 3])
async def test_a_successor_withdraws_what_a_killed_run_asked_for(write: int) -> None:
    """It dies at its request (after a dry run), or at the eviction. The critical pod waits on."""
    async with embedded_stage(OPTIONS) as stage:
        plan, node = await scene(stage)

        def concerned(path: str) -> bool:
            return "claimreservations" in path or "eviction" in path

        killed = DyingTransport(
            stage.embedded.transport(), write, delivered=True, concerned=concerned
        )
        killed.arm()
        await _played(stage, plan, killed)
        assert killed.dead.is_set()
        await runner(stage).sweep()
        # the taint is still needed, and so is the request
        assert len(await taints(stage)) == 1
        assert (await noted(stage))[ASKED] == "c-1"
        await make_room(stage, node)
        await runner(stage).sweep()
        assert await taints(stage) == []
        assert await noted(stage) == {}


async def test_a_request_of_a_person_stays() -> None:
    async with embedded_stage(OPTIONS) as stage:
        plan, node = await scene(stage)
        await stage.patch(
            CLAIMRESERVATIONS, "train-slice", {"metadata": {"annotations": {ASKED: "c-1"}}}
        )
        run = asyncio.create_task(_played(stage, plan))
        await stage.clock.sleep(5.0)
        await make_room(stage, node)
        await run
        await runner(stage).sweep(everything=True)
        assert await noted(stage) == {ASKED: "c-1"}
