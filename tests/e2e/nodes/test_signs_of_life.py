"""Signs of life of a node decide when the device of a force-deleted pod is free."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise

import pytest
from kube_in_process.real.nodes.cluster import NodeCluster

from claimctl.cli.errors import CommandFailed
from claimctl.cli.formats import Output
from claimctl.commands.claims.ended_pods import state_ended
from claimctl.commands.claims.explanation import explain
from claimctl.commands.claims.release_request import ReleaseWanted
from claimctl.reservation.users.ghosts import STOOD_SECONDS, WORK_SECONDS, longest_pause
from claimctl.wire.coordination import renewed_at
from claimctl.wire.pods import Pod
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    LEASES,
    REPLICASETS,
    RESOURCECLAIMS,
)
from tests.e2e import manifests
from tests.e2e.harness import HOLD_136, NAMESPACE, Stage
from tests.e2e.nodes.nodes import calls, hold_deaf_pods, machines, make_deaf, until_unprepared

pytestmark = pytest.mark.cluster(HOLD_136)
OWN_GRACE = 2
LIVING_SECONDS = 60.0
MOST_SECONDS = LIVING_SECONDS + OWN_GRACE
RESTARTED_SECONDS = 60.0
FEW, MANY = 20, 100
RESTART_SECONDS = 1.0
STARTING_SECONDS = 4.0
"""How long a kubelet may take until it renews its Lease first."""
AWAY_SECONDS = 180.0
"""Longer than two renewals, a minute and more after the slices of the driver are withdrawn."""
STOPPED_SECONDS = LIVING_SECONDS + OWN_GRACE + 8.0


async def hold_deaf_workloads(stage: Stage, nodes: Sequence[str]) -> list[Pod]:
    """Hold a claim for each of some Deployments of one pod, which ignores SIGTERM.

    Args:
        nodes: the node of each pod; '' is any.
    """
    await stage.started()
    count = len(nodes)
    names = [f"train-{number}" for number in range(count)]
    for name, node in zip(names, nodes, strict=True):
        await stage.create(RESOURCECLAIMS, manifests.claim(name))
        body = make_deaf(manifests.deployment(name, claim=name), OWN_GRACE)
        if node:
            body["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
        await stage.create(DEPLOYMENTS, body)
        held = manifests.reservation(name, workload=name, claim=name)
        await stage.create(CLAIMRESERVATIONS, held)
    await stage.until_running(count)
    for name in names:
        await stage.until_condition("Reserved", "True", "Reserved", name=name)
    return sorted(await stage.running(), key=claim_of)


def claim_of(pod: Pod) -> str:
    (used,) = pod.spec.resource_claims
    assert used.resource_claim_name
    return used.resource_claim_name


async def end_by_force(stage: Stage, pods: list[Pod]) -> dict[str, float]:
    """Delete the workloads, then their pods by force, some at a time; returns when, by claim.

    Between the two, no ReplicaSet makes new pods, and few pods have begun to end by themselves.
    """
    ended = {}
    for begin in range(0, len(pods), FEW):
        some = pods[begin : begin + FEW]
        for pod in some:
            await stage.delete(DEPLOYMENTS, claim_of(pod))
        for pod in some:
            await stage.site.force_delete(pod.metadata.name)
            ended[claim_of(pod)] = stage.clock.monotonic()
    return ended


async def still_allocated(stage: Stage) -> set[str]:
    claims = (await stage.client.list(RESOURCECLAIMS, NAMESPACE)).items
    return {each.metadata.name for each in claims if each.status.allocation is not None}


@pytest.mark.cluster(replace(HOLD_136, devices_per_node=MANY))
@pytest.mark.parametrize(
    "count",
    [
        pytest.param(FEW, marks=[pytest.mark.core, pytest.mark.long]),
        pytest.param(MANY, marks=[pytest.mark.alone, pytest.mark.long]),
    ],
)
async def test_devices_of_force_deleted_pods_on_living_nodes_are_free_after_60_seconds(
    stage: Stage, count: int
) -> None:
    """The witness of devices says that each was unprepared before."""
    ended = await end_by_force(stage, await hold_deaf_workloads(stage, [""] * count))
    took: dict[str, float] = {}
    while len(took) < count:
        held, now = await still_allocated(stage), stage.clock.monotonic()
        took |= {each: now - ended[each] for each in ended.keys() - held - took.keys()}
        late = {each for each in ended if took.get(each, now - ended[each]) > MOST_SECONDS}
        assert not late, f"{len(late)} of {count} claims are not free in time"
        await stage.site.look_again()
    print(f"{count} devices: free {min(took.values()):.1f} to {max(took.values()):.1f} s after")


@asynccontextmanager
async def kubelets_with(stage: Stage, **settings: object) -> AsyncIterator[None]:
    """Restart the kubelets with other settings, and at the end with the usual ones."""
    cluster = machines(stage).cluster
    usual = [node.kubelet.settings() for node in cluster.nodes]
    try:
        await _restart(cluster, [settings] * cluster.count)
        yield
    finally:
        await _restart(cluster, usual)


async def _restart(cluster: NodeCluster, settings: Sequence[Mapping[str, object]]) -> None:
    for node, wanted in zip(cluster.nodes, settings, strict=True):
        node.kill_kubelet()
        node.kubelet.configure(**wanted)
        node.start_kubelet()
    await asyncio.to_thread(cluster.wait_until_ready)


@dataclass
class Leases:
    """The renewals of the nodes' Leases, by the clocks of the nodes."""

    stage: Stage
    renewed: dict[str, list[datetime]] = field(default_factory=dict)

    async def look(self) -> None:
        for lease in (await self.stage.client.list(LEASES, "kube-node-lease")).items:
            known = self.renewed.setdefault(lease.metadata.name, [])
            if known[-1:] != [at := renewed_at(lease)]:
                known.append(at)

    def pauses(self, node: str) -> list[float]:
        """Seconds between the renewals of a node that were seen."""
        return [(later - at).total_seconds() for at, later in pairwise(self.renewed[node])]


