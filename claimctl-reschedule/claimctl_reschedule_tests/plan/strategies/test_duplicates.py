"""RemoveDuplicates: at most ceil(pods / feasible nodes) pods of one owner on a node."""

from __future__ import annotations

import pytest

from claimctl_reschedule.plan.plan import Plan
from claimctl_reschedule.plan.planning import plan
from claimctl_reschedule.plan.policy import Namespaces, Policy, Profile, RemoveDuplicates
from claimctl_reschedule.shapes.scheduling import PodDisruptionBudget, SchedulingNode, SchedulingPod
from claimctl_reschedule_tests.support.scheduling import moves, node, observed, pod, reasons


def planned(
    *objects: SchedulingNode | SchedulingPod | PodDisruptionBudget,
    wanted: RemoveDuplicates | None = None,
) -> Plan:
    policy = Policy(profiles=(Profile(balance=(wanted or RemoveDuplicates(),)),))
    return plan(observed(*objects), policy)


def replicas(layout: dict[str, int]) -> list[SchedulingPod]:
    where = [name for name, count in layout.items() for _ in range(count)]
    return [pod(f"p{number:02}", name) for number, name in enumerate(where)]


def nodes(names: str) -> list[SchedulingNode]:
    return [node(name) for name in names]


def after(found: Plan, pods: list[SchedulingPod]) -> dict[str, int]:
    landed = {name: destination for name, (_, destination) in moves(found).items()}
    counts: dict[str, int] = {}
    for each in pods:
        where = landed.get(each.metadata.name, each.spec.node_name)
        counts[where] = counts.get(where, 0) + 1
    return counts


LAYOUTS = {
    "one node was down": ({"a": 3, "b": 3}, "abc", {"a": 2, "b": 2, "c": 2}),
    "more pods than nodes, even": (
        {"a": 3, "b": 3, "c": 2, "d": 2, "e": 2},
        "abcde",
        {"a": 3, "b": 3, "c": 2, "d": 2, "e": 2},
    ),
    "fewer pods than nodes": ({"a": 2}, "abc", {"a": 1, "b": 1}),
    "all on one": ({"a": 7}, "abc", {"a": 3, "b": 2, "c": 2}),
    "one node only": ({"a": 7}, "a", {"a": 7}),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name: str) -> None:
    layout, names, expected = LAYOUTS[name]
    pods = replicas(layout)
    found = planned(*nodes(names), *pods)
    assert after(found, pods) == expected
    assert reasons(found) == {}


def test_the_why_says_the_numbers() -> None:
    found = planned(*nodes("abc"), *replicas({"a": 3, "b": 3}))
    assert found.moves[0].why == "a has 3 of 6 pods of its owner; 2 would be even"


def test_nodes_that_never_fit_are_not_counted() -> None:
    tainted = node("c", taints=(("k", "NoSchedule"),))
    assert moves(planned(*nodes("ab"), tainted, *replicas({"a": 3, "b": 3}))) == {}


def test_a_closed_node_that_has_pods_is_counted() -> None:
    closed = node("c", unschedulable=True)
    pods = replicas({"a": 4, "c": 2})
    assert after(planned(*nodes("ab"), closed, *pods), pods) == {"a": 2, "b": 2, "c": 2}


def test_where_the_pods_fit_is_not_known() -> None:
    """Then the nodes that have them are all that there are."""
    unknown = {"tolerations": [{"key": "k", "operator": "Lt", "value": "3"}]}
    pods = [pod(f"p{n}", name, spec=unknown) for n, name in enumerate("aaab")]
    found = planned(*nodes("abc"), *pods)
    assert moves(found) == {}
    assert set(reasons(found).values()) == {"FitUnknown"}
    assert len(found.skipped) == 3


def test_a_node_without_room_is_counted_but_not_used() -> None:
    full = node("c", cpu="0")
    found = planned(*nodes("ab"), full, *replicas({"a": 3, "b": 3}))
    assert moves(found) == {}
    assert set(reasons(found).values()) <= {"NoBetterNode", "WouldReturn"}
    assert len(reasons(found)) == 6


def test_a_pod_that_may_not_move_counts() -> None:
    pods = [
        *replicas({"a": 2}),
        pod("still", "a", annotations={"karpenter.sh/do-not-disrupt": "true"}),
    ]
    found = planned(*nodes("abc"), *pods)
    assert len(moves(found)) == 2
    assert after(found, pods) == {"a": 1, "b": 1, "c": 1}


def test_all_pods_of_a_crowded_node_that_may_not_move_have_a_reason() -> None:
    found = planned(*nodes("ab"), *replicas({"a": 2}), pod("d", "b", None))
    assert len(moves(found)) == 1
    bound = [pod(f"q{each}", "a", None, labels={}) for each in range(2)]
    assert planned(*nodes("ab"), *bound).skipped == ()
    still = [
        pod(f"q{each}", "a", annotations={"karpenter.sh/do-not-disrupt": "true"})
        for each in range(3)
    ]
    found = planned(*nodes("ab"), *still)
    assert set(reasons(found).values()) == {"DoNotDisrupt"}
    assert len(found.skipped) == 3


def test_kinds_and_namespaces_that_are_left_out() -> None:
    pods = replicas({"a": 3})
    for wanted in (
        RemoveDuplicates(exclude_owner_kinds=("ReplicaSet",)),
        RemoveDuplicates(namespaces=Namespaces(include=("other",))),
        RemoveDuplicates(namespaces=Namespaces(exclude=("team",))),
    ):
        assert moves(planned(*nodes("abc"), *pods, wanted=wanted)) == {}
    wanted = RemoveDuplicates(namespaces=Namespaces(include=("team",)))
    assert len(moves(planned(*nodes("abc"), *pods, wanted=wanted))) == 2


def test_the_cheapest_victims_go() -> None:
    pods = [
        pod("guaranteed", "a", qos="Guaranteed"),
        pod("high", "a", priority=5),
        pod("best-effort", "a", qos="BestEffort", cpu=None),
    ]
    assert list(moves(planned(*nodes("ab"), *pods))) == ["best-effort"]
