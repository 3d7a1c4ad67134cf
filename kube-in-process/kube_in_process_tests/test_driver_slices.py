"""What drivers publish: new generations, taints, and slices that go and come."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kube_in_process.components.drivers.driver import Driver
from kube_in_process.habits.habit import Habit
from kube_in_process.habits.publishing import TaintsNoExecute, TaintsNoSchedule

from .worlds import HOLD, World

pytestmark = pytest.mark.kube_cluster(replace(HOLD, nodes=2, devices_per_node=2))

GPU = "gpu.example.com"
NODE = "node-0"
LACKING = "prepare failed: requested device is not allocatable: dev-0"


def driver(world: World) -> Driver:
    return world.cluster.driver(GPU)


def slices(world: World, node: str = NODE) -> list[dict[str, Any]]:
    return [x["spec"] for x in world.api.list("resourceslices") if x["spec"]["nodeName"] == node]


def published(world: World, node: str = NODE) -> list[str]:
    return [device["name"] for spec in slices(world, node) for device in spec.get("devices") or ()]


def pods(world: World, *names: str) -> None:
    for name in names:
        world.pod(name, "shared", nodeSelector={"kubernetes.io/hostname": NODE})


@pytest.mark.parametrize(
    "devices",
    [["dev-1"], ["gpu-0", "gpu-1"], [], [f"part-{number}" for number in range(150)]],
    ids=["fewer", "renamed", "none", "many"],
)
async def test_a_pool_is_published_anew_as_a_whole(world: World, devices: list[str]) -> None:
    world.cluster.driver(GPU).publish(NODE, devices)
    pools = [resource_slice["pool"] for resource_slice in slices(world)]
    assert published(world) == devices
    assert {(x["name"], x["generation"], x["resourceSliceCount"]) for x in pools} == {
        (NODE, 2, len(pools))
    }
    assert published(world, "node-1") == ["dev-0", "dev-1"]
    driver(world).publish(NODE, ["dev-0"])
    assert (published(world), slices(world)[0]["pool"]["generation"]) == (["dev-0"], 3)


async def test_a_device_that_is_only_named_keeps_its_attributes(world: World) -> None:
    large = {"name": "dev-0", "attributes": {"model": {"string": "large"}}}
    driver(world).publish(NODE, [large, "dev-1"])
    driver(world).publish(NODE, ["dev-0"])
    assert slices(world)[0]["devices"] == [large]


async def test_another_driver_may_publish_devices_too(world: World) -> None:
    world.cluster.driver("dra.net").publish(NODE, ["dra0"])
    assert [resource_slice["driver"] for resource_slice in slices(world)] == ["dra.net", GPU]


async def test_slices_are_withdrawn_when_the_driver_was_away_for_half_a_minute(
    world: World,
) -> None:
    driver(world).leave()
    await world.passes(29)
    assert published(world) == ["dev-0", "dev-1"]
    await world.passes(2)
    assert (slices(world), slices(world, "node-1")) == ([], [])
    driver(world).come_back()
    assert (published(world), published(world, "node-1")) == (["dev-0", "dev-1"],) * 2


async def test_a_driver_that_is_away_shortly_withdraws_nothing(world: World) -> None:
    driver(world).leave()
    await world.passes(20)
    driver(world).come_back()
    await world.passes(5)
    driver(world).leave()
    await world.passes(25)
    assert published(world) == ["dev-0", "dev-1"]
    await world.passes(6)
    assert slices(world) == []


async def test_a_driver_may_be_away_from_one_node(world: World) -> None:
    driver(world).leave(NODE)
    await world.passes(31)
    assert (published(world), published(world, "node-1")) == ([], ["dev-0", "dev-1"])
    driver(world).come_back(NODE)
    assert published(world) == ["dev-0", "dev-1"]


@pytest.mark.parametrize(
    ("before", "after", "left"),
    [(5, 0, ["dev-0", "dev-1"]), (5, 40, []), (40, 0, [])],
    ids=["soon", "soon, away for long", "late"],
)
async def test_a_driver_comes_back_with_other_devices(
    world: World, before: int, after: int, left: list[str]
) -> None:
    driver(world).leave()
    await world.passes(before)
    driver(world).publish(NODE, ["dev-1"])
    await world.passes(after)
    assert published(world) == left
    driver(world).come_back()
    pool = {"name": NODE, "generation": 2, "resourceSliceCount": 1}
    assert (published(world), slices(world)[0]["pool"]) == (["dev-1"], pool)


async def test_a_restarted_kubelet_takes_the_slices_away_for_13_seconds(world: World) -> None:
    world.claim()
    pods(world, "p1")
    await world.passes(1)
    world.cluster.restart_kubelet(NODE, 2.0)
    await world.passes(1.5)
    assert published(world) == ["dev-0", "dev-1"]
    await world.passes(13)
    assert (slices(world), published(world, "node-1")) == ([], ["dev-0", "dev-1"])
    assert (world.phases(), world.allocated()) == (["Running"], True)
    await world.passes(1)
    assert (published(world), slices(world)[0]["pool"]["generation"]) == (["dev-0", "dev-1"], 1)
    assert [call.verb for call in driver(world).calls] == ["prepare"]


async def test_a_kubelet_that_starts_twice_takes_the_slices_away_for_longer(world: World) -> None:
    world.cluster.restart_kubelet(NODE, 0.0)
    await world.passes(5)
    world.cluster.restart_kubelet(NODE, 0.0)
    await world.passes(12.5)
    assert slices(world) == []
    await world.passes(1)
    assert published(world) == ["dev-0", "dev-1"]


async def test_only_a_kubelet_that_starts_takes_the_slices_away(world: World) -> None:
    """One that was cut off ran on; a reboot is a start. The slices of a start are new objects."""
    (before,) = objects(world)
    world.cluster.lose_node(NODE)
    world.cluster.restore_node(NODE)
    await world.passes(1)
    assert objects(world) == [before]
    world.cluster.lose_node(NODE)
    world.cluster.reboot_node(NODE)
    await world.passes(1)
    assert objects(world) == []
    await world.passes(13)
    (after,) = objects(world)
    assert after["spec"] == before["spec"]
    assert after["metadata"]["uid"] != before["metadata"]["uid"]


def objects(world: World) -> list[dict[str, Any]]:
    resource_slices = world.api.list("resourceslices")
    return [
        resource_slice
        for resource_slice in resource_slices
        if resource_slice["spec"]["nodeName"] == NODE
    ]


async def test_a_driver_prepares_while_its_slices_are_withdrawn(world: World) -> None:
    await allocated_before_the_kubelet_starts(world)
    driver(world).withdraw(NODE)
    world.cluster.resume("kubelet")
    await world.passes(1)
    assert (world.phases(), slices(world)) == (["Running"], [])


async def test_a_driver_knows_what_it_does_not_have_also_while_its_slices_are_withdrawn(
    world: World,
) -> None:
    await allocated_before_the_kubelet_starts(world)
    driver(world).publish(NODE, ["dev-1"])
    driver(world).withdraw(NODE)
    world.cluster.resume("kubelet")
    await world.passes(1)
    assert [call.error for call in driver(world).calls] == [LACKING]


async def test_only_the_newest_generation_counts(world: World) -> None:
    await allocated_before_the_kubelet_starts(world)
    pool = {"name": NODE, "generation": 2, "resourceSliceCount": 1}
    spec = {"driver": GPU, "nodeName": NODE, "pool": pool, "devices": [{"name": "dev-1"}]}
    world.create("resourceslices", "newer", spec)
    world.cluster.resume("kubelet")
    await world.passes(1)
    assert [call.error for call in driver(world).calls] == [LACKING]


async def allocated_before_the_kubelet_starts(world: World) -> None:
    """A pod is bound, its claim has dev-0, and the kubelet is down."""
    world.claim()
    world.cluster.pause("kubelet")
    pods(world, "p1")
    await world.passes(1)
    assert world.devices() == ["node-0/dev-0"]


@pytest.mark.parametrize("habit", [TaintsNoSchedule, TaintsNoExecute])
async def test_a_taint_keeps_the_next_claim_off_a_device(world: World, habit: type[Habit]) -> None:
    driver(world).take_up(habit(node=NODE))
    world.claim()
    pods(world, "p1")
    await world.passes(1)
    assert (world.devices(), slices(world)[0]["pool"]["generation"]) == (["node-0/dev-1"], 1)
    driver(world).drop(habit.name)
    assert slices(world)[0]["devices"] == [{"name": "dev-0"}, {"name": "dev-1"}]


@pytest.mark.parametrize(("habit", "left"), [(TaintsNoSchedule, 1), (TaintsNoExecute, 0)])
async def test_a_noexecute_taint_evicts_the_pods_of_the_device(
    world: World, habit: type[Habit], left: int
) -> None:
    world.claim()
    pods(world, "p1")
    await world.passes(1)
    driver(world).take_up(habit())
    await world.passes(2)
    assert len(world.pods()) == left


async def test_a_driver_may_hide_the_devices_in_use(world: World) -> None:
    driver(world).take_up("hides-used-devices")
    world.claim()
    pods(world, "p1", "p2")
    await world.passes(1)
    assert (world.devices(), published(world)) == (["node-0/dev-0"], ["dev-1"])
    driver(world).take_up("taints-no-schedule")
    driver(world).publish(NODE, ["dev-0", "dev-1", "dev-2"])
    assert published(world) == ["dev-1", "dev-2"]
    for name in ("p1", "p2"):
        world.api.delete("pods", "default", name)
    await world.passes(1)
    (hidden,) = slices(world)
    assert [device["name"] for device in hidden["devices"]] == ["dev-0", "dev-1", "dev-2"]
    assert [taint["value"] for taint in hidden["devices"][0]["taints"]] == ["79"]


async def test_a_hidden_device_is_prepared_again(world: World) -> None:
    """It is not published, and still the driver has it."""
    driver(world).take_up("hides-used-devices")
    world.claim()
    pods(world, "p1")
    await world.passes(1)
    world.cluster.lose_node(NODE)
    world.cluster.reboot_node(NODE)
    await world.passes(1)
    assert [(call.verb, call.error) for call in driver(world).calls] == [("prepare", "")] * 2
