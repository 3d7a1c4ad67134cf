"""Schema trees of built-in and custom kinds."""

from __future__ import annotations

from copy import deepcopy

import pytest
from kube_in_process.options import Features
from kube_in_process.schema.registry import Schemas
from kube_in_process.schema.tree import Schema, prune

STOCK = Schemas(lambda: Features())


def schema_of(schemas: Schemas, group: str, version: str, kind: str) -> Schema:
    schema = schemas.find(group, version, kind)
    assert schema is not None
    return schema


def at(schema: Schema, *names: str) -> Schema:
    for name in names:
        below = schema.items if name == "[]" else schema.field(name)
        assert below is not None, name
        schema = below
    return schema


def test_unknown_fields_are_named_with_their_place_in_lists() -> None:
    claim = {
        "kind": "ResourceClaim",
        "metadata": {"labels": {"any": "thing"}, "nosuch": 1},
        "spec": {"devices": {"requests": [{"name": "a"}, {"name": "b", "wrong": 1}]}},
    }
    assert prune(schema_of(STOCK, "resource.k8s.io", "v1", "ResourceClaim"), claim) == [
        "metadata.nosuch",
        "spec.devices.requests[1].wrong",
    ]


def test_pruning_removes_unknown_fields_and_nothing_else() -> None:
    pod = {"spec": {"containers": [{"name": "c", "typo": {"a": 1}}]}, "extra": None}
    assert prune(schema_of(STOCK, "", "v1", "Pod"), pod) == ["spec.containers[0].typo", "extra"]
    assert pod == {"spec": {"containers": [{"name": "c"}]}}


def test_opaque_parameters_may_hold_anything() -> None:
    claim = {
        "spec": {
            "devices": {"config": [{"opaque": {"driver": "d", "parameters": {"x": {"y": 1}}}}]}
        }
    }
    assert prune(schema_of(STOCK, "resource.k8s.io", "v1", "ResourceClaim"), claim) == []


def test_reserved_for_exists_only_with_the_feature_and_follows_it_at_run_time() -> None:
    features = [Features()]
    schemas = Schemas(lambda: features[0])
    claim = {
        "spec": {"reservedFor": {"uid": "u"}},
        "status": {"allocation": {"reservedForAnyPod": True}},
    }
    kind = ("resource.k8s.io", "v1", "ResourceClaim")
    assert prune(schema_of(schemas, *kind), deepcopy(claim)) == [
        "spec.reservedFor",
        "status.allocation.reservedForAnyPod",
    ]
    features[0] = Features(api_reserved_for=True)
    assert prune(schema_of(schemas, *kind), deepcopy(claim)) == []


@pytest.mark.parametrize(
    ("kind", "path", "expected"),
    [
        (
            ("resource.k8s.io", "v1", "ResourceClaim"),
            ("status", "reservedFor"),
            ("map", ("uid",), "merge", "uid"),
        ),
        (("", "v1", "Pod"), ("status", "conditions"), ("map", ("type",), "merge", "type")),
        (
            ("", "v1", "Pod"),
            ("spec", "containers", "[]", "ports"),
            ("map", ("containerPort", "protocol"), "merge", "containerPort"),
        ),
        (("", "v1", "Pod"), ("spec", "tolerations"), ("atomic", (), "", "")),
        (("apps", "v1", "Deployment"), ("metadata", "finalizers"), ("set", (), "merge", "")),
        (
            ("apps", "v1", "Deployment"),
            ("metadata", "ownerReferences"),
            ("map", ("uid",), "merge", "uid"),
        ),
        (
            ("scheduling.k8s.io", "v1alpha2", "PodGroup"),
            ("spec", "resourceClaims"),
            ("map", ("name",), "merge,retainKeys", "name"),
        ),
    ],
)
def test_lists_have_the_keys_and_strategies_of_kubernetes(
    kind: tuple[str, str, str], path: tuple[str, ...], expected: tuple[object, ...]
) -> None:
    node = at(schema_of(STOCK, *kind), *path)
    assert (node.list_type, node.list_keys, node.patch_strategy, node.merge_key) == expected


def test_kinds_of_the_same_name_are_told_apart_by_group() -> None:
    assert schema_of(STOCK, "", "v1", "Event").definition == "CoreV1Event"
    assert schema_of(STOCK, "events.k8s.io", "v1", "Event").definition == "EventsV1Event"
    assert STOCK.find("nosuch.example.com", "v1", "Nosuch") is None


def test_a_custom_kind_is_known_until_it_is_removed() -> None:
    schemas = Schemas(lambda: Features())
    raw = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    "pods": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["uid"],
                        "items": {"type": "object", "properties": {"uid": {"type": "string"}}},
                    },
                },
            }
        },
    }
    schemas.add_custom("example.com", "v1", "Widget", raw)
    widget = {
        "metadata": {"name": "w", "odd": 1},
        "spec": {"free": {"a": {"b": 1}}, "labels": {"x": "y"}, "pods": [{"uid": "u", "z": 1}]},
    }
    assert prune(schema_of(schemas, "example.com", "v1", "Widget"), widget) == [
        "metadata.odd",
        "spec.pods[0].z",
    ]
    assert at(schema_of(schemas, "example.com", "v1", "Widget"), "spec", "pods").list_keys == (
        "uid",
    )
    schemas.remove_custom("example.com", "v1", "Widget")
    assert schemas.find("example.com", "v1", "Widget") is None
