"""Dialect `podgroup`: the controller is killed, runs twice, or lags behind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from claimctl.kube.errors import NotFound
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    JOBS,
    PODGROUPS,
    RESOURCECLAIMS,
)
from tests.e2e import manifests
from tests.e2e.dying_transport import DyingTransport
from tests.e2e.harness import GROUP_136, NAMESPACE, Stage

pytestmark = pytest.mark.cluster(GROUP_136)

RELEASE_WRITES, LIFE_WRITES = 7, 10
"""How many writes a story takes; one more is tried, which is one without a crash."""


async def held(stage: Stage, replicas: int = 3) -> None:
    stage.client.use_version(PODGROUPS.group, "v1alpha2")
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.reservation(idleTimeoutSeconds=1, forceDeletedPodGraceSeconds=30)
    await stage.create(CLAIMRESERVATIONS, body)
    await stage.create(DEPLOYMENTS, manifests.in_group(manifests.deployment(replicas=replicas)))
    await stage.until_running(replicas)
    await stage.until_listed("podgroups/train", "deployments/train")
    await stage.until_condition("Reserved", "True", "Reserved")


async def no_group(stage: Stage) -> bool:
    try:
        await stage.client.get(PODGROUPS, "train", NAMESPACE)
    except NotFound:
        return True
    return False


@pytest.mark.parametrize("write", range(1, RELEASE_WRITES + 2))
async def test_an_idle_release_is_finished_after_a_kill_at_any_write(
    stage: Stage, write: int
) -> None:
    transport = DyingTransport(stage.connect(), write)
    await stage.started("first", transport=transport)
    await held(stage)
    transport.arm()
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})

    async def over() -> bool:
        return transport.dead.is_set() or (await stage.condition("Released"))[0] == "True"

    await stage.until(over, "the controller dies or releases")
    assert stage.cluster is None or transport.dead.is_set() == (write <= RELEASE_WRITES)
    await stage.kill("first")
    await stage.started("second")
    await stage.until_released(within=300)
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 2}})
    await stage.until_running(2)
    await stage.until_listed("podgroups/train", "deployments/train")


@pytest.mark.parametrize("write", range(1, LIFE_WRITES + 2))
async def test_a_whole_life_is_finished_after_a_kill_at_any_write(stage: Stage, write: int) -> None:
    stage.client.use_version(PODGROUPS.group, "v1alpha2")
    transport = DyingTransport(stage.connect(), write)
    await stage.started("first", transport=transport)
    transport.arm()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.job(pods=3, seconds=3, reserve="*")
    await stage.create(JOBS, manifests.in_group(body))

    async def shared() -> bool:
        return transport.dead.is_set() or not await no_group(stage)

    async def over() -> bool:
        return transport.dead.is_set() or await no_group(stage)

    await stage.until(shared, "the controller dies or makes the group")
    await stage.until(over, "the controller dies or all is done", within=400)
    assert stage.cluster is None or transport.dead.is_set() == (write <= LIFE_WRITES)
    await stage.kill("first")
    await stage.started("second")
    await stage.until_released(within=400)
    await stage.until(lambda: no_group(stage), "the group is gone", within=400)


async def test_two_controllers_at_once_do_no_harm(stage: Stage) -> None:
    await stage.started("first", leader_elect=False)
    await stage.started("second", leader_elect=False)
    await held(stage)
    for _ in range(5):
        await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
        await stage.clock.sleep(2.1)
        await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 5}})
        await stage.clock.sleep(1.3)
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until_released()
    await stage.delete(DEPLOYMENTS, "train")
    await stage.until(lambda: no_group(stage), "the group is gone")


@pytest.mark.cluster(replace(GROUP_136, seed=7))
@pytest.mark.parametrize("pause", [1.0, 2.5, 5.0, 6.1, 7.3])
@pytest.mark.parametrize("lag", [0.5, 2.0, 4.5])
async def test_a_scale_up_into_a_release_under_a_lagging_scheduler_strands_nobody(
    stage: Stage, pause: float, lag: float
) -> None:
    await stage.started()
    await held(stage)
    await stage.site.set_lag(lag)
    for _ in range(4):
        await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
        await stage.clock.sleep(pause)
        await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 4}})
        await stage.until_running(4)
        await stage.clock.sleep(3)
    await stage.delete(DEPLOYMENTS, "train")
    await stage.until_released(within=120)
