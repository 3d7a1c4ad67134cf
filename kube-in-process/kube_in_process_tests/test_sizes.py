"""Emulated kubelets admit resizes, let them wait, and give room in their order."""

from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.components.objects import condition

from .worlds import HOLD, World

pytestmark = pytest.mark.kube_cluster(HOLD)


def bound(world: World, name: str, cpu: str, priority: str = "", **more: Any) -> None:
    requests = {"cpu": cpu, "memory": "1Gi"}
    limits = more.pop("limits", {})
    container = {"name": "c", "image": "x", "resources": {"requests": requests, "limits": limits}}
    container |= more.pop("container", {})
    spec: dict[str, Any] = {"nodeName": "node-0", "containers": [container]}
    if priority:
        spec["priorityClassName"] = priority
    world.pod(name, **spec, **more)


def resize(world: World, name: str, **requests: str) -> None:
    patch = {"spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}}
    world.api.patch("pods", "default", name, patch, "resize", kind="strategic")


def allocatable(world: World, cpu: str) -> None:
    node = world.get("nodes", "node-0")
    there = {**node["status"]["allocatable"], "cpu": cpu}
    world.api.update(
        "nodes", {**node, "status": {**node["status"], "allocatable": there}}, "status"
    )


def sizes(world: World, name: str) -> tuple[str, str]:
    """What is allocated and what is actual."""
    status = world.get("pods", name)["status"]["containerStatuses"][0]
    return status["allocatedResources"]["cpu"], status["resources"]["requests"]["cpu"]


def pending(world: World, name: str) -> str:
    waiting = condition(world.get("pods", name), "PodResizePending")
    return str(waiting["reason"]) if waiting else ""


def in_progress(world: World, name: str) -> bool:
    return condition(world.get("pods", name), "PodResizeInProgress") is not None


async def test_a_resize_is_allocated_first_and_actual_a_moment_later(world: World) -> None:
    bound(world, "a", "1")
    await world.passes(1)
    assert sizes(world, "a") == ("1", "1")
    resize(world, "a", cpu="2")
    await world.passes(0.075)
    assert (sizes(world, "a"), in_progress(world, "a")) == (("2", "1"), True)
    await world.passes(1)
    assert (sizes(world, "a"), in_progress(world, "a")) == (("2", "2"), False)
    pod = world.get("pods", "a")
    assert pod["status"]["observedGeneration"] == pod["metadata"]["generation"] == 2


async def test_a_resize_without_room_is_deferred_and_granted_when_a_pod_is_gone(
    world: World,
) -> None:
    bound(world, "a", "40")
    bound(world, "b", "20")
    await world.passes(1)
    resize(world, "a", cpu="50")
    await world.passes(1)
    waiting = condition(world.get("pods", "a"), "PodResizePending")
    assert waiting is not None
    assert (waiting["reason"], waiting["observedGeneration"]) == ("Deferred", 2)
    assert waiting["message"] == (
        "Node didn't have enough resource: cpu, requested: 50000, used: 20000, capacity: 64000"
    )
    assert sizes(world, "a") == ("40", "40")
    world.api.delete("pods", "default", "b")
    await world.passes(1)
    assert (sizes(world, "a"), pending(world, "a")) == (("50", "50"), "")


async def test_a_pod_that_is_being_deleted_takes_its_room_until_it_has_gone(world: World) -> None:
    bound(world, "a", "40")
    bound(world, "b", "20", metadata={"finalizers": ["example.com/x"]})
    await world.passes(1)
    world.cluster.lose_node("node-0")
    world.api.delete("pods", "default", "b")
    resize(world, "a", cpu="50")
    await world.passes(1)
    world.cluster.kubelet.lost.clear()
    resize(world, "a", cpu="51")
    await world.passes(0.075)
    assert pending(world, "a") == "Deferred"


async def test_a_resize_beyond_the_node_is_infeasible_and_not_tried_again(world: World) -> None:
    bound(world, "a", "1")
    await world.passes(1)
    resize(world, "a", cpu="60")
    world.cluster.lose_node("node-0")
    allocatable(world, "50")
    world.cluster.kubelet.lost.clear()
    await world.passes(1)
    assert pending(world, "a") == "Infeasible"
    allocatable(world, "64")
    await world.passes(200)
    assert pending(world, "a") == "Infeasible"
    resize(world, "a", cpu="61")
    await world.passes(1)
    assert (pending(world, "a"), sizes(world, "a")) == ("", ("61", "61"))


async def test_a_resize_that_is_taken_back_waits_no_longer(world: World) -> None:
    bound(world, "a", "40")
    bound(world, "b", "20")
    await world.passes(1)
    resize(world, "a", cpu="50")
    await world.passes(1)
    resize(world, "a", cpu="40")
    await world.passes(1)
    assert (pending(world, "a"), sizes(world, "a")) == ("", ("40", "40"))
    world.api.delete("pods", "default", "b")
    await world.passes(1)
    assert sizes(world, "a") == ("40", "40")


async def test_room_goes_to_the_highest_priority_then_to_the_longest_waiting(world: World) -> None:
    for name, value in (("low", 10), ("high", 1000)):
        body = {"metadata": {"name": name}, "value": value}
        world.api.create("priorityclasses", body)
    bound(world, "filler", "30")
    for name, priority in (("a", "low"), ("b", "low"), ("c", "high")):
        bound(world, name, "10", priority)
    await world.passes(1)
    for name in ("a", "b", "c"):
        resize(world, name, cpu="40")
        await world.passes(2)
    assert [pending(world, name) for name in ("a", "b", "c")] == ["Deferred"] * 3
    world.api.delete("pods", "default", "filler")
    await world.passes(1)
    assert [sizes(world, name)[0] for name in ("a", "b", "c")] == ["10", "10", "40"]
    world.api.delete("pods", "default", "c")
    await world.passes(1)
    assert [sizes(world, name)[0] for name in ("a", "b")] == ["40", "10"]


async def test_a_smaller_resize_behind_a_large_one_gets_what_is_left(world: World) -> None:
    bound(world, "a", "30")
    bound(world, "b", "30")
    await world.passes(1)
    resize(world, "a", cpu="60")
    await world.passes(1)
    resize(world, "b", cpu="33")
    await world.passes(1)
    assert [sizes(world, name)[0] for name in ("a", "b")] == ["30", "33"]


async def test_a_pod_that_shrinks_makes_room_for_another(world: World) -> None:
    bound(world, "a", "40")
    bound(world, "b", "20")
    await world.passes(1)
    resize(world, "a", cpu="50")
    await world.passes(1)
    resize(world, "b", cpu="10")
    await world.passes(1)
    assert [sizes(world, name) for name in ("a", "b")] == [("50", "50"), ("10", "10")]


async def test_a_node_that_grows_makes_room(world: World) -> None:
    bound(world, "a", "40")
    bound(world, "b", "20")
    await world.passes(1)
    resize(world, "a", cpu="50")
    await world.passes(1)
    allocatable(world, "80")
    await world.passes(1)
    assert sizes(world, "a") == ("50", "50")


async def test_a_container_restarts_if_its_policy_says_so(world: World) -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    bound(world, "a", "1", container={"resizePolicy": policy})
    await world.passes(1)
    resize(world, "a", memory="2Gi")
    await world.passes(1)
    status = world.get("pods", "a")["status"]["containerStatuses"][0]
    assert status["restartCount"] == 0
    resize(world, "a", cpu="2")
    await world.passes(1)
    status = world.get("pods", "a")["status"]["containerStatuses"][0]
    assert (status["restartCount"], status["resources"]["requests"]["cpu"]) == (1, "2")


async def test_a_pod_that_is_resized_before_its_kubelet_sees_it_is_admitted_with_the_new_size(
    world: World,
) -> None:
    bound(world, "filler", "40")
    await world.passes(1)
    bound(world, "a", "20")
    resize(world, "a", cpu="30")
    await world.passes(1)
    assert world.get("pods", "a")["status"]["reason"] == "OutOfcpu"
