"""Kubelets refuse pods that their node cannot run, and fail to prepare devices."""

from __future__ import annotations

from typing import Any

import pytest

from .worlds import HOLD, World

pytestmark = pytest.mark.kube_cluster(HOLD)

REFUSED_ON = "kube-in-process/refused-on"


def bound(world: World, name: str, **requests: str) -> None:
    """A pod that no scheduler placed: its node alone decides."""
    container = {"name": "c", "image": "x", "resources": {"requests": requests}}
    world.pod(name, nodeName="node-0", containers=[container])


def annotate(world: World, **annotations: str | None) -> None:
    named = {f"kube-in-process/{key.replace('_', '-')}": x for key, x in annotations.items()}
    world.api.patch("nodes", "", "node-0", {"metadata": {"annotations": named}})


def rejection(world: World, pod: str) -> tuple[Any, ...]:
    status = world.get("pods", pod)["status"]
    return status["phase"], status.get("reason"), status.get("message")


@pytest.mark.parametrize(
    ("resource", "amount", "numbers"),
    [
        ("cpu", "40", "requested: 40000, used: 40000, capacity: 64000"),
        ("memory", "200Gi", "requested: 214748364800, used: 214748364800, capacity: 274877906944"),
    ],
)
async def test_a_pod_that_does_not_fit_beside_the_others_is_rejected(
    world: World, resource: str, amount: str, numbers: str
) -> None:
    for name in ("first", "second"):
        bound(world, name, **{resource: amount})
        await world.passes(1)
    text = f"Node didn't have enough resource: {resource}, {numbers}"
    assert world.get("pods", "first")["status"]["phase"] == "Running"
    assert rejection(world, "second") == (
        "Failed",
        f"OutOf{resource}",
        f"Pod was rejected: {text}",
    )
    assert world.events(f"OutOf{resource}") == [text]


async def test_a_pod_that_ended_leaves_its_room(world: World) -> None:
    bound(world, "first", cpu="40")
    await world.passes(1)
    world.api.delete("pods", "default", "first")
    await world.passes(1)
    bound(world, "second", cpu="40")
    await world.passes(1)
    assert rejection(world, "second") == ("Running", None, None)


async def test_a_node_has_a_largest_number_of_pods(world: World) -> None:
    node = world.get("nodes", "node-0")
    few = {**node["status"], "allocatable": {**node["status"]["allocatable"], "pods": "1"}}
    world.api.update("nodes", {**node, "status": few}, "status")
    for name in ("first", "second"):
        bound(world, name)
        await world.passes(1)
    assert rejection(world, "second")[1] == "OutOfpods"


async def test_a_node_may_refuse_every_pod(world: World) -> None:
    bound(world, "before")
    await world.passes(1)
    annotate(world, refuses="UnexpectedAdmissionError")
    bound(world, "after")
    await world.passes(1)
    assert rejection(world, "after")[:2] == ("Failed", "UnexpectedAdmissionError")
    assert rejection(world, "before")[0] == "Running"
    annotate(world, refuses=None)
    bound(world, "later")
    await world.passes(1)
    assert rejection(world, "later")[0] == "Running"


async def test_a_pod_may_be_refused_on_single_nodes(world: World) -> None:
    where = {"annotations": {REFUSED_ON: "node-0=TopologyAffinityError, node-1"}}
    for name, node in (("one", "node-0"), ("two", "node-1"), ("three", "node-2")):
        world.pod(name, nodeName=node, metadata=where)
    await world.passes(1)
    rejections = [rejection(world, name)[1] for name in ("one", "two", "three")]
    assert rejections == ["TopologyAffinityError", "UnexpectedAdmissionError", None]


async def test_a_pod_whose_devices_cannot_be_prepared_waits_until_they_can(world: World) -> None:
    for node in ("node-1", "node-2"):
        world.cluster.cordon(node)
    annotate(world, prepare_fails="no such device")
    world.claim()
    world.pod("with-claim", "shared")
    world.pod("without")
    await world.passes(2)
    assert rejection(world, "with-claim")[0] == "Pending"
    assert rejection(world, "without")[0] == "Running"
    assert world.events("FailedPrepareDynamicResources") == [
        "Failed to prepare dynamic resources: prepare dynamic resources: no such device"
    ]
    annotate(world, prepare_fails=None)
    await world.passes(90)
    assert rejection(world, "with-claim")[0] == "Running"
