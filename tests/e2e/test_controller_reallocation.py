"""Reallocation: every way in which pods cannot reach the node with the devices any more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from kube_in_process.options import ClusterOptions, Timings

from claimctl.wire.reservations import REALLOCATE_ANNOTATION
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    PODS,
    RESOURCECLAIMTEMPLATES,
)
from tests.e2e import manifests
from tests.e2e.harness import HOLD_134, HOLD_136, NATIVE, PODGROUP_136, NewStage, Stage

GRACE = 20
"""forceDeletedPodGraceSeconds: pods of a lost node are ghosts first."""
TIMINGS = Timings(node_monitor_grace=4.0, pod_eviction=1.0)
CLUSTERS = {
    "native": NATIVE,
    "hold 1.34": HOLD_134,
    "hold 1.36": HOLD_136,
    "podgroup": PODGROUP_136,
}


async def cordoned(stage: Stage, node: str) -> None:
    await stage.cordon(node)


async def tainted(stage: Stage, node: str) -> None:
    """Taint the node, as autoscalers and administrators do before they remove it."""
    taints = [{"key": "example.com/maintenance", "effect": "NoSchedule"}]
    await stage.site.patch_node(node, {"spec": {"taints": taints}})


async def deleted(stage: Stage, node: str) -> None:
    """Switch the node off, then delete it: the fixed grace is too short for one that runs on."""
    await stage.site.switch_off(node)
    await stage.site.delete_node(node)


async def lost(stage: Stage, node: str) -> None:
    await stage.site.lose(node)


@pytest.mark.parametrize("way", [cordoned, tainted, deleted, lost])
@pytest.mark.parametrize("options", CLUSTERS.values(), ids=CLUSTERS)
async def test_pods_whose_devices_cannot_be_reached_get_others(
    new_stage: NewStage, options: ClusterOptions, way: Callable[[Stage, str], Awaitable[None]]
) -> None:
    async with new_stage(replace(options, nodes=2, timings=TIMINGS)) as stage:
        await stage.started()
        await _reserved(stage, shared=options is PODGROUP_136)
        pods = await stage.running()
        node = pods[0].spec.node_name
        await way(stage, node)
        for pod in pods:
            await stage.delete(PODS, pod.metadata.name)

        async def moved() -> bool:
            now = [pod for pod in await stage.running() if pod.spec.node_name != node]
            return len(now) == 2

        await stage.until(moved, "the pods run elsewhere", within=200)
        await stage.until_condition("Reserved", "True", "Reserved")


@pytest.mark.parametrize("options", CLUSTERS.values(), ids=CLUSTERS)
async def test_devices_are_given_up_on_request_and_only_once(
    new_stage: NewStage, options: ClusterOptions
) -> None:
    """The claim's node is closed, and a request stands before its pod is deleted.

    One pod: of two pods of a PodGroup, a real scheduler may bind one on a wrong node (1.36).
    """
    async with new_stage(replace(options, nodes=2, timings=TIMINGS)) as stage:
        await stage.started()
        shared = options is PODGROUP_136
        await _reserved(stage, shared=shared, replicas=1, reallocateTimeoutSeconds=3600)
        node = (await stage.running())[0].spec.node_name
        await tainted(stage, node)
        asked = {REALLOCATE_ANNOTATION: (await stage.claim()).metadata.uid}
        (reservation,) = await stage.reservations()
        name = reservation.metadata.name
        await stage.patch(CLAIMRESERVATIONS, name, {"metadata": {"annotations": asked}})
        await _replaced(stage)

        async def moved() -> bool:
            return [pod for pod in await stage.running() if pod.spec.node_name != node] != []

        await stage.until(moved, "the pod runs elsewhere", within=200)
        await stage.until_condition("Reserved", "True", "Reserved")
        (reservation,) = await stage.reservations()
        assert reservation.metadata.annotation(REALLOCATE_ANNOTATION) is None
        await _replaced(stage)
        await stage.until(moved, "the pod runs on the node that holds its device", within=60)


async def _replaced(stage: Stage) -> None:
    """Delete the running pods, and wait until they are gone."""
    old = {pod.metadata.uid for pod in await stage.running()}
    for pod in await stage.running():
        await stage.delete(PODS, pod.metadata.name)

    async def gone() -> bool:
        return not old & {pod.metadata.uid for pod in await stage.running()}

    await stage.until(gone, "the pods are gone", within=60)


async def _reserved(stage: Stage, *, shared: bool, replicas: int = 2, **spec: Any) -> None:
    values: dict[str, Any] = {
        "resourceClaimTemplateName": "template",
        "reallocateTimeoutSeconds": 5,
        "forceDeletedPodGraceSeconds": GRACE,
        **spec,
    }
    body: dict[str, Any] = manifests.reservation(**values)
    workload = manifests.deployment(replicas=replicas)
    await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template())
    await stage.create(CLAIMRESERVATIONS, body)
    await stage.create(DEPLOYMENTS, manifests.in_group(workload) if shared else workload)
    await stage.until_running(replicas)
    await stage.until_condition("Reserved", "True", "Reserved")
