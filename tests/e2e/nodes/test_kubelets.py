"""Kubelets, container runtimes and nodes that die, and what is prepared afterwards."""

from __future__ import annotations

import asyncio

import pytest
from kube_in_process.real.nodes.cluster import RealNode

from claimctl.wire.resources import DEPLOYMENTS, EVENTS, RESOURCECLAIMS
from tests.e2e import manifests
from tests.e2e.harness import GROUP_136, HOLD_136, NAMESPACE, Stage
from tests.e2e.nodes.nodes import calls, machines, until_called, uses
from tests.e2e.scenes import hold_for_deployment

pytestmark = [pytest.mark.cluster(HOLD_136), pytest.mark.alone]
GATE = "DRAWorkloadResourceClaims"


async def node_of_the_pod(stage: Stage) -> RealNode:
    (pod,) = await stage.running()
    return machines(stage).node(pod.spec.node_name)


@pytest.mark.core
async def test_a_kubelet_that_is_killed_and_started_again_prepares_nothing_anew(
    stage: Stage,
) -> None:
    await stage.started()
    await hold_for_deployment(stage, 1)
    node = await node_of_the_pod(stage)
    containers = node.containerd.running()
    node.kill_kubelet()
    await stage.clock.sleep(2)
    await machines(stage).recover(node.name, rebooted=False)
    await stage.quiet(5)
    assert node.containerd.running() == containers
    assert [each.verb for each in calls(stage)] == ["prepare"]
    await stage.delete(DEPLOYMENTS, "train")
    await stage.until_released(within=90)


async def test_pods_that_go_while_the_kubelet_is_dead_keep_their_device_until_it_is_back(
    stage: Stage,
) -> None:
    await stage.started()
    await hold_for_deployment(stage, 1)
    node = await node_of_the_pod(stage)
    await machines(stage).lose(node.name)
    await stage.delete(DEPLOYMENTS, "train")
    await stage.quiet(8)
    assert await stage.allocated()
    await machines(stage).recover(node.name, rebooted=False)
    await stage.until_released(within=90)
    assert len(calls(stage, "unprepare")) == 1


async def test_containers_run_on_while_containerd_is_killed(stage: Stage) -> None:
    await stage.started()
    await hold_for_deployment(stage, 1)
    node = await node_of_the_pod(stage)
    containers = node.containerd.running()
    # in this thread: a server ends with the thread that started it
    node.restart_containerd()
    assert node.containerd.running() == containers
    await stage.until_running(1)
    await stage.delete(DEPLOYMENTS, "train")
    await stage.until_released(within=90)
    assert len(uses(stage)) == 1


@pytest.mark.parametrize("rebooted", [False, True], ids=["same-boot", "new-boot"])
async def test_a_node_that_loses_power_and_returns_runs_its_pod_on_the_same_device(
    stage: Stage, rebooted: bool
) -> None:
    """The kubelet knows from its own file that the claim is prepared, and asks for it again."""
    await stage.started()
    await hold_for_deployment(stage, 1)
    before = (await stage.claim()).status.allocation
    node = await node_of_the_pod(stage)
    node.die()
    containers = node.containerd.running()
    assert containers == []
    if rebooted:
        node.boot()
    else:
        node.start_kubelet()
    await asyncio.to_thread(machines(stage).cluster.wait_until_ready)

    async def runs() -> bool:
        return len(node.containerd.running()) == 2

    await stage.until(runs, "sandbox and container run again")
    await stage.until_running(1)
    assert (await stage.claim()).status.allocation == before
    await stage.delete(DEPLOYMENTS, "train")
    await stage.until_released(within=90)


async def test_the_devices_of_a_kubelet_that_was_away_are_published_again(stage: Stage) -> None:
    """A kubelet removes the ResourceSlices of its node when it starts."""
    await stage.started()
    await hold_for_deployment(stage, 1)
    node = await node_of_the_pod(stage)
    await machines(stage).lose(node.name)
    await machines(stage).recover(node.name, rebooted=False)
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await until_called(stage, "unprepare")
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 1}})
    await stage.until_running(1)
    assert len(uses(stage)) == 2


@pytest.mark.cluster(GROUP_136)
async def test_pods_of_a_group_run_on_where_the_gate_goes_off_and_new_ones_are_refused(
    stage: Stage,
) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.in_group(manifests.deployment(replicas=1, reserve="*"))
    await stage.create(DEPLOYMENTS, body)
    await stage.until_running(1)
    await stage.until_listed("podgroups/train", "deployments/train")
    node = await node_of_the_pod(stage)
    containers = node.containerd.running()
    await switch_gate(stage, node, on=False)
    try:
        await stage.quiet(5)
        assert node.containerd.running() == containers
        assert [each.verb for each in calls(stage)] == ["prepare"]
        await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 2}})

        async def refused() -> bool:
            events = (await stage.client.list(EVENTS, NAMESPACE)).items
            return any(each.reason == "FailedPrepareDynamicResources" for each in events)

        await stage.until(refused, "the kubelet refuses the second pod")
    finally:
        await switch_gate(stage, node, on=True)
    await stage.until_running(2)
    assert len(uses(stage)) == 1


async def switch_gate(stage: Stage, node: RealNode, *, on: bool) -> None:
    """Restart a kubelet with the gate of PodGroups on or off."""
    node.kill_kubelet()
    node.kubelet.switch({GATE: on})
    node.start_kubelet()
    await asyncio.to_thread(machines(stage).cluster.wait_until_ready)
