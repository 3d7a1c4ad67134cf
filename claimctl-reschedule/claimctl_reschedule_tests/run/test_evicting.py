"""Evictions: by UID, with the grace that was asked for, and as a dry run."""

from __future__ import annotations

import pytest

from claimctl.kube.errors import Conflict, NotFound, TooManyRequests
from claimctl_reschedule.plan.plan import PodRef
from claimctl_reschedule.run.evicting import post_eviction
from tests.support.claim_server import NAMESPACE, Server


def named(name: str, uid: str) -> PodRef:
    return PodRef(namespace=NAMESPACE, name=name, uid=uid)


def names(server: Server) -> list[str]:
    pods = server.admin.list("pods", NAMESPACE)
    return [
        each["metadata"]["name"] for each in pods if "deletionTimestamp" not in each["metadata"]
    ]


async def test_a_pod_is_evicted_by_its_uid_alone() -> None:
    server = Server.started()
    server.claim()
    uid = server.pod("a")["uid"]
    with pytest.raises(Conflict):
        await post_eviction(server.client, named("a", "another"))
    assert names(server) == ["a"]
    await post_eviction(server.client, named("a", uid))
    assert names(server) == []
    with pytest.raises(NotFound):
        await post_eviction(server.client, named("b", uid))


async def test_a_dry_run_evicts_nothing() -> None:
    server = Server.started()
    server.claim()
    await post_eviction(server.client, named("a", server.pod("a")["uid"]), dry_run=True)
    assert names(server) == ["a"]


async def test_the_grace_is_that_of_the_policy() -> None:
    server = Server.started()
    server.claim()
    uid = server.pod("a")["uid"]
    await post_eviction(server.client, named("a", uid), 7)
    (pod,) = server.admin.list("pods", NAMESPACE)
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 7


async def test_a_budget_refuses_with_its_own_words() -> None:
    server = Server.started()
    server.claim()
    uid = server.pod("a")["uid"]
    server.admin.patch("pods", NAMESPACE, "a", {"metadata": {"labels": {"app": "a"}}})
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    meta = {"name": "all", "namespace": NAMESPACE}
    server.admin.create("poddisruptionbudgets", {"metadata": meta, "spec": spec})
    with pytest.raises(TooManyRequests, match="disruption budget"):
        await post_eviction(server.client.without_retries(5.0), named("a", uid))
    assert names(server) == ["a"]
