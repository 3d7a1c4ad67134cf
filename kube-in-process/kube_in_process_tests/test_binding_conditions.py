"""Devices with binding conditions: how long the scheduler waits, for what, and what it gives up.

Seen on 1.36.2 with default gates, where all of it is the same but for the pauses between tries.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kube_in_process.components.scheduler.readiness import BINDING_SECONDS
from kube_in_process.storage.requests import Fault, FaultPoint

from .fabric import FAILED, READY, SLOW, Fabric
from .worlds import HOLD, WORKLOAD, Object, World, world

TWO_NODES = replace(HOLD, nodes=2, devices_per_node=1)
pytestmark = pytest.mark.kube_cluster(TWO_NODES)
NODE_0 = {"nodeSelectorTerms": [{"matchFields": [
    {"key": "metadata.name", "operator": "In", "values": ["node-0"]}]}]}  # fmt: skip
ON_1 = {"kubernetes.io/hostname": "node-1"}
PENDING = "BindingConditionsPending"


def fabric(world: World, node: str = "node-0", *devices: str) -> Fabric:
    """A driver with one slow device, or several, and the claim ``slow`` for one of them."""
    drivers = Fabric(world)
    drivers.make_class()
    drivers.publish("pool", node, *(devices or ("a",)))
    claim(world, "slow", drivers.name)
    return drivers


def claim(world: World, name: str, device_class: str) -> None:
    request = {"name": "d", "exactly": {"deviceClassName": device_class}}
    world.claim(name, {"requests": [request]})


def both(world: World, name: str, *claims: str, **spec: Any) -> Object:
    """A pod that uses several claims."""
    uses = [{"name": claim, "resourceClaimName": claim} for claim in claims]
    return world.pod(name, resourceClaims=uses, **spec)


def node(world: World, pod: str) -> str:
    value: str = world.get("pods", pod)["spec"].get("nodeName", "")
    return value


def nominated(world: World, pod: str) -> str:
    value: str = world.get("pods", pod)["status"].get("nominatedNodeName", "")
    return value


async def test_a_pod_is_bound_at_the_next_look_after_its_device_is_ready(world: World) -> None:
    """The claim is allocated and lists the pod meanwhile, and the pod names its node."""
    drivers = fabric(world)
    world.pod("p", "slow")
    await world.passes(12)
    allocation = world.get("resourceclaims", "slow")["status"]["allocation"]
    assert allocation["nodeSelector"] == NODE_0
    assert allocation["allocationTimestamp"]
    [result] = allocation["devices"]["results"]
    assert result["bindingConditions"] == [READY]
    assert result["bindingFailureConditions"] == [FAILED]
    assert world.listed("slow") == ["p"]
    assert (node(world, "p"), nominated(world, "p")) == ("", "node-0")
    assert world.events(PENDING) == ["waiting for binding conditions for device on node node-0"]
    drivers.report("slow", READY, "False")
    await world.passes(6)
    assert node(world, "p") == ""
    drivers.report("slow")
    await world.passes(5.1)
    assert (node(world, "p"), nominated(world, "p")) == ("node-0", "")
    assert world.phases() == ["Running"]


async def test_a_second_pod_of_the_claim_is_listed_and_waits_too(world: World) -> None:
    """A third one, after the report, is bound at once."""
    drivers = fabric(world)
    world.pod("p", "slow")
    await world.passes(3)
    world.pod("q", "slow")
    await world.passes(1)
    assert world.listed("slow") == ["p", "q"]
    assert nominated(world, "q") == "node-0"
    drivers.report("slow")
    await world.passes(5.1)
    world.pod("r", "slow")
    await world.passes(0.5)
    assert [node(world, pod) for pod in "pqr"] == ["node-0"] * 3


async def test_other_pods_are_scheduled_during_the_wait(world: World) -> None:
    fabric(world)
    world.claim()
    world.pod("p", "slow")
    world.pod("other", "shared")
    await world.passes(1)
    assert node(world, "other")


async def test_an_older_condition_stays_until_the_pod_is_bound(world: World) -> None:
    """'Unschedulable' tells nothing of a pod that has a nominated node."""
    drivers = fabric(world)
    world.cluster.cordon("node-0")
    world.pod("p", "slow")
    await world.passes(1)
    world.cluster.cordon("node-0", unschedulable=False)
    await world.passes(20)
    assert world.reason("p").startswith("Unschedulable: ")
    assert nominated(world, "p") == "node-0"
    drivers.report("slow")
    await world.passes(5.1)
    assert world.reason("p") == ""


async def test_the_wait_accepts_any_allocation_and_any_list(world: World) -> None:
    """The pod's other claim is freed and allocated for a pod on another node; nobody lists it."""
    drivers = fabric(world)
    world.claim("other")
    both(world, "p", "slow", "other", nodeSelector={"kubernetes.io/hostname": "node-0"})
    await world.passes(2)
    world.reserve(claim="other")
    drivers.report("slow")
    world.pod("q", "other", nodeSelector=ON_1)
    await world.passes(10)
    assert world.devices("other") == ["node-1/dev-0"]
    assert (node(world, "p"), node(world, "q")) == ("node-0", "node-1")


