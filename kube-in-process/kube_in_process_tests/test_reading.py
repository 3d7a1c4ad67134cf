"""A list over HTTP is encoded from stored parts; it says the same as one of decoded objects."""

from __future__ import annotations

from typing import Any

import pytest

from kube_in_process_tests.servers import CLAIMS, Object, Server, claim, pod, server

PODS = "/api/v1/namespaces/ns/pods"
OLD_CLAIMS = CLAIMS.replace("/v1/", "/v1beta1/")
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PLANS = "/apis/example.com/v1/plans"


async def full(**options: Any) -> Server:
    """A server with pods, claims and objects of a custom kind."""
    served = server(**options)
    for number in range(3):
        served.local().create("pods", labelled(pod(f"p{number}"), number), "ns")
        served.local().create("resourceclaims", {**claim(f"c{number}")}, "ns")
    await served.send("POST", DEFINITIONS, _definition())
    await served.send(
        "POST", PLANS, {**PLAN, "metadata": {"name": "one"}, "spec": {"a": [1, None]}}
    )
    return served


def labelled(body: Object, number: int) -> Object:
    """A pod with a label, but for the first."""
    labels = {"labels": {"n": str(number)}} if number else {}
    return {**body, "metadata": {**body["metadata"], **labels}}


PLAN = {"apiVersion": "example.com/v1", "kind": "Plan"}


def _definition() -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "plans", "kind": "Plan", "singular": "plan", "listKind": "PlanList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "plans.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": names,
            "versions": [version],
        },
    }


@pytest.mark.parametrize(
    ("path", "release"),
    [(PODS, (1, 36)), (CLAIMS, (1, 36)), (OLD_CLAIMS, (1, 32)), (PLANS, (1, 36))],
)
async def test_the_objects_of_a_list_are_those_that_a_get_shows(
    path: str, release: tuple[int, int]
) -> None:
    filled = await full(kubernetes_version=release)
    listed = (await filled.send("GET", path)).body
    heads: dict[str, Any] = {} if path == PLANS else {"kind": None, "apiVersion": None}
    assert listed["items"]
    for item in listed["items"]:
        single = (await filled.send("GET", f"{path}/{item['metadata']['name']}")).body
        assert {**single, **heads} == {**dict.fromkeys(heads), **item}
        assert ("kind" in item) == (path == PLANS)


async def names(server: Server, query: str) -> list[str]:
    listed = (await server.send("GET", f"{PODS}?{query}")).body
    return [item["metadata"]["name"] for item in listed["items"]]


@pytest.mark.parametrize(
    ("query", "chosen"),
    [
        ("fieldSelector=metadata.name=p1", ["p1"]),
        ("labelSelector=n", ["p1", "p2"]),
        ("labelSelector=n=2", ["p2"]),
        ("labelSelector=!n", ["p0"]),
        ("labelSelector=n&fieldSelector=metadata.name!=p1", ["p2"]),
        ("limit=2", ["p0", "p1"]),
    ],
)
async def test_selectors_and_pages_choose_among_them(query: str, chosen: list[str]) -> None:
    assert await names(await full(), query) == chosen


async def test_the_next_page_goes_on() -> None:
    filled = await full()
    token = (await filled.send("GET", f"{PODS}?limit=2")).body["metadata"]["continue"]
    assert await names(filled, f"limit=2&continue={token}") == ["p2"]
