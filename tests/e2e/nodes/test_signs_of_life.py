"""Signs of life of a node decide when the device of a force-deleted pod is free."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from claimctl.cli.errors import CommandFailed
from claimctl.cli.formats import Output
from claimctl.commands.claims.explanation import explain
from claimctl.commands.claims.release_work import ReleaseWanted, state_off
from claimctl.wire.pods import Pod
from claimctl.wire.resources import CLAIMRESERVATIONS, DEPLOYMENTS, REPLICASETS, RESOURCECLAIMS
from tests.e2e import manifests
from tests.e2e.harness import HOLD_136, NAMESPACE, Stage
from tests.e2e.nodes.nodes import hold_deaf_pods, machines, make_deaf, until_unprepared

pytestmark = pytest.mark.cluster(HOLD_136)
OWN_GRACE = 2
LIVING_SECONDS = 35.0
MOST_SECONDS = LIVING_SECONDS + OWN_GRACE
RESTARTED_SECONDS = 60.0
FEW, MANY = 20, 100
STOPPED_SECONDS = LIVING_SECONDS + OWN_GRACE + 8.0


async def hold_deaf_workloads(stage: Stage, count: int) -> list[Pod]:
    """Hold a claim for each of some Deployments of one pod, which ignores SIGTERM."""
    await stage.started()
    names = [f"train-{number}" for number in range(count)]
    for name in names:
        await stage.create(RESOURCECLAIMS, manifests.claim(name))
        body = make_deaf(manifests.deployment(name, claim=name), OWN_GRACE)
        await stage.create(DEPLOYMENTS, body)
        held = manifests.reservation(name, workload=name, claim=name)
        await stage.create(CLAIMRESERVATIONS, held)
    await stage.until_running(count)
    for name in names:
        await stage.until_condition("Reserved", "True", "Reserved", name=name)
    return list(await stage.running())


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
async def test_devices_of_force_deleted_pods_on_living_nodes_are_free_after_35_seconds(
    stage: Stage, count: int
) -> None:
    """The witness of devices says that each was unprepared before."""
    ended = await end_by_force(stage, await hold_deaf_workloads(stage, count))
    took: dict[str, float] = {}
    while len(took) < count:
        held, now = await still_allocated(stage), stage.clock.monotonic()
        took |= {each: now - ended[each] for each in ended.keys() - held - took.keys()}
        late = {each for each in ended if took.get(each, now - ended[each]) > MOST_SECONDS}
        assert not late, f"{len(late)} of {count} claims are not free in time"
        await stage.site.look_again()
    print(f"{count} devices: free {min(took.values()):.1f} to {max(took.values()):.1f} s after")


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
    return await state_off(stage.client, found, wanted)


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