async def test_a_claim_without_allocation_is_waited_for(world: World) -> None:
    drivers = fabric(world)
    world.claim("other")
    both(world, "p", "other", "slow")
    await world.passes(2)
    stored = world.get("resourceclaims", "other")
    world.api.update("resourceclaims", {**stored, "status": {}}, "status")
    drivers.report("slow")
    await world.passes(60)
    assert (node(world, "p"), nominated(world, "p")) == ("", "node-0")


async def test_a_claim_that_is_gone_ends_the_wait(world: World) -> None:
    fabric(world)
    world.claim("other")
    both(world, "p", "other", "slow")
    await world.passes(2)
    stored = world.get("resourceclaims", "other")
    freed = world.api.update("resourceclaims", {**stored, "status": {}}, "status")
    freed["metadata"].pop("finalizers")
    world.api.update("resourceclaims", freed)
    world.api.delete("resourceclaims", "default", "other")
    await world.passes(5)
    told = 'SchedulerError: running PreBind plugin "DynamicResources": '
    assert world.reason("p") == f'{told}could not find ResourceClaim "default/other"'
    assert nominated(world, "p") == ""
    assert world.listed("slow") == []


async def test_a_failure_frees_the_claim_and_it_is_allocated_anew(world: World) -> None:
    """Unreserve removes the entry, PostFilter deallocates, and the report goes with that."""
    drivers = fabric(world)
    world.pod("p", "slow")
    await world.passes(2)
    first = world.get("resourceclaims", "slow")["status"]["allocation"]
    drivers.report("slow", FAILED)
    await world.passes(3.2)
    told = 'device binding failed: claim=slow, reason=Driver, message="told"'
    assert world.reason("p").endswith(told)
    assert (world.listed("slow"), nominated(world, "p")) == ([], "")
    await world.passes(5)
    status = world.get("resourceclaims", "slow")["status"]
    assert status["allocation"] != first
    assert "devices" not in status
    assert "deallocation of ResourceClaim completed" in world.reason("p")
    assert (world.listed("slow"), nominated(world, "p")) == (["p"], "node-0")


async def test_a_failure_of_a_claim_that_another_reference_holds_is_never_resolved(
    world: World,
) -> None:
    drivers = fabric(world)
    world.pod("p", "slow")
    await world.passes(2)
    listed = world.get("resourceclaims", "slow")["status"]["reservedFor"]
    world.reserve(*listed, WORKLOAD, claim="slow")
    drivers.report("slow", FAILED)
    await world.passes(3600)
    assert world.listed("slow") == ["work"]
    assert "2 resourceclaim not available on the node. still not schedulable" in world.reason("p")


async def test_after_ten_minutes_the_claim_is_given_up(world: World) -> None:
    fabric(world)
    world.pod("p", "slow")
    await world.passes(BINDING_SECONDS - 1)
    assert nominated(world, "p") == "node-0"
    await world.passes(1.5)
    told = "device binding timeout: context deadline exceeded"
    assert world.reason("p").endswith(told)
    assert world.allocated("slow")
    await world.passes(3)
    assert "deallocation of ResourceClaim completed" in world.reason("p")