@pytest.mark.alone
@pytest.mark.long
@pytest.mark.parametrize(("lease", "reported"), [(40, "4s"), (40, "2s"), (8, "2s")])
async def test_a_device_is_free_in_time_after_the_time_that_a_kubelet_needs(
    stage: Stage, lease: int, reported: str
) -> None:
    """How often a kubelet reports the status of its node changes nothing.

    The kubelet of the other node is restarted before it has ended its pod: a minute more.
    """
    settings = {"nodeLeaseDurationSeconds": lease, "nodeStatusUpdateFrequency": reported}
    async with kubelets_with(stage, **settings):
        living, restarted = machines(stage).cluster.nodes
        pods = await hold_deaf_workloads(stage, [living.name, restarted.name])
        ended = await end_by_force(stage, pods)
        restarted.kill_kubelet()
        begin = stage.clock.monotonic()
        await stage.clock.sleep(RESTART_SECONDS)
        restarted.start_kubelet()
        leases, took = Leases(stage), dict[str, float]()
        renewal = longest_pause(lease / 4)
        most = WORK_SECONDS + OWN_GRACE + max(2 * renewal, STOOD_SECONDS + renewal)
        while len(took) < len(ended):
            await leases.look()
            held, now = await still_allocated(stage), stage.clock.monotonic()
            took |= {each: now - ended[each] for each in ended.keys() - held - took.keys()}
            first, last = (took.get(claim_of(pod), now - begin) for pod in pods)
            assert first < most, f"renewals every {leases.pauses(living.name)} s"
            assert last < most + RESTARTED_SECONDS + RESTART_SECONDS + STARTING_SECONDS
            await stage.site.look_again()
        pauses = leases.pauses(living.name)
        print(
            f"Lease of {lease} s: free {first:.1f} s after (at most {most:.1f} s), and "
            f"{last:.1f} s where the kubelet was restarted; renewals every {min(pauses):.2f} to "
            f"{max(pauses):.2f} s, and after the restart {leases.pauses(restarted.name)[0]:.2f} s"
        )
        assert lease / 4 * 0.99 < min(pauses)
        assert max(pauses) < longest_pause(lease / 4)


async def lose_with_a_ghost(stage: Stage) -> str:
    """A node whose kubelet is killed, and a force-deleted pod on it that runs on."""
    await stage.started()
    await hold_deaf_pods(stage, 1, OWN_GRACE)
    (pod,) = await stage.running()
    node = pod.spec.node_name
    await machines(stage).lose(node)
    await stage.delete(DEPLOYMENTS, "train")
    # a ReplicaSet that is still there would make another pod, and nothing ends it on this node
    await stage.until(lambda: _no_replica_sets(stage), "no ReplicaSet makes pods")
    await stage.site.force_delete(pod.metadata.name)
    return node


async def _no_replica_sets(stage: Stage) -> bool:
    return not (await stage.client.list(REPLICASETS, NAMESPACE)).items


async def say_off(stage: Stage, node: str) -> int:
    found = await explain(stage.client, NAMESPACE, "slice", stage.clock.now())
    wanted = ReleaseWanted("slice", False, None, Output.TABLE, node_is_off=node)
    return await state_ended(stage.client, found, wanted)


