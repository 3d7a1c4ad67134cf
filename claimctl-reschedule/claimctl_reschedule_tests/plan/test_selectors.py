"""Which devices a CEL selector selects, and where claimctl cannot tell."""

from __future__ import annotations

import sys

import pytest

from claimctl.wire.base import from_plain
from claimctl_reschedule.plan import selectors
from claimctl_reschedule.plan.selectors import Described, describe, selects
from claimctl_reschedule.shapes.devices import PublishedDevice

BODY = {
    "attributes": {
        "model": {"string": "A100"},
        "index": {"int": 3},
        "mig": {"bool": False},
        "driverVersion": {"version": "560.3.0"},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0"},
    },
    "capacity": {"memory": {"value": "40Gi"}, "half": {"value": "500m"}},
}
GPU = 'device.attributes["gpu.example.com"]'


def of(body: object, driver: str = "gpu.example.com") -> Described:
    return describe(driver, from_plain({"name": "gpu-0", **dict(body)}, PublishedDevice))  # type: ignore[call-overload]  # a mapping


DEVICE = of(BODY)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('device.driver == "gpu.example.com"', True),
        ("device.driver == 'other'", False),
        (f'{GPU}.model == "A100"', True),
        (f'{GPU}.model == "A100" && device.driver == "device.example.com"', False),
        (f'{GPU}["model"] == "A100"', True),
        (f'{GPU}.model.lowerAscii().matches("^a1")', True),
        (f"{GPU}.index >= 4", False),
        (f"{GPU}.index in [1, 3]", True),
        (f"!{GPU}.mig", True),
        (f"has({GPU}.other)", False),
        ('has(device.attributes["unheard.of"].other)', False),
        ('device.attributes["resource.kubernetes.io"].pcieRoot == "pci0"', True),
        (
            'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0',
            True,
        ),
        ('device.capacity["gpu.example.com"].memory.isLessThan(quantity("40G"))', False),
        ('device.capacity["gpu.example.com"].half == quantity("0.5")', True),
        (f'{GPU}.driverVersion.compareTo(semver("560.10.0")) < 0', True),
        (f'{GPU}.driverVersion.isGreaterThan(semver("99.0.0"))', True),
    ],
)
def test_a_selector_selects(expression: str, expected: bool) -> None:
    assert selects(expression, DEVICE) is expected


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(f'{GPU}.other == "x"', id="a value that is missing: the scheduler fails"),
        pytest.param(f"{GPU}.index", id="no boolean"),
        pytest.param(f"{GPU}.index ==", id="no CEL"),
        pytest.param(f"{GPU}.model.unheardOf()", id="a function that is not here"),
        pytest.param("device.attributes.exists(each, true)", id="a loop over the attributes"),
        pytest.param('"x" in device.attributes', id="the domains as a whole"),
        pytest.param("device.allowMultipleAllocations", id="another field"),
        pytest.param(f'{GPU}.driverVersion.compareTo(quantity("1")) < 0', id="of different types"),
        pytest.param(f'{GPU}.driverVersion.compareTo(semver("1.0.0-rc.1")) > 0', id="a suffix"),
        pytest.param('device.capacity["gpu.example.com"].memory == quantity("x")', id="a typo"),
    ],
)
def test_what_cannot_be_judged_is_unknown(expression: str) -> None:
    assert selects(expression, DEVICE) is None


def test_v1beta1_has_the_same_below_basic() -> None:
    body = {"basic": {**BODY, "capacity": {"memory": {"value": "40Gi"}, "half": "500m"}}}
    assert of(body) == DEVICE


def test_values_of_different_types_are_different() -> None:
    """1 == True in Python, and a cached verdict must not mix them up."""
    one = of({"attributes": {"x": {"int": 1}}})
    yes = of({"attributes": {"x": {"bool": True}}})
    assert selects(f"{GPU}.x == 1", one) is True
    assert selects(f"{GPU}.x == 1", yes) in (False, None)


def test_one_evaluation_serves_all_devices_with_the_same_values() -> None:
    expression = f'{GPU}.model == "counted"'
    before = selectors._evaluate.cache_info().misses
    for number in range(100):
        attributes = {"model": {"string": "counted"}, "index": {"int": number}}
        assert selects(expression, of({"attributes": attributes}))
    assert selectors._evaluate.cache_info().misses == before + 1


def test_without_the_library_only_the_driver_can_be_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "cel", None)
    selectors._compile.cache_clear()
    assert selects('device.driver == "gpu.example.com"', DEVICE) is True
    assert selects(f'{GPU}.model == "A100" || false', DEVICE) is None
    selectors._compile.cache_clear()
    selectors._evaluate.cache_clear()