async def test_a_later_pod_waits_only_until_the_allocation_is_too_old(world: World) -> None:
    """The timeout of a claim counts from its allocation."""
    fabric(world)
    world.pod("p", "slow")
    await world.passes(BINDING_SECONDS - 7)
    world.pod("q", "slow")
    await world.passes(13)
    assert "device binding timeout: claim=slow" in world.told("q")


async def test_an_old_claim_that_is_not_ready_any_more_is_unavailable_at_once(
    world: World,
) -> None:
    drivers = fabric(world)
    world.pod("p", "slow")
    await world.passes(1)
    drivers.report("slow")
    await world.passes(BINDING_SECONDS)
    world.reserve(*world.get("resourceclaims", "slow")["status"]["reservedFor"], WORKLOAD,
                  claim="slow")  # fmt: skip
    drivers.report("slow", READY, "False")
    world.pod("q", "slow")
    await world.passes(1)
    assert world.reason("q").startswith("Unschedulable: 0/2 nodes are available: 2 resourceclaim")
    assert node(world, "p")


async def test_a_pod_that_is_deleted_during_the_wait_leaves_nothing(world: World) -> None:
    fabric(world)
    world.pod("p", "slow")
    await world.passes(2)
    world.api.delete("pods", "default", "p")
    await world.passes(0.5)
    assert not world.allocated("slow")
    await world.passes(10)
    assert world.get("resourceclaims", "slow")["status"] == {}


async def test_a_restarted_scheduler_waits_anew(world: World) -> None:
    drivers = fabric(world)
    world.pod("p", "slow")
    await world.passes(2)
    world.cluster.pause("scheduler")
    drivers.report("slow")
    await world.passes(20)
    assert node(world, "p") == ""
    world.cluster.resume("scheduler")
    await world.passes(1)
    assert node(world, "p") == "node-0"


async def test_devices_of_slices_without_binding_conditions_come_first(world: World) -> None:
    """Only whole slices go last: within a slice, the order of the devices stays."""
    drivers = fabric(world, "node-0", "a")
    drivers.publish("quick", "node-0", "b", fields={})
    world.pod("p", "slow")
    await world.passes(1)
    assert world.devices("slow") == ["quick/b"]
    assert node(world, "p") == "node-0"


@pytest.mark.kube_cluster(replace(TWO_NODES, nodes=1))
async def test_a_device_for_all_nodes_is_bound_to_the_chosen_one_if_it_asks_for_that(
    world: World,
) -> None:
    pool = {"name": "all", "generation": 1, "resourceSliceCount": 1}
    free = {**SLOW, "bindsToNode": None}
    for name, fields in (("bound", SLOW), ("free", free)):
        devices = [{"name": "d", **fields}]
        spec = {"driver": name, "allNodes": True, "pool": pool, "devices": devices}
        world.create("resourceslices", name, spec)
        expression = f'device.driver == "{name}"'
        world.create("deviceclasses", name, {"selectors": [{"cel": {"expression": expression}}]})
        claim(world, name, name)
        world.pod(name, name)
    await world.passes(1)
    selectors = {
        plain: world.get("resourceclaims", plain)["status"]["allocation"].get("nodeSelector")
        for plain in ("bound", "free")
    }
    assert selectors == {"bound": NODE_0, "free": None}


async def test_before_1_36_the_fields_are_dropped_and_nothing_waits() -> None:
    """On 1.34 the gate is off by default. 1.35 nominates pods with claims, 1.34 does not."""
    for version in ((1, 34), (1, 35)):
        async with world(replace(TWO_NODES, kubernetes_version=version)) as w:
            seen: list[str] = []

            def look(point: FaultPoint, w: World = w, seen: list[str] = seen) -> Fault | None:
                if point.subresource == "binding":
                    seen.append(nominated(w, "p"))
                return None

            w.cluster.fault_components(look)
            fabric(w)
            w.pod("p", "slow")
            await w.passes(1)
            assert node(w, "p") == "node-0"
            assert seen == ["" if version == (1, 34) else "node-0"]
            allocation = w.get("resourceclaims", "slow")["status"]["allocation"]
            assert "bindingConditions" not in allocation["devices"]["results"][0]
