"""Tables and partial metadata, as Accept headers ask for them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from kube_in_process.errors import StatusError
from kube_in_process.http.tables.columns import human
from kube_in_process.http.tables.shapes import ObjectShape, Tables
from kube_in_process.kinds.builtin import builtin_kinds
from kube_in_process.kinds.kind import Kind
from kube_in_process.options import Features
from kube_in_process.schema.registry import Schemas

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
KINDS = builtin_kinds(Features(api_pod_groups=True))
WIDGET = Kind("example.com", ("v1",), "widgets", "Widget", custom=True)
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
COLUMNS: list[dict[str, Any]] = [
    {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
    {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
    {"name": "Since", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]


def view(accept: str, kind: Kind, **query: str) -> ObjectShape:
    schemas = Schemas(lambda: Features())
    tables = Tables(schemas, {("example.com", "v1", "widgets"): COLUMNS}, lambda: NOW, Features)
    seen = tables.view(accept, kind, "v1", query, many=True)
    assert seen is not None
    return seen


def meta(name: str = "a") -> dict[str, Any]:
    return {"name": name, "resourceVersion": "7", "creationTimestamp": "2026-01-02T03:03:00Z"}


def cells(plural: str, obj: dict[str, Any]) -> list[Any]:
    table = view(TABLE, KINDS.named(plural)).one({"metadata": meta(), **obj})
    assert len(table["columnDefinitions"]) == len(table["rows"][0]["cells"])
    return list(table["rows"][0]["cells"])


@pytest.mark.parametrize("kind", list(KINDS), ids=lambda kind: kind.resource)
def test_an_object_with_nothing_but_a_name_can_be_shown_whatever_its_kind(kind: Kind) -> None:
    table = view(TABLE, kind).one({"metadata": meta()})
    assert "a" in table["rows"][0]["cells"]


def test_a_list_becomes_a_table_with_its_own_metadata() -> None:
    body = {
        "kind": "ConfigMapList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "9", "continue": "x", "remainingItemCount": 2},
        "items": [{"metadata": meta(), "data": {"k": "v"}}],
    }
    table = view(TABLE, KINDS.named("configmaps")).many(body)
    assert table["metadata"] == body["metadata"]
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert table["rows"] == [
        {
            "cells": ["a", 1, "65s"],
            "object": {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": meta(),
            },
        }
    ]


@pytest.mark.parametrize(("include", "kind"), [("None", None), ("Object", "ConfigMap")])
def test_rows_carry_what_include_object_asks_for(include: str, kind: str | None) -> None:
    body = {
        "kind": "ConfigMapList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "9"},
        "items": [{"metadata": meta()}],
    }
    table = view(TABLE, KINDS.named("configmaps"), includeObject=include).many(body)
    shown = table["rows"][0]["object"]
    assert (shown and shown["kind"]) == kind


def test_in_a_stream_columns_come_once() -> None:
    table = view(TABLE, KINDS.named("pods"))
    first, second = table.event({"metadata": meta()}), table.event({"metadata": meta("b")})
    assert first["columnDefinitions"][0]["name"] == "Name"
    assert second["columnDefinitions"] is None


def test_columns_of_a_definition_are_found_by_their_paths() -> None:
    table = view(TABLE, WIDGET).one({"metadata": meta(), "spec": {"replicas": 3}})
    assert table["rows"][0]["cells"] == ["a", 3, None, "65s"]
    assert [column["priority"] for column in table["columnDefinitions"]] == [0, 0, 1, 0]


def test_an_empty_partial_list_has_no_items() -> None:
    body = {
        "kind": "PodList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "9"},
        "items": [],
    }
    assert view(PARTIAL, KINDS.named("pods")).many(body) == {
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "9"},
        "items": None,
    }


def test_forms_that_nobody_knows_are_406_unless_something_else_will_do() -> None:
    tables = Tables(Schemas(lambda: Features()), {}, lambda: NOW, Features)
    nonsense = "application/json;as=Nonsense;v=v1;g=meta.k8s.io"
    pods = KINDS.named("pods")
    assert tables.view(f"{nonsense},application/json", pods, "v1", {}, many=True) is None
    with pytest.raises(StatusError) as refused:
        tables.view(nonsense, pods, "v1", {}, many=True)
    assert refused.value.code == 406


def test_deployments_and_jobs_show_how_far_they_are() -> None:
    deployment = {"spec": {"replicas": 3}, "status": {"readyReplicas": 2, "updatedReplicas": 1}}
    assert cells("deployments", deployment)[:5] == ["a", "2/3", 1, 0, "65s"]
    job = {
        "spec": {"completions": 4},
        "status": {
            "succeeded": 4,
            "startTime": "2026-01-02T03:03:00Z",
            "completionTime": "2026-01-02T03:03:07Z",
            "conditions": [{"type": "Complete", "status": "True"}],
        },
    }
    assert cells("jobs", job)[:5] == ["a", "Complete", "4/4", "7s", "65s"]


@pytest.mark.parametrize(
    ("pod", "shown"),
    [
        ({"status": {"phase": "Running"}}, "Running"),
        ({"metadata": {"deletionTimestamp": "x"}, "status": {"phase": "Running"}}, "Terminating"),
        (
            {
                "status": {
                    "phase": "Pending",
                    "containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}],
                }
            },
            "ContainerCreating",
        ),
        (
            {
                "status": {
                    "phase": "Succeeded",
                    "containerStatuses": [{"state": {"terminated": {"reason": "Completed"}}}],
                }
            },
            "Completed",
        ),
    ],
)
def test_a_pods_status_is_what_says_most(pod: dict[str, Any], shown: str) -> None:
    metadata = {**meta(), **pod.get("metadata", {})}
    assert cells("pods", {**pod, "metadata": metadata})[2] == shown


@pytest.mark.parametrize(
    ("claim", "state"),
    [
        ({"metadata": {}}, "pending"),
        ({"metadata": {}, "status": {"allocation": {}, "reservedFor": []}}, "pending"),
        (
            {"metadata": {}, "status": {"allocation": {"devices": {}}, "reservedFor": [{}]}},
            "allocated,reserved",
        ),
        (
            {"metadata": {"deletionTimestamp": "x"}, "status": {"allocation": {"devices": {}}}},
            "deleted,allocated",
        ),
    ],
)
def test_a_claims_state_says_all_that_holds(claim: dict[str, Any], state: str) -> None:
    metadata = {**meta(), **claim["metadata"]}
    assert cells("resourceclaims", {**claim, "metadata": metadata})[1] == state


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "<invalid>"),
        (119, "119s"),
        (120, "2m"),
        (330, "5m30s"),
        (11000, "3h3m"),
        (100000, "27h"),
        (400000, "4d15h"),
        (864000, "10d"),
        (70000000, "2y80d"),
    ],
)
def test_ages_are_shown_as_kubectl_does(seconds: int, shown: str) -> None:
    assert human(seconds) == shown


BALANCED = {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "a.b"}]}}}
SUBSET = {
    "addresses": [{"ip": "1.2.3.4"}, {"ip": "fd00::1"}],
    "ports": [{"port": 80}, {"port": 81}],
}


@pytest.mark.parametrize(
    ("plural", "obj", "at", "shown"),
    [
        ("services", {"spec": {"type": "LoadBalancer"}}, 3, "<pending>"),
        ("services", {"spec": {"type": "LoadBalancer"}, **BALANCED}, 3, "1.2.3.4,a.b"),
        ("services", {"spec": {"type": "ExternalName", "externalName": "a.b"}}, 3, "a.b"),
        ("services", {"spec": {"ports": [{"port": 80, "nodePort": 30000}]}}, 4, "80:30000/TCP"),
        (
            "endpoints",
            {"subsets": [SUBSET]},
            1,
            "1.2.3.4:80,[fd00::1]:80,1.2.3.4:81 + 1 more...",
        ),
        ("endpointslices.discovery.k8s.io", {}, 2, "<unset>"),
        ("endpointslices.discovery.k8s.io", {"ports": [{"name": "x"}, {"port": 3}]}, 2, "x,3"),
        ("ingresses.networking.k8s.io", {"spec": {"rules": [{"host": "a"}, {}]}}, 2, "a"),
        ("ingresses.networking.k8s.io", {"spec": {"tls": [{}]}}, 4, "80, 443"),
        ("persistentvolumeclaims", {"status": {"capacity": {"storage": "1Gi"}}}, 3, ""),
        (
            "persistentvolumes",
            {"spec": {"accessModes": ["ReadOnlyMany", "ReadWriteOnce"]}},
            2,
            "RWO,ROX",
        ),
        ("ipaddresses.networking.k8s.io", {}, 1, "<none>"),
        ("events", {"reportingComponent": "c", "reportingInstance": "i"}, 5, "c, i"),
    ],
)
def test_networks_and_volumes_are_shown(
    plural: str, obj: dict[str, Any], at: int, shown: str
) -> None:
    assert cells(plural, obj)[at] == shown


def test_the_default_class_is_marked() -> None:
    marked = {"storageclass.kubernetes.io/is-default-class": "true"}
    obj = {"metadata": {**meta(), "annotations": marked}}
    assert cells("storageclasses.storage.k8s.io", obj)[0] == "a (default)"
