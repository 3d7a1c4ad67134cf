"""What the API server accepts of taints, of binding conditions, and of what drivers report.

The texts are those of 1.36.2.
"""

from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.errors import StatusError
from kube_in_process.options import Features

from kube_in_process_tests.servers import ALLOCATION, Object, claim, server

NAME = "name part must consist of alphanumeric characters"
DEVICES: tuple[tuple[Object, str], ...] = (
    ({"bindingConditions": ["a"]}, "bindingFailureConditions are required to use binding"),
    ({"bindingFailureConditions": ["a"]}, "bindingConditions are required to use binding"),
    (
        {"bindingConditions": list("abcde"), "bindingFailureConditions": ["f"]},
        r"bindingConditions: Too many: 5: must have at most 4 items",
    ),
    (
        {"bindingConditions": ["a", "a"], "bindingFailureConditions": ["f"]},
        r'bindingConditions\[1\]: Duplicate value: "a"',
    ),
    (
        {"bindingConditions": ["a"], "bindingFailureConditions": ["a"]},
        "bindingFailureConditions must not overlap with bindingConditions",
    ),
    ({"bindingConditions": ["_x y"], "bindingFailureConditions": ["f"]}, NAME),
    ({"taints": [{"key": "", "effect": "NoExecute"}]}, r"taints\[0\]\.key: .*must be non-empty"),
    ({"taints": [{"key": "k", "value": "-", "effect": "None"}]}, r"taints\[0\]\.value: Invalid"),
    ({"taints": [{"key": "k"}]}, r"taints\[0\]\.effect: Required value"),
    (
        {"taints": [{"key": "k", "effect": "Foo"}]},
        'Unsupported value: "Foo": supported values: "NoExecute", "NoSchedule", "None"',
    ),
)
GOOD: Object = {
    "bindsToNode": True,
    "bindingConditions": ["a"],
    "bindingFailureConditions": ["b"],
    "taints": [{"key": "k", "effect": "None"}],
}


def published(device: Object) -> Object:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "x", "nodeName": "n", "pool": pool, "devices": [{"name": "d", **device}]}
    return {"metadata": {"name": "s"}, "spec": spec}


@pytest.mark.parametrize(("device", "wrong"), DEVICES)
def test_a_published_device_is_checked(device: Object, wrong: str) -> None:
    with pytest.raises(StatusError, match=wrong):
        server().local().create("resourceslices", published(device))


@pytest.mark.parametrize(
    ("device", "wrong"), [device for device in DEVICES if "taints" not in device[0]]
)
def test_an_allocated_device_is_checked_alike(device: Object, wrong: str) -> None:
    me = server().local()
    me.create("resourceclaims", claim(), "ns")
    [result] = ALLOCATION["devices"]["results"]
    status = {"allocation": {"devices": {"results": [{**result, **device}]}}}
    with pytest.raises(StatusError, match=wrong):
        me.patch("resourceclaims", "ns", "c", {"status": status}, "status")


@pytest.mark.parametrize(("version", "kept"), [((1, 36), True), ((1, 35), False)])
def test_the_fields_are_kept_where_their_gates_are_on(version: tuple[int, int], kept: bool) -> None:
    served = server()
    served.api.switch(Features(version=version))
    me = served.local()
    [device] = me.create("resourceslices", published(GOOD))["spec"]["devices"]
    assert (set(GOOD) <= set(device)) is kept
    assert bool(set(GOOD) & set(device)) is kept
    assert not kept or device["taints"][0]["timeAdded"]
    me.create("resourceclaims", claim(), "ns")
    [result] = ALLOCATION["devices"]["results"]
    conditions = {key: GOOD[key] for key in ("bindingConditions", "bindingFailureConditions")}
    devices = {"results": [{**result, **conditions}]}
    allocation = {"devices": devices, "allocationTimestamp": "2026-01-01T00:00:00Z"}
    patch: dict[str, Any] = {"status": {"allocation": allocation}}
    stored = me.patch("resourceclaims", "ns", "c", patch, "status")["status"]["allocation"]
    assert ("allocationTimestamp" in stored) is kept
    assert ("bindingConditions" in stored["devices"]["results"][0]) is kept


def test_reports_belong_to_allocated_devices_and_go_with_the_allocation() -> None:
    me = server().local()
    me.create("resourceclaims", claim(), "ns")
    report: Object = {
        "driver": "x",
        "pool": "p",
        "device": "dev-0",
        "conditions": [
            {
                "type": "example.com/ready",
                "status": "True",
                "reason": "Driver",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ],
    }
    patch: Object = {"status": {"devices": [report]}}
    with pytest.raises(StatusError, match="must be an allocated device in the claim"):
        me.patch("resourceclaims", "ns", "c", patch, "status")
    me.patch("resourceclaims", "ns", "c", {"status": {"allocation": ALLOCATION}}, "status")
    told = me.patch("resourceclaims", "ns", "c", patch, "status")
    assert told["status"]["devices"] == [report]
    freed = me.patch("resourceclaims", "ns", "c", {"status": {"allocation": None}}, "status")
    assert "devices" not in freed["status"]
