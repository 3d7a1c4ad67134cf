"""Pods that are deleted by force while their containers run on."""

from __future__ import annotations

import pytest

from claimctl.wire.pods import Pod
from claimctl.wire.resources import DEPLOYMENTS, PODS
from tests.e2e.harness import HOLD_136, Stage
from tests.e2e.nodes.nodes import (
    calls,
    hold_deaf_pods,
    machines,
    until_unprepared,
    uses,
)

pytestmark = pytest.mark.cluster(HOLD_136)
GRACE = 20


async def force_delete(stage: Stage, pods: tuple[Pod, ...]) -> None:
    for pod in pods:
        await stage.site.force_delete(pod.metadata.name)


@pytest.mark.core
async def test_a_claim_stays_until_containers_that_ignore_sigterm_are_gone(stage: Stage) -> None:
    """The pods' objects are gone at once, and the device is unprepared seconds later."""
    await stage.started()
    await hold_deaf_pods(stage, 2, 5, forceDeletedPodGraceSeconds=GRACE)
    # before the garbage collector has begun to delete them
    pods = await stage.running()
    await stage.delete(DEPLOYMENTS, "train")
    await force_delete(stage, pods)
    assert calls(stage, "unprepare") == []
    await until_unprepared(stage)
    assert await stage.allocated()
    await stage.until_released()


async def test_a_deployment_goes_on_with_its_device_beside_a_force_deleted_pod(
    stage: Stage,
) -> None:
    """The next pod starts while the containers of the first one run on: no call is needed."""
    await stage.started()
    await hold_deaf_pods(stage, 1, 5, forceDeletedPodGraceSeconds=GRACE)
    before = (await stage.claim()).status.allocation
    (first,) = await stage.running()
    await force_delete(stage, (first,))
    await stage.until_running(1)
    (second,) = await stage.running()
    assert second.metadata.uid != first.metadata.uid
    assert (await stage.claim()).status.allocation == before
    assert len(uses(stage)) == 1


@pytest.mark.alone
@pytest.mark.long
async def test_a_claim_stays_while_its_node_is_cut_off_and_is_free_after_it_is_back(
    stage: Stage,
) -> None:
    """Without its kubelet a node ends no container, however long the object is gone.

    The kubelet that is back looks once a minute for claims that no pod uses any more.
    """
    await stage.started()
    await hold_deaf_pods(stage, 1, 2, forceDeletedPodGraceSeconds=5 * GRACE)
    (pod,) = await stage.running()
    node = machines(stage).node(pod.spec.node_name)
    await machines(stage).lose(node.name)
    await stage.delete(DEPLOYMENTS, "train")
    await stage.site.force_delete(pod.metadata.name)
    assert await stage.gone(PODS, pod.metadata.name)
    containers = node.containerd.running()
    await stage.clock.sleep(5)
    assert node.containerd.running() == containers
    assert await stage.allocated()
    await machines(stage).recover(node.name, rebooted=False)
    await until_unprepared(stage)
    assert await stage.allocated()
    await stage.until_released(within=90)
