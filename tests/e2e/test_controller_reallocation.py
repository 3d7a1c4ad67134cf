"""Reallocation: every way in which pods cannot reach the node with the devices any more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from kube_in_process.options import ClusterOptions, Timings

from claimctl.kube.discovery import use_served_versions
from claimctl.wire.meta import find_condition
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import REALLOCATE_ANNOTATION
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    PODS,
    RESOURCECLAIMS,
    RESOURCECLAIMTEMPLATES,
)
from tests.e2e import manifests
from tests.e2e.harness import (
    DEVICE_CLASS,
    HOLD_134,
    HOLD_136,
    NATIVE,
    PODGROUP_136,
    NewStage,
    Stage,
)

GRACE = 20
"""forceDeletedPodGraceSeconds: pods of a lost node are ghosts first."""
TIMINGS = Timings(node_monitor_grace=4.0, pod_eviction=1.0)
CLUSTERS = {
    "native": NATIVE,
    "hold": HOLD_136,
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


HOLD_132 = replace(HOLD_134, kubernetes_version=(1, 32))
SOON = 2.0
"""Seconds from a pod's creation until it runs elsewhere; without claimctl they are the same."""


async def drained(stage: Stage, node: str) -> None:
    """Close the node, and evict its pod."""
    await stage.cordon(node)
    await stage.delete(PODS, (await stage.running())[0].metadata.name)


async def closed_at_0(stage: Stage, node: str) -> None:
    await _scale(stage, 0)
    await stage.cordon(node)
    await _scale(stage, 1)


async def deleted_at_0(stage: Stage, node: str) -> None:
    await _scale(stage, 0)
    await stage.site.delete_node(node)
    await _scale(stage, 1)


@pytest.mark.parametrize(
    "way", [pytest.param(drained, marks=pytest.mark.core), closed_at_0, deleted_at_0]
)
@pytest.mark.parametrize("options", [HOLD_132, HOLD_134, HOLD_136], ids=["1.32", "1.34", "1.36"])
async def test_a_pod_whose_node_is_missing_runs_elsewhere_at_once(
    new_stage: NewStage, options: ClusterOptions, way: Callable[[Stage, str], Awaitable[None]]
) -> None:
    """With the default settings: nothing passes by waiting."""
    async with new_stage(replace(options, nodes=2)) as stage:
        served = await use_served_versions(stage.client)
        await stage.started()
        claim = manifests.claim()
        if served.claims[0] == "v1beta1":
            # this version has no field between a request and its class
            claim["spec"]["devices"]["requests"] = [
                {"name": "gpu", "deviceClassName": DEVICE_CLASS}
            ]
        await stage.create(RESOURCECLAIMS, claim)
        await stage.create(DEPLOYMENTS, manifests.deployment(reserve="*"))
        await stage.until_running(1)
        await stage.until_condition("Reserved", "True", "Reserved")
        node = (await stage.running())[0].spec.node_name
        await way(stage, node)

        async def moved() -> bool:
            return [pod for pod in await stage.running() if pod.spec.node_name != node] != []

        await stage.until(moved, "the pod runs elsewhere", within=60)
        (pod,) = await stage.running()
        seconds = (_started(pod) - _created(pod)).total_seconds()
        print(f"{way.__name__}: it runs elsewhere {seconds:.1f} s after its creation")
        assert seconds <= SOON * stage.site.patience


async def test_an_obstacle_that_passes_costs_no_device(new_stage: NewStage) -> None:
    """The node is not ready for a while, as the taints of the node lifecycle controller say."""
    async with new_stage(replace(HOLD_136, nodes=2)) as stage:
        await stage.started()
        await stage.create(RESOURCECLAIMS, manifests.claim())
        await stage.create(DEPLOYMENTS, manifests.deployment(reserve="*"))
        await stage.until_running(1)
        await stage.until_condition("Reserved", "True", "Reserved")
        node = (await stage.running())[0].spec.node_name
        given = (await stage.claim()).status.allocation
        await _scale(stage, 0)
        key = "node.kubernetes.io/not-ready"
        taints = [{"key": key, "effect": effect} for effect in ("NoSchedule", "NoExecute")]
        await stage.site.patch_node(node, {"spec": {"taints": taints}})
        await _scale(stage, 1)
        await stage.quiet(20)
        await stage.site.patch_node(node, {"spec": {"taints": []}})
        await stage.until_running(1)
        assert (await stage.claim()).status.allocation == given


async def _scale(stage: Stage, replicas: int) -> None:
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": replicas}})

    async def gone() -> bool:
        return not await stage.running()

    if not replicas:
        await stage.until(gone, "the pods are gone")


def _created(pod: Pod) -> datetime:
    assert pod.metadata.creation_timestamp is not None
    return pod.metadata.creation_timestamp


def _started(pod: Pod) -> datetime:
    """When the pod's sandbox was ready."""
    ready = find_condition(pod.status.conditions, "PodReadyToStartContainers")
    assert ready is not None
    assert ready.last_transition_time is not None
    return ready.last_transition_time