@pytest.mark.alone
@pytest.mark.long
async def test_a_dead_node_keeps_the_device_until_somebody_says_that_it_is_off(
    stage: Stage,
) -> None:
    node = await lose_with_a_ghost(stage)
    await stage.until_condition("Released", "False", "ForceDeletedPods")
    with pytest.raises(CommandFailed, match="is ready"):
        await say_off(stage, node)
    await asyncio.sleep(2 * LIVING_SECONDS)
    assert await stage.allocated()
    found = await explain(stage.client, NAMESPACE, "slice", stage.clock.now())
    (obstacle,) = found.obstacles
    assert f"--node-is-off {node}" in obstacle.message
    await machines(stage).switch_off(node)
    assert await say_off(stage, node) == 0
    await stage.until_released()


@pytest.mark.alone
@pytest.mark.long
async def test_a_kubelet_that_was_restarted_gets_a_minute_more(stage: Stage) -> None:
    """It looks only once a minute for claims that no pod uses."""
    node = await lose_with_a_ghost(stage)
    await machines(stage).recover(node, rebooted=False)
    begin = stage.clock.monotonic()
    await until_unprepared(stage, within=90)
    assert await stage.allocated()
    await stage.until_released(within=LIVING_SECONDS + RESTARTED_SECONDS + OWN_GRACE)
    print(f"free {stage.clock.monotonic() - begin:.1f} s after the kubelet was there again")


@pytest.mark.alone
@pytest.mark.long
async def test_a_stopped_kubelet_hears_of_a_force_deletion_only_when_it_goes_on(
    stage: Stage,
) -> None:
    """The kubelet stops for longer than claimctl waits on a living node, and the claim stays.

    The kubelet is the same process afterwards, not one that was started again.
    """
    await stage.started()
    await hold_deaf_pods(stage, 1, OWN_GRACE)
    (pod,) = await stage.running()
    node = machines(stage).node(pod.spec.node_name)
    stop = asyncio.create_task(machines(stage).stop_kubelet(node.name, STOPPED_SECONDS))
    await stage.delete(DEPLOYMENTS, "train")
    await stage.site.force_delete(pod.metadata.name)
    containers = node.containerd.running()
    await stop
    begin = stage.clock.monotonic()
    assert node.containerd.running() == containers
    assert await stage.allocated()
    await until_unprepared(stage, within=90)
    unprepared = stage.clock.monotonic() - begin
    assert await stage.allocated()
    await stage.until_released(within=2 * LIVING_SECONDS + RESTARTED_SECONDS + OWN_GRACE)
    released = stage.clock.monotonic() - begin
    print(f"unprepared {unprepared:.1f} s, free {released:.1f} s after the kubelet went on")


@pytest.mark.alone
@pytest.mark.long
@pytest.mark.parametrize("restarted", [False, True])
async def test_a_device_stays_until_its_driver_is_back_and_has_unprepared_it(
    stage: Stage, restarted: bool
) -> None:
    """The kubelet works, and ends the container; what the driver has prepared stays prepared.

    A kubelet that was started meanwhile asks the driver only once a minute.
    """
    await stage.started()
    await hold_deaf_pods(stage, 1, OWN_GRACE)
    (pod,) = await stage.running()
    driver = machines(stage).driver
    driver.leave()
    await stage.delete(DEPLOYMENTS, "train")
    # a ReplicaSet that is still there would make another pod
    await stage.until(lambda: _no_replica_sets(stage), "no ReplicaSet makes pods")
    await stage.site.force_delete(pod.metadata.name)
    await asyncio.sleep(OWN_GRACE + 3)
    if restarted:
        node = machines(stage).node(pod.spec.node_name)
        node.kill_kubelet()
        node.start_kubelet()
    await asyncio.sleep(AWAY_SECONDS)
    assert await stage.allocated()
    assert not calls(stage, "unprepare")
    found = await explain(stage.client, NAMESPACE, "slice", stage.clock.now())
    (obstacle,) = found.obstacles
    assert f"is away from node {pod.spec.node_name}" in obstacle.message
    driver.come_back()
    begin = stage.clock.monotonic()
    await until_unprepared(stage, within=120)
    unprepared = stage.clock.monotonic() - begin
    assert await stage.allocated()
    await stage.until_released(within=2 * LIVING_SECONDS)
    released = stage.clock.monotonic() - begin
    print(f"unprepared {unprepared:.1f} s, free {released:.1f} s after the driver was back")
