"""A restart, a failover or a gap costs no grace where no pod can have vanished unnoticed.

The witness judges each run: a pod that vanished counts for its grace, whoever was there to see it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from claimctl.kube.errors import KubeError
from claimctl.kube.leases import HistoryLost
from claimctl.wire.resources import CLAIMRESERVATIONS, DEPLOYMENTS, RESOURCECLAIMTEMPLATES
from tests.e2e import manifests
from tests.e2e.harness import HOLD_134, HOLD_136, NATIVE, PODGROUP_136, Stage
from tests.e2e.unreliable_transport import UnreliableTransport

pytestmark = [pytest.mark.cluster(HOLD_136), pytest.mark.long]

ONE_BY_ONE = {"1.36": HOLD_136, "gated": PODGROUP_136}
"""Schedulers list each pod: also where PodGroups are served, as these pods have none."""
one_by_one = pytest.mark.parametrize("options", ONE_BY_ONE.values(), ids=ONE_BY_ONE)
FOLLOWED = ("pods", "resourceclaims", "claimreservations")
GRACE = 300
LONG_GRACE = 900
"""On a real cluster, a tenth of it is longer than the Lease."""
SOON = 40.0
"""Seconds within which a release ends that waits for the Lease, and for no grace."""

clusters = pytest.mark.parametrize(
    "options", [NATIVE, *ONE_BY_ONE.values()], ids=["native", *ONE_BY_ONE]
)
with_and_without_lists = pytest.mark.parametrize(
    "options", [NATIVE, HOLD_136], ids=["native", "1.36"]
)
"""For what costs the grace: whether PodGroups are served then matters only to what costs none."""


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
async def test_a_container_that_is_restarted_in_its_pod_leads_without_waiting(stage: Stage) -> None:
    transport = UnreliableTransport(stage.connect())
    same: dict[str, Any] = {"checkpoint": True, "container": "pod_uid_", "lease_seconds": 3600}
    await stage.started("pod_uid_1", transport, **same)
    await held(stage)
    transport.cut_off()
    await stage.kill("pod_uid_1")
    await stage.started("pod_uid_2", **same)
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


@with_and_without_lists
async def test_a_pod_that_vanishes_while_no_controller_runs_is_a_ghost(stage: Stage) -> None:
    transport = await leader(stage)
    await held(stage, grace=stage.scaled(GRACE))
    await killed(stage, transport)
    await vanish(stage, 0)
    await stage.clock.sleep(20)
    await stage.started("two", checkpoint=True)
    await scale(stage, 0)
    await stage.until_released(within=GRACE * 2)


@with_and_without_lists
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


@one_by_one
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


@with_and_without_lists
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


@with_and_without_lists
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


@with_and_without_lists
async def test_where_the_server_was_restarted_the_grace_counts(stage: Stage) -> None:
    """A restored etcd would look the same to the new controller."""
    transport = await leader(stage)
    # on a real cluster, the Lease of the first one alone takes 30 s
    await held(stage, grace=stage.scaled(LONG_GRACE))
    await killed(stage, transport)
    await stage.started("two", after_a_restart_of_the_server(stage), checkpoint=True)
    await scale(stage, 0)
    await stage.until_condition("Released", "False", "HistoryUnknown")
    await stage.until_released(within=LONG_GRACE * 2)


async def restored(stage: Stage, transports: list[UnreliableTransport], age: float) -> None:
    """A pod comes after the backup, and no object tells of it after the restore."""
    await stage.site.back_up()
    await scale(stage, 2)
    await stage.until_running(2)
    await stage.clock.sleep(age)
    for each in transports:
        each.cut_off()
    await stage.site.restore()


async def scaled_down(stage: Stage) -> None:
    async def scaled() -> bool:
        # a connection to the server of before may still be tried
        with suppress(KubeError):
            await scale(stage, 0)
            return True
        return False

    await stage.until(scaled, "the Deployment is scaled to zero")


async def ends_with_the_grace(stage: Stage) -> None:
    await scaled_down(stage)
    await stage.until_condition("Released", "False", "HistoryUnknown")
    await stage.until_released(within=LONG_GRACE * 2)


@pytest.mark.alone
@with_and_without_lists
async def test_after_a_restore_a_pod_that_no_object_tells_of_has_its_grace(stage: Stage) -> None:
    """The only controller dies with the servers. The Lease comes back, with its checkpoint."""
    transport = await leader(stage)
    await held(stage, pods=1, grace=stage.scaled(LONG_GRACE))
    await restored(stage, [transport], age=5)
    await stage.kill("one")
    await stage.started("two", checkpoint=True)
    await ends_with_the_grace(stage)


@pytest.mark.alone
@with_and_without_lists
async def test_controllers_that_outlive_a_restore_end_and_begin_anew(stage: Stage) -> None:
    transports = [await leader(stage), UnreliableTransport(stage.connect())]
    stage.manager("standby", transport=transports[1], checkpoint=True)
    await held(stage, pods=1, grace=stage.scaled(LONG_GRACE))
    await restored(stage, transports, age=5)
    for each in transports:
        each.cut = False
    for name in ("one", "standby"):
        with pytest.raises(HistoryLost):
            await stage.managers.pop(name)
    await stage.started("two", checkpoint=True)
    await ends_with_the_grace(stage)


@pytest.mark.alone
@with_and_without_lists
async def test_a_controller_that_outlives_a_restore_of_a_moment_knows_the_lost_pods(
    stage: Stage,
) -> None:
    """The Lease was not renewed since the backup. But its watches have brought the pod."""
    transport = await leader(stage)
    await held(stage, pods=1, grace=stage.scaled(LONG_GRACE))
    await restored(stage, [transport], age=0)
    transport.cut = False
    await scaled_down(stage)
    await stage.until_released(within=LONG_GRACE * 2)


@with_and_without_lists
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


@one_by_one
async def test_an_outage_that_costs_the_lease_costs_no_grace(stage: Stage) -> None:
    """The process stays: it knows what it has seen, and the claims are the same after it."""
    transport = await leader(stage)
    await held(stage)
    transport.forget()
    transport.cut_off()
    await stage.clock.sleep(60)
    transport.cut = False
    await stage.clock.sleep(15)
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


@pytest.mark.parametrize(
    ("options", "age"),
    [
        *((HOLD_136, age) for age in (0, 5, 30, 150)),
        *((options, 5) for options in (NATIVE, HOLD_134, PODGROUP_136)),
    ],
)
async def test_a_standby_of_any_age_takes_over(stage: Stage, age: int) -> None:
    transport = await leader(stage)
    await held(stage)
    stage.manager("two", checkpoint=True)
    await stage.clock.sleep(age)
    await killed(stage, transport)
    await scale(stage, 0)
    await stage.until_released(within=SOON)
