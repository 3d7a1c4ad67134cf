"""The edge from 1.36 to 1.37: PodGroups go before it and return after it, and no device is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from claimctl.downgrade import plans
from claimctl.downgrade.crossing import OldObjects, read_old_objects
from claimctl.downgrade.records import PlanPhase
from claimctl.wire.reservations import DowngradePlanSpec
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    DOWNGRADEPLANS,
    PODGROUPS,
    PODS,
    RESOURCECLAIMS,
)
from tests.e2e import manifests
from tests.e2e.dying_transport import DyingTransport
from tests.e2e.harness import GROUP_136, NAMESPACE, Stage

pytestmark = [pytest.mark.cluster(GROUP_136), pytest.mark.alone]

HELD = "deployments/train"
SHARED = ("podgroups/train", HELD)
MOST_WRITES = 8
"""At least as many as a preparation takes; one more is tried, which is one without a crash."""


async def reserved(stage: Stage, replicas: int = 3) -> None:
    stage.client.use_version(PODGROUPS.group, "v1alpha2")
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(CLAIMRESERVATIONS, manifests.reservation(idleTimeoutSeconds=3000))
    await stage.create(DEPLOYMENTS, manifests.in_group(manifests.deployment(replicas=replicas)))
    await stage.until_running(replicas)
    await stage.until_listed(*SHARED)


async def prepared(stage: Stage) -> str:
    plan = await plans.begin(stage.client, DowngradePlanSpec(upgrade_to="1.37"))
    return (await plans.follow(stage.client, plan, lambda _: None)).phase


async def old_objects(stage: Stage) -> OldObjects:
    """Those of the scenario. On a real cluster the last scenario's namespace may still be there."""
    found, claim = await read_old_objects(stage.client), await stage.claim()
    ours = [group for group in found.own if group.metadata.namespace == claim.metadata.namespace]
    return replace(found, own=tuple(ours))


async def scale(stage: Stage, replicas: int) -> None:
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": replicas}})


async def upgraded(stage: Stage) -> None:
    """Upgrade all components in place, and restart the controller.

    No server of 1.37 can be had: a real one of 1.36 stays, and its PodGroups return as v1alpha2.
    """
    await stage.stop("first")
    cluster = stage.cluster
    if cluster is not None:
        cluster.switch(replace(cluster.features, version=(1, 37)))
        stage.client.use_version(PODGROUPS.group, "v1beta1")
    await stage.started("second")


async def restored(stage: Stage) -> None:
    """Run the way back until everything has returned, as the command says."""

    async def is_back() -> bool:
        plan = await plans.begin_restore(stage.client, None)
        assert plan is not None
        status = await plans.follow(stage.client, plan, lambda _: None)
        return status.phase == PlanPhase.RESTORED

    await stage.until(is_back, "everything has returned", within=120)
    await plans.end(stage.client)
    assert (await stage.client.list(DOWNGRADEPLANS)).items == ()


async def until_shared(stage: Stage) -> None:
    """The pods that the preparation listed may stay beside the group until they end."""

    async def holds() -> bool:
        return set(SHARED) <= set(await stage.references())

    await stage.until(holds, "the workload and its group are listed")


async def listed_pods(stage: Stage) -> int:
    return sum(name.startswith("pods/") for name in await stage.references())


async def test_a_claim_crosses_while_its_workload_is_scaled_and_its_pods_are_deleted(
    stage: Stage,
) -> None:
    await stage.started("first")
    await reserved(stage)
    before = (await stage.claim()).status.allocation
    assert await prepared(stage) == PlanPhase.PREPARED
    assert await old_objects(stage) == OldObjects()
    assert HELD in await stage.references()
    assert await listed_pods(stage) == 3
    await scale(stage, 5)
    gone = (await stage.running())[0]
    await stage.client.delete(PODS, gone.metadata.name, NAMESPACE)
    await stage.clock.sleep(30)
    assert len(await stage.running()) == 2
    await scale(stage, 0)
    await stage.clock.sleep(60)
    assert await stage.references() == (HELD,)
    await scale(stage, 4)
    await upgraded(stage)
    await stage.clock.sleep(60)
    assert (await stage.client.list(PODGROUPS)).items == ()
    await restored(stage)
    await stage.until_running(4)
    await until_shared(stage)
    assert (await stage.claim()).status.allocation == before


@pytest.mark.parametrize("write", range(1, MOST_WRITES + 2))
async def test_a_preparation_is_finished_after_a_kill_at_any_write(
    stage: Stage, write: int
) -> None:
    transport = DyingTransport(stage.connect(), write)
    await stage.started("dying", transport=transport)
    await reserved(stage)
    before = (await stage.claim()).status.allocation
    transport.arm()
    plan = await plans.begin(stage.client, DowngradePlanSpec(upgrade_to="1.37"))

    async def over() -> bool:
        now = await stage.client.get(DOWNGRADEPLANS, plan.metadata.name)
        return transport.dead.is_set() or now.status.phase == PlanPhase.PREPARED

    await stage.until(over, "the controller dies or is through")
    # a real server may refuse a write that is then repeated
    assert transport.dead.is_set() or write > MOST_WRITES
    assert stage.cluster is None or transport.dead.is_set() == (write <= MOST_WRITES)
    await stage.kill("dying")
    await stage.started("first")
    status = await plans.follow(stage.client, plan, lambda _: None)
    assert status.phase == PlanPhase.PREPARED
    assert await old_objects(stage) == OldObjects()
    assert await listed_pods(stage) == 3
    await upgraded(stage)
    await restored(stage)
    await until_shared(stage)
    assert (await stage.claim()).status.allocation == before
