"""Entries that claimctl listed ahead and left behind: taken out, and no pod loses its devices."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, suppress

import pytest

from claimctl.wire.pods import Pod
from claimctl.wire.resources import CLAIMRESERVATIONS, DEPLOYMENTS, RESOURCECLAIMS
from tests.e2e import manifests, orphans
from tests.e2e.harness import HOLD_136, Stage
from tests.e2e.orphans import freed, freeing, judged, outcome_of, using, waiting_ahead

pytestmark = pytest.mark.cluster(HOLD_136)

FREED = [("slice", "ListedAhead", "Freed")]
OPEN = {"example.com/open": "yes"}
"""The label of the nodes for which the pods wait."""


@pytest.fixture
def stage(stage: AbstractAsyncContextManager[Stage]) -> AbstractAsyncContextManager[Stage]:
    return judged(stage)


async def bound(stage: Stage) -> list[Pod]:
    return [pod for pod in await using(stage, "slice") if pod.spec.node_name]


async def open_for_pods(stage: Stage, *nodes: str) -> None:
    for node in nodes:
        await stage.site.patch_node(node, {"metadata": {"labels": OPEN}})


async def begun(stage: Stage) -> None:
    """One pod runs, and two wait whose entries were left behind."""
    await orphans.in_use(stage, replicas=1)
    await waiting_ahead(stage, "slice", OPEN)


async def guarded(stage: Stage) -> None:
    """Wait until the ClaimReservation that adopts the claim stands for the pods in the list."""

    async def holds() -> bool:
        entries = await stage.references()
        return len(entries) == 2 and any(it.startswith("claimreservations/") for it in entries)

    await stage.until(holds, "the ClaimReservation is in the list", within=400)


async def test_the_claim_stays_with_its_running_pod(stage: Stage) -> None:
    await begun(stage)
    (pod,) = await bound(stage)
    assert await freed(stage) == FREED
    assert await stage.references() == (f"pods/{pod.metadata.name}",)
    assert await freed(stage) == []


async def test_pods_of_a_drained_node_run_elsewhere_afterwards(stage: Stage) -> None:
    await begun(stage)
    (pod,) = await bound(stage)
    drained = pod.spec.node_name
    await stage.cordon(drained)
    await stage.delete(DEPLOYMENTS, "slice")
    await stage.until(lambda: _none_bound(stage), "the node is drained")
    await open_for_pods(stage, *stage.site.nodes)
    await stage.quiet(120)
    assert await bound(stage) == []
    assert await stage.allocated()
    assert await freed(stage) == FREED
    await stage.until_running(2)
    assert {pod.spec.node_name for pod in await bound(stage)}.isdisjoint({drained})


async def _none_bound(stage: Stage) -> bool:
    return not await bound(stage)


@pytest.mark.parametrize("later", [0, 20])
async def test_a_pod_that_is_just_being_bound_keeps_its_devices(stage: Stage, later: int) -> None:
    """Its cycle began on the old list, and the running pod ends before it is bound."""
    await begun(stage)
    (pod,) = await bound(stage)
    stage.embedded.slow_scheduler(lambda _: (40.0, 0.0))
    await open_for_pods(stage, pod.spec.node_name)
    run = asyncio.create_task(freeing(stage).run())
    await guarded(stage)
    await stage.clock.sleep(later)
    await stage.delete(DEPLOYMENTS, "slice")
    await stage.until_running(2)
    assert list(map(outcome_of, await run)) == FREED
    assert await stage.allocated()
    names = sorted(f"pods/{pod.metadata.name}" for pod in await bound(stage))
    assert sorted(await stage.references()) == names


async def test_a_controller_takes_them_out_and_waits_for_the_binding_time(stage: Stage) -> None:
    await stage.started()
    await orphans.in_use(stage, replicas=1)
    await waiting_ahead(stage, "slice", OPEN, writer=stage.connect())
    run = asyncio.create_task(freeing(stage).run())
    await guarded(stage)
    begin = stage.clock.monotonic()
    assert list(map(outcome_of, await run)) == FREED
    assert stage.clock.monotonic() - begin >= min(60.0, stage.scaled(150))


async def test_a_reservation_of_a_user_goes_on_with_the_claim(stage: Stage) -> None:
    await stage.started()
    await orphans.in_use(stage, replicas=1)
    await waiting_ahead(stage, "slice", OPEN, writer=stage.connect())
    run = asyncio.create_task(freeing(stage).run())
    await guarded(stage)
    await stage.delete(DEPLOYMENTS, "waiting")
    body = manifests.reservation("slice", workload="slice", claim="slice")
    await stage.create(CLAIMRESERVATIONS, body)
    await stage.until_condition("Reserved", "True", "Reserved", name="slice")
    assert list(map(outcome_of, await run)) == [("slice", "ListedAhead", "NotOrphan")]
    await stage.delete(DEPLOYMENTS, "slice")
    await stage.until_released()


@pytest.mark.parametrize("drained", [False, True], ids=["in use", "drained"])
async def test_another_run_goes_on_where_one_was_cut_off(stage: Stage, *, drained: bool) -> None:
    await begun(stage)
    run = asyncio.create_task(freeing(stage).run())
    await guarded(stage)
    run.cancel()
    with suppress(asyncio.CancelledError):
        await run
    if drained:
        await stage.delete(DEPLOYMENTS, "slice")
        await stage.until(lambda: _none_bound(stage), "no pod runs")
    assert await freed(stage) == FREED
    assert await stage.allocated() is not drained
    assert not any(it.startswith("claimreservations/") for it in await stage.references())


async def test_a_claim_that_is_being_deleted_is_freed_without_a_guard(stage: Stage) -> None:
    await begun(stage)
    await stage.delete(RESOURCECLAIMS, "slice")
    await stage.delete(DEPLOYMENTS, "slice")
    await stage.until(lambda: _none_bound(stage), "no pod runs")
    assert await freed(stage) == [("slice", "DeletedButAllocated", "Freed")]
    await orphans.until_free(stage)
