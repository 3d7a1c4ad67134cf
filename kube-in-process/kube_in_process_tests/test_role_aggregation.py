"""The roles that a server makes, and ClusterRoles that gather the rules of others."""

from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.auth.aggregation import aggregated_rules

from .worlds import HOLD, World

PODS = {"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}
NODES = {"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"]}
Object = dict[str, Any]


def role(name: str, *rules: Object, label: str = "", gathers: str = "") -> Object:
    cluster_role: Object = {"metadata": {"name": name, "labels": {label: "yes"} if label else {}}}
    if gathers:
        cluster_role["aggregationRule"] = {
            "clusterRoleSelectors": [{"matchLabels": {gathers: "yes"}}]
        }
    return {**cluster_role, "rules": list(rules)}


@pytest.mark.parametrize(
    ("others", "gathered"),
    [
        pytest.param([], [], id="none-selected"),
        pytest.param(
            [role("b", NODES, label="x"), role("a", PODS, label="x")], [PODS, NODES], id="by-name"
        ),
        pytest.param(
            [role("a", PODS, label="x"), role("b", PODS, label="x")], [PODS], id="each-once"
        ),
        pytest.param([role("a", PODS)], [], id="without-the-label"),
        pytest.param([role("all", PODS, label="x")], [], id="not-its-own"),
    ],
)
def test_an_aggregated_role_gathers_rules(others: list[Object], gathered: list[Object]) -> None:
    assert aggregated_rules(role("all", NODES, gathers="x"), others) == gathered


def test_another_role_keeps_its_rules() -> None:
    assert aggregated_rules(role("plain", PODS), [role("a", NODES)]) is None


@pytest.mark.kube_cluster(HOLD)
async def test_a_labelled_role_adds_to_the_roles_that_select_it(world: World) -> None:
    label = "rbac.authorization.k8s.io/aggregate-to-view"
    rule = {"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["widgets"]}
    more = {"metadata": {"name": "more", "labels": {label: "true"}}, "rules": [rule]}
    assert len(world.api.list("clusterroles")) > 60
    world.api.create("clusterroles", more)
    await world.passes(1)
    for name in ("view", "edit", "admin"):
        assert rule in world.get("clusterroles", name)["rules"], name
    manager = world.get("clusterroles", "view")["metadata"]["managedFields"][0]
    assert manager["manager"] == "clusterrole-aggregation-controller"
    world.api.delete("clusterroles", "", "more")
    await world.passes(1)
    assert rule not in world.get("clusterroles", "admin")["rules"]
