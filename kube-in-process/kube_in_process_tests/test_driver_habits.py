"""The driver of the cluster in a process has the habits that real drivers have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kube_in_process.components.drivers.driver import Driver
from kube_in_process.habits.preparing import FailsToPrepare
from kube_in_process.habits.presence import Away
from kube_in_process.habits.publishing import FewerDevices, TaintsNoSchedule

from .worlds import HOLD, PODGROUP, WORKLOAD, World

pytestmark = pytest.mark.kube_cluster(replace(HOLD, nodes=2, devices_per_node=2))

GPU = "gpu.example.com"
NODE = "node-0"
SHORT = 0.5
"""Seconds in which a pod is certainly started, or stopped."""
SYNC = 91.0
"""Seconds in which a kubelet has certainly looked again at a pod that waits."""


def driver(world: World) -> Driver:
    return world.cluster.driver(GPU)


def pod(world: World, name: str = "p1", **spec: Any) -> None:
    world.pod(name, "shared", nodeSelector={"kubernetes.io/hostname": NODE}, **spec)


def delete(world: World, name: str = "p1") -> None:
    world.api.delete("pods", "default", name)


def verbs(world: World) -> list[str]:
    return [f"{x.verb}: {x.error}" if x.error else x.verb for x in driver(world).calls]


def published(world: World, node: str = NODE) -> dict[str, int]:
    """The devices of a node, each with the generation of its pool."""
    return {
        device["name"]: resource_slice["spec"]["pool"]["generation"]
        for resource_slice in world.api.list("resourceslices")
        if resource_slice["spec"]["nodeName"] == node
        for device in resource_slice["spec"].get("devices") or ()
    }


def listed(world: World) -> list[dict[str, Any]]:
    references: list[dict[str, Any]] = world.get("resourceclaims", "shared")["status"][
        "reservedFor"
    ]
    return references


def held(world: World) -> None:
    """A workload is listed beside the pods."""
    world.reserve(*listed(world), WORKLOAD)


async def begun(world: World) -> None:
    world.claim()
    pod(world)
    await world.passes(SHORT)


async def test_a_habit_is_taken_up_dropped_and_replaced(world: World) -> None:
    asked = driver(world)
    asked.take_up("wants-one-pod", FailsToPrepare(text="one"))
    asked.take_up(FailsToPrepare(text="two"), Away(node="node-1"))
    assert [habit.name for habit in asked.habits] == ["wants-one-pod", "fails-to-prepare", "away"]
    world.claim()
    pod(world)
    await world.passes(SHORT)
    assert verbs(world) == ["prepare: two"]
    assert (asked.is_registered(NODE), asked.is_registered("node-1")) == (True, False)
    asked.drop("fails-to-prepare")
    assert (asked.has("wants-one-pod"), asked.has("fails-to-prepare")) == (True, False)
    asked.drop()
    assert asked.habits == ()
    assert asked.is_registered("node-1")


async def test_nobody_gets_a_habit_that_is_not_known(world: World) -> None:
    with pytest.raises(ValueError, match="no habit is called 'lazy'"):
        driver(world).take_up("lazy")


async def test_a_driver_that_reads_the_first_reference_needs_the_pod_there(world: World) -> None:
    driver(world).take_up("reads-the-first-reference")
    await begun(world)
    held(world)
    delete(world)
    await world.passes(SHORT)
    pod(world, "p2")
    await world.passes(SHORT)
    assert [pod["name"] for pod in listed(world)] == ["work", "p2"]
    uid = world.get("resourceclaims", "shared")["metadata"]["uid"]
    refused = f"prepare: claim {uid} reservedFor[0] is not a Pod"
    assert verbs(world) == ["prepare", "unprepare", refused]


async def test_a_second_pod_waits_until_the_containers_of_the_first_have_ended(
    world: World,
) -> None:
    driver(world).take_up("refuses-a-second-pod")
    await begun(world)
    pod(world, "p2")
    await world.passes(SHORT)
    assert (world.phases(), verbs(world)) == (["Pending", "Running"], ["prepare"])
    (said,) = world.events("Failed")
    assert "already bound to pod" in said
    delete(world)
    await world.passes(15)
    assert (world.phases(), verbs(world)) == (["Running"], ["prepare"])


async def test_devices_that_are_gone_are_back_without_the_habit(world: World) -> None:
    driver(world).take_up(FewerDevices(node=NODE))
    assert published(world) == {"dev-1": 2}
    assert published(world, "node-1") == {"dev-0": 1, "dev-1": 1}
    driver(world).drop("fewer-devices")
    assert published(world) == {"dev-0": 3, "dev-1": 3}


async def test_a_device_that_went_is_refused(world: World) -> None:
    await begun(world)
    held(world)
    delete(world)
    await world.passes(SHORT)
    driver(world).take_up("fewer-devices")
    pod(world, "p2")
    await world.passes(SHORT)
    lacking = "prepare: prepare failed: requested device is not allocatable: dev-0"
    assert verbs(world)[-1] == lacking
    driver(world).drop()
    await world.passes(SYNC)
    assert verbs(world)[-1] == "prepare"


async def test_renamed_devices_are_other_devices(world: World) -> None:
    driver(world).take_up("renames-devices")
    await begun(world)
    assert published(world) == {"dev-0-full": 2, "dev-1-full": 2}
    assert (world.devices(), world.phases()) == (["node-0/dev-0-full"], ["Running"])


async def test_habits_of_publishing_add_up_while_the_driver_is_away(world: World) -> None:
    await begun(world)
    driver(world).leave()
    driver(world).take_up("hides-used-devices", TaintsNoSchedule(devices=("dev-1",)))
    await world.passes(31)
    assert published(world) == {}
    driver(world).take_up(FewerDevices(gone=("dev-7",)))
    driver(world).come_back()
    assert published(world) == {"dev-1": 1}
    driver(world).drop("hides-used-devices")
    assert published(world) == {"dev-0": 1, "dev-1": 1}


async def test_what_others_have_published_is_not_undone_by_a_habit_that_came_later(
    world: World,
) -> None:
    (slice_,) = [x for x in world.api.list("resourceslices") if x["spec"]["nodeName"] == NODE]
    driver(world).take_up("fewer-devices")
    driver(world).drop("fewer-devices")
    current = world.get("resourceslices", slice_["metadata"]["name"])
    spec = {**current["spec"], "devices": [*current["spec"]["devices"], {"name": "new"}]}
    world.api.update("resourceslices", {**current, "spec": spec})
    driver(world).take_up("taints-no-schedule")
    assert list(published(world)) == ["dev-0", "dev-1", "new"]


NOT_READY = "prepare: prepare devices failed: the daemon of the claim is not ready"
STALE = "prepare: stale prepare for claim default/shared: claim prepare was already aborted"


async def test_a_pod_that_another_entry_names_is_not_refused_for_the_aborted_one(
    world: World,
) -> None:
    driver(world).take_up("remembers-aborted-prepares")
    await begun(world)
    held(world)
    delete(world)
    await world.passes(SHORT)
    pod(world, "p2")
    await world.passes(SHORT)
    assert verbs(world) == [NOT_READY, "unprepare", NOT_READY]
    await world.passes(SYNC)
    assert (world.phases(), verbs(world)[-1]) == (["Running"], "prepare")


@pytest.mark.kube_cluster(replace(PODGROUP, nodes=1, devices_per_node=2))
async def test_the_next_pod_of_a_group_is_refused_for_the_aborted_one(world: World) -> None:
    """The group stays in the list, so the status of the claim is equal."""
    driver(world).take_up("remembers-aborted-prepares")
    world.claim()
    shares = [{"name": "c", "resourceClaimName": "shared"}]
    spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": shares}
    world.create("podgroups", "group", spec)
    pod(world, schedulingGroup={"podGroupName": "group"})
    await world.passes(SHORT)
    delete(world)
    await world.passes(SHORT)
    pod(world, "p2", schedulingGroup={"podGroupName": "group"})
    await world.passes(SHORT)
    assert (world.listed(), verbs(world)) == (["group"], [NOT_READY, "unprepare", STALE])
    await world.passes(3 * SYNC)
    assert (world.phases(), verbs(world)[-1]) == (["Running"], "prepare")


async def test_a_claim_that_was_prepared_before_a_reboot_is_skipped(world: World) -> None:
    driver(world).take_up("skips-checkpointed-claims")
    await begun(world)
    world.cluster.lose_node(NODE)
    world.cluster.reboot_node(NODE)
    await world.passes(SYNC)
    assert driver(world).prepared == []
    assert "claims in PrepareCompleted state are not supported" in verbs(world)[-1]
    delete(world)
    await world.passes(15)
    assert verbs(world)[-1] == "unprepare"


@pytest.mark.parametrize("beside", [False, True], ids=["one entry", "a hold beside the pod"])
async def test_a_claim_with_two_entries_is_not_found_again_at_a_restart(
    world: World, beside: bool
) -> None:
    driver(world).take_up("restores-claims-with-one-entry")
    await begun(world)
    if beside:
        held(world)
    driver(world).leave()
    driver(world).come_back()
    prepared, lost = driver(world).prepared, driver(world).abandoned
    claim = [("default/shared", NODE)]
    assert (prepared, lost) == (([], claim) if beside else (claim, []))
    delete(world)
    await world.passes(SHORT)
    assert verbs(world) == ["prepare", "unprepare"]
    assert driver(world).abandoned == (claim if beside else [])
    pod(world, "p2")
    await world.passes(SHORT)
    assert (driver(world).prepared, driver(world).abandoned) == (claim, [])
