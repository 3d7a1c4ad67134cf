"""A restart, a failover or a gap costs no grace where no pod can have vanished unnoticed.

The witness judges each run: a pod that vanished counts for its grace, whoever was there to see it.
"""

from __future__ import annotations

import pytest

from claimctl.wire.resources import CLAIMRESERVATIONS, DEPLOYMENTS, RESOURCECLAIMTEMPLATES
from tests.e2e import manifests
from tests.e2e.harness import HOLD_134, HOLD_136, NATIVE, Stage
from tests.e2e.unreliable_transport import UnreliableTransport

pytestmark = [pytest.mark.cluster(HOLD_136), pytest.mark.long]

one_by_one = pytest.mark.parametrize("options", [HOLD_134, HOLD_136], ids=["1.34", "1.36"])
FOLLOWED = ("pods", "resourceclaims", "claimreservations")
GRACE = 300
SOON = 40.0
"""Seconds within which a release ends that waits for the Lease, and for no grace."""

clusters = pytest.mark.parametrize(
    "options", [NATIVE, HOLD_134, HOLD_136], ids=["native", "1.34", "1.36"]
)


async def leader(stage: Stage) -> UnreliableTransport:
    transport = UnreliableTransport(stage.connect())
    await stage.started("one", transport=transport, checkpoint=True)
    return transport


async def killed(stage: Stage, transport: UnreliableTransport) -> None:
    """The leader is gone from one moment to the next; its Lease stays."""
    transport.cut_off()
    await stage.kill("one")


async def held(stage: Stage, *, pods: int = 2, grace: float = GRACE) -> None:
    """Pods run on a held claim, and the leader has noted a checkpoint since.

    Where the release is to wait for the grace, ``grace`` is shorter on a real cluster.
    """
    await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template())
    await stage.create(DEPLOYMENTS, manifests.deployment(replicas=pods))
    body = manifests.reservation(
        resourceClaimTemplateName="template",
        idleTimeoutSeconds=1,
        forceDeletedPodGraceSeconds=int(grace),
    )
    await stage.create(CLAIMRESERVATIONS, body)
    await stage.until_running(pods)
    await stage.clock.sleep(90)


async def scale(stage: Stage, replicas: int) -> None:
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": replicas}})


async def vanish(stage: Stage, index: int) -> None:
    """Scale to one pod, and force-delete one of the running ones."""
    victim = (await stage.running())[index]
    await scale(stage, 1)
    await stage.site.force_delete(victim.metadata.name)


@clusters
async def test_the_only_controller_is_killed(stage: Stage) -> None:
    transport = await leader(stage)
    await held(stage)
    await killed(stage, transport)
    await stage.started("two", checkpoint=True)
    await scale(stage, 0)
    await stage.until_released(within=SOON)


@clusters
async def test_a_reservation_that_changed_after_the_checkpoint_was_there_before(
    stage: Stage,
) -> None:
    transport = await leader(stage)
    await held(stage)
    await killed(stage, transport)
    for one in await stage.reservations():
        labels = {"metadata": {"labels": {"changed": "later"}}}
        await stage.patch(CLAIMRESERVATIONS, one.metadata.name, labels)
    await stage.started("two", checkpoint=True)
    await scale(stage, 0)
    await stage.until_released(within=SOON)


@clusters
async def test_the_workload_ends_while_no_controller_runs(stage: Stage) -> None:
    transport = await leader(stage)
    await held(stage)
    await killed(stage, transport)
    await scale(stage, 0)
    await stage.clock.sleep(20)
    await stage.started("two", checkpoint=True)
    await stage.until_released(within=SOON)


@clusters
async def test_a_standby_that_started_late_takes_over(stage: Stage) -> None:
    transport = await leader(stage)
    await held(stage)
    stage.manager("two", checkpoint=True)
    await stage.clock.sleep(5)
    await killed(stage, transport)
    await scale(stage, 0)
    await stage.until_released(within=SOON)


@clusters
async def test_a_pod_that_vanishes_while_no_controller_runs_is_a_ghost(stage: Stage) -> None:
    transport = await leader(stage)
    await held(stage, grace=stage.scaled(GRACE))
    await killed(stage, transport)
    await vanish(stage, 0)
    await stage.clock.sleep(20)
    await stage.started("two", checkpoint=True)
    await scale(stage, 0)
    await stage.until_released(within=GRACE * 2)


@clusters
async def test_a_pod_that_comes_and_vanishes_while_no_controller_runs_is_a_ghost(
    stage: Stage,
) -> None:
    transport = await leader(stage)
    await held(stage, pods=1, grace=stage.scaled(GRACE))
    await killed(stage, transport)
    await scale(stage, 2)
    await stage.until_running(2)
    await vanish(stage, -1)
    await stage.clock.sleep(5)
    await stage.started("two", checkpoint=True)
    await scale(stage, 0)
    await stage.until_released(within=GRACE * 2)


