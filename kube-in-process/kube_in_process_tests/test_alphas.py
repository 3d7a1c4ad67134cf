"""The alphas of 1.37 that are served as objects: CompositePodGroups and EvictionRequests."""

from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.options import Preset

from .servers import Object, Server, server

SCHEDULING = "/apis/scheduling.k8s.io"
REQUESTS = "/apis/lifecycle.k8s.io/v1alpha1/namespaces/ns/evictionrequests"
REQUEST: Object = {
    "metadata": {"name": "drain-p"},
    "spec": {
        "requester": "example.com/drain",
        "intent": "Eviction",
        "target": {"pod": {"name": "p", "uid": "b37d123b-8637-4b23-a8f3-41523c344fc2"}},
    },
}


def of_137(**options: Any) -> Server:
    return server(Preset.POD_GROUPS, kubernetes_version=(1, 37), **options)


async def test_1_37_alone_serves_neither() -> None:
    plain = of_137()
    group = await plain.send("GET", SCHEDULING)
    assert [version["version"] for version in group.body["versions"]] == ["v1", "v1beta1"]
    assert (await plain.open("GET", "/apis/lifecycle.k8s.io")).status == 404


async def test_a_pod_group_is_the_same_object_in_v1beta1_and_v1alpha3() -> None:
    both = of_137(alphas=True)
    group = await both.send("GET", SCHEDULING)
    assert [version["version"] for version in group.body["versions"]] == [
        "v1",
        "v1beta1",
        "v1alpha3",
    ]
    body = {
        "metadata": {"name": "g"},
        "spec": {
            "schedulingPolicy": {"basic": {}},
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "slice"}],
        },
    }
    old = await both.send("POST", f"{SCHEDULING}/v1beta1/namespaces/ns/podgroups", body)
    new = await both.send("GET", f"{SCHEDULING}/v1alpha3/namespaces/ns/podgroups/g")
    assert (old.status, new.status) == (201, 200)
    assert old.body.pop("apiVersion") == "scheduling.k8s.io/v1beta1"
    assert new.body.pop("apiVersion") == "scheduling.k8s.io/v1alpha3"
    for answer in (old, new):
        answer.body["metadata"].pop("managedFields", None)
    assert old.body == new.body


async def test_1_38_serves_pod_groups_in_v1_too() -> None:
    asked = server(Preset.POD_GROUPS, kubernetes_version=(1, 38))
    served = {}
    for version in ("v1", "v1beta1"):
        answer = await asked.send("GET", f"{SCHEDULING}/{version}")
        served[version] = {resource["name"] for resource in answer.body["resources"]}
    assert {"podgroups", "workloads", "priorityclasses"} <= served["v1"]
    assert {"podgroups", "workloads"} <= served["v1beta1"]
    assert "priorityclasses" not in served["v1beta1"]


@pytest.mark.parametrize(("version", "status"), [((1, 36), 422), ((1, 37), 200)])
async def test_the_size_of_a_gang_may_change_from_1_37_on(
    version: tuple[int, int], status: int
) -> None:
    asked = server(Preset.POD_GROUPS, kubernetes_version=version)
    served = "v1beta1" if version >= (1, 37) else "v1alpha2"
    groups = f"{SCHEDULING}/{served}/namespaces/ns/podgroups"
    body = {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
    assert (await asked.send("POST", groups, body)).status == 201

    async def changed(policy: Object) -> int:
        return (
            await asked.merge_patch(f"{groups}/g", {"spec": {"schedulingPolicy": policy}})
        ).status

    assert await changed({"gang": {"minCount": 3}}) == status
    assert await changed({"gang": {"minCount": -1}}) == 422
    assert await changed({"gang": None, "basic": {}}) == 422


async def test_a_composite_pod_group_is_served_in_v1alpha3_alone() -> None:
    both = of_137(alphas=True)
    spec = {
        "schedulingPolicy": {"basic": {}},
        "workloadRef": {"workloadName": "train", "templateName": "all"},
    }
    path = "namespaces/ns/compositepodgroups"
    created = await both.send(
        "POST", f"{SCHEDULING}/v1alpha3/{path}", {"metadata": {"name": "all"}, "spec": spec}
    )
    assert (created.status, created.body["spec"]) == (201, spec)
    assert (await both.open("GET", f"{SCHEDULING}/v1beta1/{path}")).status == 404


async def test_an_eviction_request_can_be_withdrawn_and_not_be_turned_on_another_pod() -> None:
    served = of_137(alphas=True)
    assert (await served.send("POST", REQUESTS, REQUEST)).status == 201
    path = f"{REQUESTS}/drain-p"
    withdrawn = await served.merge_patch(path, {"spec": {"intent": "Withdrawn"}})
    assert (withdrawn.status, withdrawn.body["metadata"]["generation"]) == (200, 2)
    for spec in (
        {"target": {"pod": {"name": "other"}}},
        {"requester": "example.com/other"},
        {"intent": "Perhaps"},
    ):
        refused = await served.merge_patch(path, {"spec": spec})
        assert (refused.status, refused.body["reason"]) == (422, "Invalid")


@pytest.mark.parametrize("status", [{"conditions": []}, {"observedGeneration": 1}])
async def test_the_status_of_an_eviction_request_is_written_by_its_controller(
    status: Object,
) -> None:
    served = of_137(alphas=True)
    created = await served.send("POST", REQUESTS, {**REQUEST, "status": {"observedGeneration": 7}})
    assert created.body["status"] == {}
    answer = await served.merge_patch(f"{REQUESTS}/drain-p/status", {"status": status})
    assert (answer.status, answer.body["spec"]) == (200, REQUEST["spec"])
