"""How much of a node is used: requests, pods, and devices of a class."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from claimctl_reschedule.plan.inventory import DeviceCount
from claimctl_reschedule.plan.strategies.utilization import Usage
from claimctl_reschedule.plan.world import World
from claimctl_reschedule.shapes.scheduling import SchedulingPod
from claimctl_reschedule_tests.support.no_devices import NoDevices
from claimctl_reschedule_tests.support.scheduling import node, pod

GPU = "deviceclass.resource.kubernetes.io/gpu.example.com"


class Gpus(NoDevices):
    def usage(self, device_class: str) -> Mapping[str, DeviceCount]:
        assert device_class == "gpu.example.com"
        return {"a": DeviceCount(used=1, published=4), "b": DeviceCount(used=1, published=0)}

    def requested(self, pod: SchedulingPod, device_class: str) -> int:
        assert device_class == "gpu.example.com"
        return 3


def usage() -> Usage:
    world = World([node("a", cpu="3", pods=10), node("b")], [pod("p", "a", cpu="1")], {})
    return Usage(world, Gpus())


def test_use_and_capacity() -> None:
    found = usage()
    assert found.of("a", "cpu") == (1000, 3000)
    assert found.of("a", "pods") == (1, 10)
    assert found.of("b", "cpu") == (0, 8000)
    assert found.of("a", "example.com/fpga") is None
    assert found.of("a", GPU) == (1, 4)


def test_a_node_whose_devices_are_all_tainted_has_none() -> None:
    assert usage().of("b", GPU) is None
    assert usage().of("c", GPU) is None


def test_percentages_are_exact() -> None:
    found = usage()
    assert found.percent("a", "cpu") == Fraction(100, 3)
    assert found.percent("a", "example.com/fpga") is None
    assert found.mean(["a", "b"], "cpu") == Fraction(50, 3)
    assert found.mean(["a", "b"], GPU) == 25
    assert found.mean(["a"], "example.com/fpga") is None


def test_what_a_pod_uses() -> None:
    found = usage()
    seen = found.world.pods["uid-team-p"]
    assert [found.requested(seen, each) for each in ("cpu", "pods", "memory", GPU)] == [
        1000,
        1,
        0,
        3,
    ]
