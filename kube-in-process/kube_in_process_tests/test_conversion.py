"""Objects that the server holds in maps, and what a struct makes of them."""

from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.options import Features
from kube_in_process.schema.conversion import Unconvertible, converted, unknown_below
from kube_in_process.schema.registry import Schemas
from kube_in_process.schema.tree import Schema

FEATURES = Features()


def schema(group: str, version: str, kind: str) -> Schema:
    known = Schemas(lambda: FEATURES).find(group, version, kind)
    assert known is not None
    return known


def test_a_number_too_large_for_its_field_loses_its_upper_bits() -> None:
    deployment = {"spec": {"replicas": 2**31, "minReadySeconds": 2**40, "paused": True}}
    struct = converted(schema("apps", "v1", "Deployment"), deployment)
    assert struct["spec"] == {"replicas": -(2**31), "minReadySeconds": 0, "paused": True}
    assert deployment["spec"]["replicas"] == 2**31


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ({"phase": 3}, "cannot convert int64 to v1.PodPhase"),
        ({"phase": 1.5}, "unrecognized type: string"),
        ({"phase": []}, "unrecognized type: string"),
        ({"conditions": "x"}, "cannot restore slice from string"),
        ({"conditions": [1.5]}, "cannot restore struct from: float64"),
        ({"startTime": 3}, "json: cannot unmarshal number into Go value of type string"),
    ],
)
def test_a_value_that_its_field_cannot_hold(status: dict[str, Any], text: str) -> None:
    with pytest.raises(Unconvertible) as error:
        converted(schema("", "v1", "Pod"), {"status": status})
    assert str(error.value) == text


def test_the_first_wrong_field_in_the_order_of_the_struct_is_told() -> None:
    spec = {"serviceName": 3, "template": "x", "replicas": "y"}
    with pytest.raises(Unconvertible, match="unrecognized type: int32"):
        converted(schema("apps", "v1", "StatefulSet"), {"spec": spec})


def test_an_unknown_field_below_the_key_of_a_map_is_named_without_the_key() -> None:
    device = {"name": "d", "capacity": {"memory": {"value": "1Gi", "x-y": 1}}, "nosuch": 1}
    body = {"spec": {"devices": [device]}}
    assert unknown_below(schema("resource.k8s.io", "v1", "ResourceSlice"), body) == [
        "spec.devices[0].capacity.x-y",
        "spec.devices[0].nosuch",
    ]
