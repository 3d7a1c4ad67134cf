"""Device classes and devices are invented for what manifests ask for."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl_demo.story.invent import invented, pods_of
from claimctl_demo.story.manifests import Manifest


def manifest(kind: str, spec: dict[str, Any], name: str = "x") -> Manifest:
    version = {"Pod": "v1", "Deployment": "apps/v1", "Job": "batch/v1"}
    body = {
        "apiVersion": version.get(kind, "resource.k8s.io/v1"),
        "kind": kind,
        "metadata": {"name": name, "namespace": "ml"},
        "spec": spec,
    }
    return Manifest("file.yaml", 1, body)


def claim(*expressions: str, device_class: str = "gpu.example.com", count: int = 1) -> Manifest:
    exactly = {
        "deviceClassName": device_class,
        "count": count,
        "selectors": [{"cel": {"expression": each}} for each in expressions],
    }
    return manifest("ResourceClaim", {"devices": {"requests": [{"name": "a", "exactly": exactly}]}})


def devices(*manifests: Manifest) -> list[dict[str, Any]]:
    return [
        device
        for body in invented(manifests, ["n1"])
        if body["kind"] == "ResourceSlice"
        for device in body["spec"]["devices"]
    ]


def test_a_class_that_nobody_defines_is_made_with_devices_on_every_node() -> None:
    made = invented([claim(count=2)], ["n1", "n2"])
    assert [(each["kind"], each["metadata"]["name"]) for each in made] == [
        ("DeviceClass", "gpu.example.com"),
        ("ResourceSlice", "n1-gpu.example.com"),
        ("ResourceSlice", "n2-gpu.example.com"),
    ]
    assert made[0]["spec"]["selectors"] == [
        {"cel": {"expression": "device.driver == 'gpu.example.com'"}}
    ]
    assert made[1]["spec"]["devices"] == [{"name": "dev-0-0"}, {"name": "dev-0-1"}]


def test_a_class_of_the_users_own_is_left_alone_and_served() -> None:
    own = manifest(
        "DeviceClass",
        {"selectors": [{"cel": {"expression": 'device.driver == "tpu.example.org"'}}]},
        "gpu.example.com",
    )
    made = invented([own, claim()], ["n1"])
    assert [each["kind"] for each in made] == ["ResourceSlice"]
    assert made[0]["spec"]["driver"] == "tpu.example.org"


@pytest.mark.parametrize(
    ("expression", "device"),
    [
        (
            "device.attributes['gpu.example.com'].model == 'LATEST'",
            {"attributes": {"model": {"string": "LATEST"}}},
        ),
        (
            "device.attributes['other.org']['index'] >= 3",
            {"attributes": {"other.org/index": {"int": 3}}},
        ),
        (
            "device.attributes['gpu.example.com'].ecc == true",
            {"attributes": {"ecc": {"bool": True}}},
        ),
        (
            'device.attributes["gpu.example.com"].profile in ["1g.5gb", "2g.10gb"]',
            {"attributes": {"profile": {"string": "1g.5gb"}}},
        ),
        (
            "device.attributes['gpu.example.com'].version.compareTo(semver('1.2.3')) >= 0",
            {"attributes": {"version": {"version": "1.2.3"}}},
        ),
        (
            "device.capacity['gpu.example.com'].memory.compareTo(quantity('1Ti')) >= 0",
            {"capacity": {"memory": {"value": "1Ti"}}},
        ),
        (
            "device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('40Gi'))",
            {"capacity": {"memory": {"value": "41Gi"}}},
        ),
    ],
)
def test_selectors_are_read_for_what_a_device_must_have(
    expression: str, device: dict[str, Any]
) -> None:
    asked = claim("device.driver == 'gpu.example.com'", expression)
    assert devices(asked) == [{"name": "dev-0-0", **device}]


def test_requests_for_the_same_kind_of_device_add_up() -> None:
    assert len(devices(claim(), claim(count=3), claim("device.driver == 'x.org'"))) == 5


def test_a_template_is_served_once_per_pod_that_names_it() -> None:
    spec = {"spec": {"devices": {"requests": [{"name": "a", "deviceClassName": "g"}]}}}
    template = manifest("ResourceClaimTemplate", spec, "gpu")
    pod_spec = {"resourceClaims": [{"name": "a", "resourceClaimTemplateName": "gpu"}]}
    deployment = manifest("Deployment", {"replicas": 3, "template": {"spec": pod_spec}})
    assert len(devices(template, deployment)) == 3


def test_every_alternative_gets_a_device() -> None:
    ways = [{"name": "big", "deviceClassName": "g"}, {"name": "small", "deviceClassName": "h"}]
    asked = {"devices": {"requests": [{"name": "a", "firstAvailable": ways}]}}
    made = invented([manifest("ResourceClaim", asked)], ["n1"])
    assert [each["metadata"]["name"] for each in made] == ["g", "h", "n1-g", "n1-h"]


@pytest.mark.parametrize(
    ("kind", "spec", "pods"),
    [
        ("Pod", {}, 1),
        ("Deployment", {}, 1),
        ("Deployment", {"replicas": 0}, 0),
        ("Job", {"parallelism": 4, "completions": 2}, 2),
        ("Job", {"parallelism": 4}, 4),
        ("ConfigMap", {}, 0),
        ("Deployment", {"replicas": "many"}, 1),
    ],
)
def test_how_many_pods_an_object_makes(kind: str, spec: dict[str, Any], pods: int) -> None:
    assert pods_of(manifest(kind, spec))[0] == pods


def test_odd_shapes_are_left_to_the_servers_validation() -> None:
    odd: list[dict[str, Any]] = [
        {"devices": None},
        {"devices": {"requests": "x"}},
        {"devices": {"requests": [3]}},
    ]
    assert [invented([manifest("ResourceClaim", spec)], ["n1"]) for spec in odd] == [[], [], []]


def test_before_v1_the_attributes_of_a_device_are_in_a_field_of_their_own() -> None:
    selector = 'device.attributes["gpu.example.com"].model == "a100"'
    [made, on_n1] = invented([claim(selector)], ["n1"], "resource.k8s.io/v1beta1")
    assert made["apiVersion"] == on_n1["apiVersion"] == "resource.k8s.io/v1beta1"
    attributes = {"model": {"string": "a100"}}
    assert on_n1["spec"]["devices"] == [{"name": "dev-0-0", "basic": {"attributes": attributes}}]
