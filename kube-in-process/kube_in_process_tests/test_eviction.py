"""Evictions and the budgets that may refuse them."""

from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.api_server import api_server
from kube_in_process.errors import StatusError
from kube_in_process.options import ClusterOptions, Preset
from kube_in_process.storage.requests import Actor, WriteOptions
from kube_in_process.verbs.api import Api
from kube_in_process.verbs.reading import Target

from kube_in_process_tests.clocks import StoppedClock

ADMIN = Actor("admin", ("system:masters",))
INTERNAL = WriteOptions(internal=True)
Object = dict[str, Any]


def at(api: Api, plural: str, namespace: str = "default", **more: str) -> Target:
    return Target(api.kinds.named(plural), namespace, **more)


def server(*, phase: str = "Running", ready: str = "True") -> Api:
    """One pod ``p`` labelled app=a on a node."""
    api = api_server(ClusterOptions(preset=Preset.RESERVED_FOR_ANY_POD), StoppedClock()).api
    api.create(ADMIN, at(api, "namespaces", ""), {"metadata": {"name": "default"}})
    spec = {"containers": [{"name": "c", "image": "x"}], "nodeName": "node-0"}
    body = {"metadata": {"name": "p", "labels": {"app": "a"}}, "spec": spec}
    api.create(ADMIN, at(api, "pods"), body)
    status = {"status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}}
    api.patch(ADMIN, at(api, "pods", name="p", subresource="status"), "merge", status, INTERNAL)
    return api


def budget(api: Api, name: str, allowed: int, healthy: int = 2, **more: Any) -> None:
    kind = "poddisruptionbudgets"
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}, **more}
    api.create(ADMIN, at(api, kind), {"metadata": {"name": name}, "spec": spec})
    status = {
        "observedGeneration": 1,
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": 1,
        "expectedPods": 2,
    }
    patch = {"status": status}
    api.patch(ADMIN, at(api, kind, name=name, subresource="status"), "merge", patch, INTERNAL)


def evict(api: Api, dry_run: bool = False, **options: Any) -> Object:
    target = at(api, "pods", name="p", subresource="eviction")
    body = {"metadata": {"name": "p"}, "deleteOptions": options}
    return api.post(ADMIN, target, body, WriteOptions(dry_run=dry_run))


def pod(api: Api) -> Object:
    return api.get(at(api, "pods", name="p"))


def spent(api: Api) -> Object:
    status = api.get(at(api, "poddisruptionbudgets", name="b"))["status"]
    return {key: status.get(key) for key in ("disruptionsAllowed", "disruptedPods")}


def refusal(api: Api, **options: Any) -> StatusError:
    with pytest.raises(StatusError) as refused:
        evict(api, **options)
    return refused.value


def test_an_evicted_pod_says_why_it_goes() -> None:
    api = server()
    assert evict(api)["status"] == "Success"
    (condition,) = (c for c in pod(api)["status"]["conditions"] if c["type"] == "DisruptionTarget")
    assert condition["reason"] == "EvictionByEvictionAPI"
    assert pod(api)["metadata"]["deletionTimestamp"]


def test_a_budget_with_nothing_left_refuses_and_says_what_it_needs() -> None:
    api = server()
    budget(api, "b", allowed=0, healthy=1)
    refused = refusal(api)
    assert (refused.code, refused.headers) == (429, {})
    assert refused.details == {
        "causes": [
            {
                "reason": "DisruptionBudget",
                "message": "The disruption budget b needs 1 healthy pods and has 1 currently",
            }
        ]
    }
    assert "deletionTimestamp" not in pod(api)["metadata"]


def test_an_eviction_spends_the_budget_even_if_its_preconditions_fail() -> None:
    api = server()
    budget(api, "b", allowed=1)
    assert refusal(api, preconditions={"uid": "other"}).code == 409
    assert spent(api) == {
        "disruptionsAllowed": 0,
        "disruptedPods": {"p": "2026-01-02T00:00:00Z"},
    }
    assert refusal(api).code == 429


def test_a_dry_run_spends_nothing_and_evicts_nobody() -> None:
    api = server()
    budget(api, "b", allowed=1)
    assert evict(api, dry_run=True)["code"] == 201
    assert spent(api) == {"disruptionsAllowed": 1, "disruptedPods": None}
    assert "deletionTimestamp" not in pod(api)["metadata"]


def test_two_budgets_for_a_pod_are_an_error() -> None:
    api = server()
    budget(api, "b", allowed=1)
    budget(api, "c", allowed=1)
    assert refusal(api).code == 500


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
def test_pods_that_do_not_run_are_evicted_whatever_the_budget(phase: str) -> None:
    api = server(phase=phase)
    budget(api, "b", allowed=0)
    assert evict(api)["code"] == 201


def test_a_budget_that_was_not_counted_yet_asks_to_wait() -> None:
    api = server()
    budget(api, "b", allowed=1)
    target = at(api, "poddisruptionbudgets", name="b")
    api.patch(ADMIN, target, "merge", {"spec": {"minAvailable": 2}})
    assert refusal(api).headers == {"retry-after": "10"}


@pytest.mark.parametrize(
    ("policy", "healthy", "code"),
    [({}, 0, 429), ({}, 1, 201), ({"unhealthyPodEvictionPolicy": "AlwaysAllow"}, 0, 201)],
)
def test_a_pod_that_is_not_ready_goes_where_the_budget_is_kept_and_spends_nothing(
    policy: Object, healthy: int, code: int
) -> None:
    api = server(ready="False")
    budget(api, "b", allowed=0, healthy=healthy, **policy)
    answer = refusal(api).code if code == 429 else evict(api)["code"]
    assert answer == code
    assert spent(api) == {"disruptionsAllowed": 0, "disruptedPods": None}
