"""Giving way: a hold whose nodes are missing goes at once, and passing obstacles wait."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from claimctl.wire.nodes import Node, Taint, Toleration
from claimctl.wire.pods import Pod
from tests.support.builders import (
    after,
    claim,
    gated,
    node,
    pending,
    pod_ref,
    reservation,
    running,
    written_by_claimctl,
)
from tests.support.claim_cases import ACTIVE, WORKLOAD, condition, held_status, lists, stage
from tests.support.stage import DecisionStage

NODE_1 = node("node-1")
MINE = Taint(key="example.com/mine", value="yes", effect="NoSchedule")
SOFT = Taint(key="example.com/mine", effect="PreferNoSchedule")
NOT_READY = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")
GONE_OFF = Taint(key="node.kubernetes.io/unreachable", effect="NoExecute")
OUT = Taint(key="node.kubernetes.io/out-of-service", effect="NoExecute")
GIVEN_UP = [((), True)]


def stuck(name: str, *tolerations: Toleration) -> Pod:
    made = pending(name, unschedulable_at=after(0))
    return replace(made, spec=replace(made.spec, tolerations=tolerations))


def held(*nodes: Node, **spec: Any) -> DecisionStage:
    """A claim that is held on node-0, with a pod for which the scheduler finds no node."""
    made = reservation(status=held_status(), **spec)
    on = stage(claim(WORKLOAD), ACTIVE, reserved=made)
    on.nodes = {each.metadata.name: each for each in (*nodes, NODE_1)}
    on.put(stuck("a"))
    return on


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param([node(cordoned=True)], id="cordoned"),
        pytest.param([], id="gone"),
        pytest.param([node(taints=(MINE,))], id="tainted"),
        pytest.param([node(taints=(NOT_READY, OUT))], id="out of service"),
    ],
)
def test_a_claim_whose_node_is_missing_is_given_up_at_once(nodes: list[Node]) -> None:
    on = held(*nodes)
    assert lists(on.settle(seconds=0.1)) == GIVEN_UP
    on.settle(seconds=10)
    assert condition(on, "Released") == ("True", "Reallocated")


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param([node()], id="no room for the pod"),
        pytest.param([node(taints=(SOFT,))], id="a taint that only asks"),
        pytest.param([node(taints=(NOT_READY, GONE_OFF))], id="the node is not ready"),
    ],
)
def test_an_obstacle_that_may_pass_waits_for_the_timeout(nodes: list[Node]) -> None:
    on = held(*nodes)
    assert lists(on.settle(seconds=59.9)) == []
    assert lists(on.settle(seconds=1)) == GIVEN_UP


@pytest.mark.parametrize(
    "spec", [{"reallocate_timeout_seconds": None}, {"reallocation_policy": "Never"}]
)
def test_the_word_never_and_null_keep_the_claim_for_ever(spec: dict[str, Any]) -> None:
    on = held(**spec)
    assert lists(on.settle(seconds=3600)) == []


def test_a_scheduler_has_to_say_that_it_finds_no_node() -> None:
    on = held()
    on.pods.clear()
    on.put(pending("a"), gated(pending("b")))
    assert lists(on.settle(seconds=600)) == []


def test_a_pod_that_tolerates_the_taint_keeps_the_claim_for_the_timeout() -> None:
    on = held(node(cordoned=True))
    on.put(stuck("b", Toleration(key="node.kubernetes.io/unschedulable", operator="Exists")))
    assert lists(on.settle(seconds=59.9)) == []


def test_a_pod_that_runs_there_keeps_the_claim() -> None:
    on = held(node(cordoned=True))
    on.claim = written_by_claimctl(claim(pod_ref("r"), WORKLOAD), {"uid-train"})
    on.put(running("r"))
    assert lists(on.settle(seconds=600)) == []


def test_without_any_known_node_nothing_is_missing() -> None:
    on = held()
    on.nodes = {}
    assert lists(on.settle(seconds=59.9)) == []
