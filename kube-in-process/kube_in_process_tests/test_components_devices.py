"""Structured allocation: which devices a claim gets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kube_in_process.options import Preset

from .worlds import HOLD, WORKLOAD, World

BARE = replace(HOLD, nodes=1, devices_per_node=0)

pytestmark = pytest.mark.kube_cluster(BARE)


def gpu(name: str, model: str, memory: str, numa: int = 0) -> dict[str, Any]:
    return {
        "name": name,
        "attributes": {"model": {"string": model}, "gpu.example.com/numa": {"int": numa}},
        "capacity": {"memory": {"value": memory}},
    }


DEVICES = [
    gpu("small-0", "small", "16Gi", 0),
    gpu("small-1", "small", "16Gi", 1),
    gpu("large-0", "large", "80Gi", 1),
    gpu("large-1", "large", "80Gi", 1),
]


def publish(w: World, devices: list[dict[str, Any]]) -> None:
    spec = {
        "driver": "gpu.example.com",
        "nodeName": "node-0",
        "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1},
        "devices": devices,
    }
    w.create("resourceslices", "slice", spec)


def request(**more: Any) -> dict[str, Any]:
    return {"name": "d", "exactly": {"deviceClassName": "gpu.example.com", **more}}


def selector(expression: str) -> list[dict[str, Any]]:
    return [{"cel": {"expression": expression}}]


LARGE = selector('device.attributes["gpu.example.com"].model == "large"')

CASES = [
    ("the first that is free", {"requests": [request()]}, ["small-0"]),
    ("as many as are asked for", {"requests": [request(count=2)]}, ["small-0", "small-1"]),
    ("by attribute", {"requests": [request(selectors=LARGE)]}, ["large-0"]),
    (
        "by driver and capacity",
        {
            "requests": [
                request(
                    selectors=selector(
                        'device.driver == "gpu.example.com" && '
                        'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0'
                    )
                )
            ]
        },
        ["large-0"],
    ),
    (
        "all that match",
        {"requests": [request(allocationMode="All", selectors=LARGE)]},
        ["large-0", "large-1"],
    ),
    (
        "with an attribute in common",
        {
            "requests": [request(count=3)],
            "constraints": [{"matchAttribute": "gpu.example.com/numa"}],
        },
        ["small-1", "large-0", "large-1"],
    ),
    (
        "the first alternative that can be had",
        {
            "requests": [
                {
                    "name": "d",
                    "firstAvailable": [
                        {
                            "name": "five",
                            "deviceClassName": "gpu.example.com",
                            "allocationMode": "ExactCount",
                            "count": 5,
                        },
                        {
                            "name": "two",
                            "deviceClassName": "gpu.example.com",
                            "allocationMode": "ExactCount",
                            "count": 2,
                            "selectors": LARGE,
                        },
                    ],
                }
            ]
        },
        ["large-0", "large-1"],
    ),
    ("none of too many", {"requests": [request(count=5)]}, None),
    ("none that an unknown attribute selects", {"requests": [request(selectors=selector(
        'device.attributes["gpu.example.com"].nosuch == "large"'))]}, None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "wanted"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
async def test_a_claim_gets(world: World, spec: dict[str, Any], wanted: list[str] | None) -> None:
    publish(world, DEVICES)
    world.claim(spec=spec)
    world.pod("p1", "shared")
    await world.passes(1)
    if wanted is None:
        assert "cannot allocate all claims" in world.reason("p1")
    else:
        assert world.devices() == [f"pool/{device}" for device in wanted]


async def test_a_device_is_given_once_and_a_tainted_one_not_at_all(world: World) -> None:
    tainted = {**DEVICES[0], "taints": [{"key": "broken", "effect": "NoSchedule"}]}
    publish(world, [tainted, *DEVICES[1:3]])
    for index in range(3):
        world.claim(f"c{index}")
        world.pod(f"p{index}", f"c{index}")
    await world.passes(1)
    assert (world.devices("c0"), world.devices("c1")) == (["pool/small-1"], ["pool/large-0"])
    assert "cannot allocate all claims" in world.reason("p2")


MAPPED = {**DEVICES[0], "nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "8"}}}}
OVERHEAD = {**DEVICES[0], "nodeAllocatableResources": {"memory": {"overhead": {"perPod": "1Gi"}}}}
NEWER = replace(BARE, kubernetes_version=(1, 37))
ONE_AFTER_ANOTHER = (
    "node allocatable resource claim shared has a mapped device and cannot be shared across pods"
)


@pytest.mark.parametrize(
    ("options", "device", "takes_turns"),
    [(NEWER, MAPPED, True), (NEWER, OVERHEAD, False), (BARE, MAPPED, False)],
    ids=["mapped", "with overhead", "mapped, 1.36"],
)
async def test_pods_take_turns_with_a_device_that_is_a_part_of_a_nodes_own_resource(
    world: World, device: dict[str, Any], takes_turns: bool
) -> None:
    publish(world, [device])
    world.claim()
    for name in ("p1", "p2"):
        world.pod(name, "shared")
        await world.passes(1)
    assert (ONE_AFTER_ANOTHER in world.reason("p2")) is takes_turns
    world.api.delete("pods", "default", "p1")
    await world.passes(20)
    assert world.get("pods", "p2")["status"]["phase"] == "Running"


@pytest.mark.kube_cluster(NEWER)
@pytest.mark.parametrize(
    ("listed", "reason"),
    [
        ((), ""),
        (("p2",), ""),
        (("p2", "work"), ""),
        (("work",), ONE_AFTER_ANOTHER),
        (("other",), ONE_AFTER_ANOTHER),
    ],
    ids=["nothing", "the pod", "the pod and a workload", "a workload", "another pod"],
)
async def test_a_claim_for_one_pod_is_refused_if_it_lists_anything_but_not_the_pod(
    world: World, listed: tuple[str, ...], reason: str
) -> None:
    publish(world, [MAPPED])
    world.claim()
    world.pod("p1", "shared")
    await world.passes(1)
    world.cluster.pause("resourceclaim-controller")
    world.api.delete("pods", "default", "p1")
    pod = world.pod("p2", "shared", schedulingGates=[{"name": "example.com/wait"}])
    known = {
        "p2": {"resource": "pods", "name": "p2", "uid": pod["metadata"]["uid"]},
        "other": {"resource": "pods", "name": "other", "uid": "other-uid"},
        "work": WORKLOAD,
    }
    world.reserve(*(known[reference] for reference in listed))
    world.api.patch("pods", "default", "p2", {"spec": {"schedulingGates": None}})
    await world.passes(1)
    assert reason in world.reason("p2")
    assert bool(world.reason("p2")) is bool(reason)


@pytest.mark.kube_cluster(replace(NEWER, preset=Preset.POD_GROUPS))
async def test_a_claim_for_one_pod_that_lists_a_group_takes_the_pods_of_the_group(
    world: World,
) -> None:
    publish(world, [MAPPED])
    world.claim()
    shares = [{"name": "c", "resourceClaimName": "shared"}]
    spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": shares}
    world.create("podgroups", "group", spec)
    for name, group in (("p1", "group"), ("p2", "group"), ("p3", "")):
        more = {"schedulingGroup": {"podGroupName": group}} if group else {}
        world.pod(name, "shared", **more)
        await world.passes(1)
    assert [world.reason(name) == "" for name in ("p1", "p2", "p3")] == [True, True, False]


async def test_a_new_generation_of_a_pool_replaces_the_old_one(world: World) -> None:
    publish(world, DEVICES[:1])
    world.claim(spec={"requests": [request(selectors=LARGE)]})
    world.pod("p1", "shared")
    await world.passes(1)
    pool_slice = world.get("resourceslices", "slice")
    pool = {"name": "pool", "generation": 2, "resourceSliceCount": 1}
    world.api.update(
        "resourceslices",
        {**pool_slice, "spec": {**pool_slice["spec"], "pool": pool, "devices": DEVICES[2:]}},
    )
    await world.passes(1)
    assert world.devices() == ["pool/large-0"]
