"""Which nodes and which DeviceClass a check takes, and what it says if there are none."""

from __future__ import annotations

import pytest

from claimctl.cli.errors import UsageError
from claimctl.commands.drivers.choosing import choose_class, choose_nodes, published
from claimctl.wire.claims import Device, ResourcePool, ResourceSlice, ResourceSliceSpec
from claimctl.wire.device_classes import (
    CelSelector,
    DeviceClass,
    DeviceClassSpec,
    DeviceSelector,
)
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.nodes import Taint

DRIVER = "gpu.example.com"


def slice_(
    node: str, *devices: str, driver: str = DRIVER, generation: int = 1, pool: str = ""
) -> ResourceSlice:
    found = tuple(Device(name=name) for name in devices)
    named = ResourcePool(name=pool or node, generation=generation, resource_slice_count=1)
    spec = ResourceSliceSpec(driver=driver, pool=named, node_name=node, devices=found)
    return ResourceSlice(metadata=ObjectMeta(name=f"{node}-{generation}"), spec=spec)


def class_(name: str, *expressions: str) -> DeviceClass:
    selectors = tuple(DeviceSelector(cel=CelSelector(expression=each)) for each in expressions)
    return DeviceClass(metadata=ObjectMeta(name=name), spec=DeviceClassSpec(selectors=selectors))


def of(*drivers: str) -> str:
    return " || ".join(f'device.driver == "{each}"' for each in drivers)


def test_each_node_with_a_device_is_checked_or_the_one_that_is_named() -> None:
    slices = [slice_("b", "x"), slice_("a", "y"), slice_("c"), slice_("d", "z", driver="other")]
    assert list(choose_nodes(DRIVER, slices, "")) == ["a", "b"]
    assert list(choose_nodes(DRIVER, slices, "b")) == ["b"]


def test_only_the_newest_generation_of_each_pool_counts() -> None:
    slices = [
        slice_("a", "old"),
        slice_("a", "new", generation=2),
        slice_("a", "other", pool="second"),
    ]
    assert published(DRIVER, slices)["a"].names == {"new", "other"}
    assert published(DRIVER, [*slices, slice_("a", generation=3)])["a"].names == {"other"}


def test_the_effects_of_taints_are_known() -> None:
    taints = (Taint(key="k", effect="NoSchedule"), Taint(key="l", effect="None"))
    pool = ResourcePool(name="a", generation=1)
    device = Device(name="x", taints=taints)
    spec = ResourceSliceSpec(driver=DRIVER, pool=pool, node_name="a", devices=(device,))
    assert published(DRIVER, [ResourceSlice(spec=spec)])["a"].effects == {"NoSchedule", "None"}


@pytest.mark.parametrize(
    ("slices", "node", "words"),
    [
        ([], "", f"{DRIVER}: no ResourceSlice is of this driver; the cluster has no ResourceSl"),
        ([slice_("a", "x", driver="b.c")], "", "no ResourceSlice is of this driver; these have: b"),
        ([slice_("a")], "", "it publishes no device for a single node"),
        ([slice_("", "x", pool="net")], "", "it publishes no device for a single node"),
        ([slice_("a", "x")], "b", f"--node: {DRIVER} has no device on node b; it has some on a"),
    ],
)
def test_a_driver_that_cannot_be_checked_is_bad_input(
    slices: list[ResourceSlice], node: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        choose_nodes(DRIVER, slices, node)


@pytest.mark.parametrize(
    ("classes", "wanted", "chosen"),
    [
        ([class_("gpu", of(DRIVER))], "", "gpu"),
        ([class_("gpu", f"device.driver=='{DRIVER}'"), class_("o", of("other"))], "", "gpu"),
        ([class_("a", of(DRIVER)), class_(DRIVER, of(DRIVER))], "", DRIVER),
        ([class_("both", of(DRIVER, "other")), class_("gpu", of(DRIVER))], "", "gpu"),
        ([class_("a", of(DRIVER)), class_("b", of(DRIVER))], "b", "b"),
        ([class_("both", of(DRIVER, "other"))], "both", "both"),
        ([class_("any", 'device.attributes["x.y"].kind == "gpu"')], "any", "any"),
    ],
)
def test_the_class_of_this_driver_alone_is_chosen_or_the_one_that_is_named(
    classes: list[DeviceClass], wanted: str, chosen: str
) -> None:
    assert choose_class(DRIVER, classes, wanted) == chosen


@pytest.mark.parametrize(
    ("classes", "wanted", "words"),
    [
        ([], "", f"no DeviceClass selects the devices of {DRIVER} by its name; the cluster has no"),
        ([class_("o", of("other"))], "", "by its name; name one by --class: o"),
        ([class_("both", of(DRIVER, "other"))], "", "DeviceClass both selects devices of other, t"),
        ([class_("a", of(DRIVER)), class_("b", of(DRIVER))], "", "name one by --class: a, b"),
        ([class_("a", of(DRIVER))], "c", "--class: there is no DeviceClass c; there are a"),
        ([], "c", "--class: there is no DeviceClass c; the cluster has none"),
    ],
)
def test_a_class_that_is_not_certain_is_asked_for(
    classes: list[DeviceClass], wanted: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        choose_class(DRIVER, classes, wanted)
