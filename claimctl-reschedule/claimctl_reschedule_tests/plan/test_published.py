"""The devices that ResourceSlices publish."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl_reschedule.plan.published import catalogue
from claimctl_reschedule.shapes.devices import SchedulingSlice
from claimctl_reschedule_tests.support.devices import (
    DRIVER,
    TAINT,
    device,
    node,
    slice_,
    taint_rule,
)

ZONE = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["a"]}]}
    ]
}


def names(*slices: SchedulingSlice, on: str = "node-0") -> list[str]:
    return [each.id[2] for each in catalogue(slices).on(node(on))]


def test_devices_are_on_the_node_of_their_slice() -> None:
    slices = slice_("gpu-0", "gpu-1"), slice_("gpu-0", node="node-1")
    assert names(*slices) == ["gpu-0", "gpu-1"]
    assert names(*slices, on="node-1") == ["gpu-0"]


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    assert names(slice_("new", generation=2), slice_("old", generation=1)) == ["new"]
    for old, new in ("ab", "ba"):
        assert names(slice_("old", name=old), slice_("new", generation=2, name=new)) == ["new"]


def test_an_incomplete_pool_publishes_nothing() -> None:
    half = slice_("gpu-0", count=2)
    found = catalogue([half])
    assert found.on(node()) == []
    assert not found.complete_on(node())
    assert found.complete_on(node("node-1"))
    both = catalogue([half, slice_("gpu-1", count=2, name="b")])
    assert len(both.on(node())) == 2
    assert both.complete_on(node())


def test_a_pool_with_a_name_twice_is_not_used() -> None:
    assert names(slice_("gpu-0", "gpu-0")) == []


@pytest.mark.parametrize(
    ("place", "on"),
    [
        ({"allNodes": True}, {"a", "b"}),
        ({"nodeSelector": ZONE}, {"a"}),
    ],
)
def test_devices_of_several_nodes(place: dict[str, Any], on: set[str]) -> None:
    found = catalogue([slice_("gpu-0", pool="net", **place)])
    assert {each for each in ("a", "b") if found.on(node(each))} == on


def test_devices_that_name_their_nodes_themselves() -> None:
    devices = device("one", nodeName="a"), device("any", allNodes=True), device("none")
    one = slice_(*devices, pool="net", perDeviceNodeSelection=True)
    assert names(one, on="a") == ["one", "any"]
    assert names(one, on="b") == ["any"]


@pytest.mark.parametrize(
    "odd",
    [
        device("gpu-0", consumesCounters=[{"counterSet": "set"}]),
        device("gpu-0", allowMultipleAllocations=True),
        device("gpu-0", bindingConditions=["ready"]),
        device("gpu-0", attributes={"model": "no object"}),
        {"name": "gpu-0", "basic": {"consumesCounters": [{}]}},
    ],
    ids=["counters", "capacity", "binding conditions", "unreadable attributes", "v1beta1"],
)
def test_devices_that_claimctl_cannot_count_are_told(odd: dict[str, object]) -> None:
    (found,) = catalogue([slice_(odd)]).on(node())
    assert not found.simple


def test_only_taints_that_keep_claims_away_count() -> None:
    none = {**TAINT, "effect": "None"}
    (found,) = catalogue([slice_(device("gpu-0", taints=[TAINT, none]))]).on(node())
    assert [each.effect for each in found.taints] == ["NoSchedule"]


@pytest.mark.parametrize(
    ("selector", "tainted"),
    [
        ({"driver": DRIVER, "pool": "node-0", "device": "gpu-1"}, ["gpu-1"]),
        ({"driver": DRIVER, "pool": "node-0"}, ["gpu-0", "gpu-1"]),
        ({"pool": "node-1"}, []),
        ({}, ["gpu-0", "gpu-1"]),
        (None, []),
    ],
    ids=["a device", "a pool", "another pool", "all devices", "none"],
)
def test_a_rule_taints_the_devices_that_it_selects(
    selector: dict[str, str] | None, tainted: list[str]
) -> None:
    found = catalogue([slice_("gpu-0", "gpu-1")], [taint_rule(selector)]).on(node())
    assert [each.id[2] for each in found if each.taints] == tainted