async def test_where_the_checkpoint_is_compacted_the_grace_counts(stage: Stage) -> None:
    transport = await leader(stage)
    await held(stage, grace=stage.scaled(GRACE))
    await killed(stage, transport)
    await vanish(stage, 0)
    await stage.clock.sleep(5)
    stage.embedded.store.compact()
    await stage.started("two", checkpoint=True)
    await scale(stage, 0)
    await stage.until_released(within=GRACE * 2)


@pytest.mark.parametrize("options", [HOLD_134, HOLD_136], ids=["1.34", "1.36"])
async def test_a_gap_costs_no_grace_if_the_claim_is_the_same_after_it(stage: Stage) -> None:
    transport = UnreliableTransport(stage.connect())
    await stage.started(transport=transport, leader_elect=False)
    await held(stage)
    for _ in range(3):
        transport.cut_off()
        await stage.clock.sleep(2)
        stage.embedded.store.compact()
        transport.cut = False
        await stage.clock.sleep(60)
    await scale(stage, 0)
    await stage.until_released(within=10)


@clusters
async def test_a_ghost_of_the_last_moment_is_not_lost_with_its_leader(stage: Stage) -> None:
    """The leader has seen it and has not put it on record."""
    transport = await leader(stage)
    await held(stage, grace=stage.scaled(GRACE))
    await vanish(stage, 0)
    await killed(stage, transport)
    await stage.clock.sleep(5)
    await stage.started("two", checkpoint=True)
    await scale(stage, 0)
    await stage.until_released(within=GRACE * 2)


@clusters
async def test_leaders_that_are_killed_one_after_the_other_lose_no_ghost(stage: Stage) -> None:
    """Each begins at a checkpoint, of its own predecessor or of an earlier one."""
    transport = await leader(stage)
    await held(stage, grace=stage.scaled(GRACE))
    await vanish(stage, 0)
    for number in range(3):
        await stage.clock.sleep(20)
        transport.cut_off()
        await stage.kill("one" if number == 0 else f"successor-{number}")
        transport = UnreliableTransport(stage.connect())
        await stage.started(f"successor-{number + 1}", transport, checkpoint=True)
    await scale(stage, 0)
    await stage.until_released(within=GRACE * 2)


def after_a_restart_of_the_server(stage: Stage) -> UnreliableTransport:
    """The connection to a server that was restarted since the checkpoint.

    It still lists the past, and refuses to watch from there on.
    """
    transport = UnreliableTransport(stage.connect())
    transport.forget(FOLLOWED)
    return transport


@one_by_one
async def test_the_api_server_and_the_controller_are_killed(stage: Stage) -> None:
    transport = await leader(stage)
    await held(stage)
    await killed(stage, transport)
    await stage.started("two", after_a_restart_of_the_server(stage), checkpoint=True)
    await scale(stage, 0)
    await stage.until_released(within=SOON)


@clusters
async def test_a_pod_that_vanishes_while_neither_server_nor_controller_runs_is_a_ghost(
    stage: Stage,
) -> None:
    transport = await leader(stage)
    await held(stage, grace=stage.scaled(GRACE))
    await killed(stage, transport)
    await vanish(stage, 0)
    await stage.clock.sleep(5)
    await stage.started("two", after_a_restart_of_the_server(stage), checkpoint=True)
    await scale(stage, 0)
    await stage.until_released(within=GRACE * 2)


@one_by_one
async def test_a_watch_that_is_refused_every_minute_costs_no_grace(stage: Stage) -> None:
    transport = await leader(stage)
    await held(stage)
    for _ in range(3):
        transport.forget()
        transport.cut_off()
        transport.cut = False
        await stage.clock.sleep(60)
    await scale(stage, 0)
    await stage.until_released(within=SOON)


@clusters
async def test_all_replicas_are_replaced_one_after_the_other(stage: Stage) -> None:
    await leader(stage)
    stage.manager("two", checkpoint=True)
    await held(stage)
    for number, old in enumerate(("one", "two")):
        stage.manager(f"upgraded-{number}", checkpoint=True)
        await stage.clock.sleep(5)
        await stage.stop(old)
    await scale(stage, 0)
    await stage.until_released(within=SOON)


@clusters
@pytest.mark.parametrize("age", [0, 30, 150])
async def test_a_standby_of_any_age_takes_over(stage: Stage, age: int) -> None:
    transport = await leader(stage)
    await held(stage)
    stage.manager("two", checkpoint=True)
    await stage.clock.sleep(age)
    await killed(stage, transport)
    await scale(stage, 0)
    await stage.until_released(within=SOON)
