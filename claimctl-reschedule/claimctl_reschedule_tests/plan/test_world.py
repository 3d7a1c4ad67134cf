"""The model: what pods take up, and changes that can be taken back."""

from __future__ import annotations

from typing import Any

from claimctl.label_selectors import LabelSelector, LabelSelectorRequirement
from claimctl.wire.base import from_plain
from claimctl_reschedule.plan.world import World, WorldPod, host_ports, room_of
from claimctl_reschedule.shapes.scheduling import PodAffinityTerm
from claimctl_reschedule_tests.support.scheduling import node, pod

WEB = LabelSelector(match_labels={"app": "web"})
TEAM = frozenset({"team"})
ANTI = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
}
PORT = [{"name": "c", "image": "i", "ports": [{"hostPort": 80}]}]


def state(world: World) -> dict[str, Any]:
    """All that moves change, without what is zero."""
    return {
        name: (
            {resource: number for resource, number in each.used.items() if number},
            dict(each.left),
            tuple(each.scored),
            sorted(each.pods),
            dict(each.ports),
            [dict(term.per_node) for term in world.anti_terms(world.seen(pod("any")))],
            dict(world.matching(TEAM, WEB)),
            {key: dict(value) for key, value in world.groups.items() if value},
            {key: dict(value) for key, value in world.owned.items() if value},
            {key: sorted(value) for key, value in world.by_owner.items() if value},
        )
        for name, each in world.nodes.items()
    }


def full() -> tuple[World, WorldPod]:
    pods = [
        pod("p", "a", cpu="1", spec={"containers": PORT, "affinity": ANTI}),
        pod("q", "a", cpu="2"),
        pod("r", "b", "db"),
    ]
    world = World([node("b"), node("a")], pods, {})
    return world, world.pods["uid-team-p"]


def test_pods_count_on_their_nodes() -> None:
    world, _ = full()
    assert list(world.nodes) == ["a", "b"]
    assert world.nodes["a"].used == {"pods": 2, "cpu": 2000}
    assert world.nodes["b"].used == {"pods": 1, "cpu": 100}
    assert world.nodes["a"].allocatable["cpu"] == 8000
    assert (world.nodes["a"].left["cpu"], world.nodes["a"].left["pods"]) == (6000, 108)


def test_a_move_counts_and_can_be_taken_back() -> None:
    world, moved = full()
    world.matching(TEAM, WEB)
    before = state(world)
    mark = world.mark()
    world.remove(moved)
    world.add(moved, "b")
    assert moved.node == "b"
    assert world.nodes["b"].used["pods"] == 2
    assert (world.nodes["a"].left["pods"], world.nodes["b"].left["pods"]) == (109, 108)
    assert world.nodes["b"].ports == {moved.uid: (("TCP", "0.0.0.0", 80),)}
    assert world.matching(TEAM, WEB) == {"a": 1, "b": 1}
    assert [dict(each.per_node) for each in world.anti_terms(moved)] == [{"b": 1}]
    after = state(world)
    world.rollback(mark)
    assert moved.node == "a"
    assert state(world) == before != after


def test_a_rollback_goes_back_to_its_mark_and_no_further() -> None:
    world, moved = full()
    world.remove(moved)
    mark = world.mark()
    world.add(moved, "b")
    world.rollback(mark)
    assert moved.uid not in world.pods
    world.rollback(0)
    assert world.pods[moved.uid].node == "a"


def test_who_takes_up_room() -> None:
    nominated = {"nominatedNodeName": "b"}
    assert room_of(pod("p", "a")) == "a"
    assert room_of(pod("p", "a", deleting=True)) == "a"
    assert room_of(pod("p", "a", phase="Succeeded")) == ""
    assert room_of(pod("p", "a", phase="Failed")) == ""
    assert room_of(pod("p", phase="Pending")) == ""
    assert room_of(pod("p", phase="Pending", status=nominated)) == "b"


def test_pods_on_nodes_that_are_gone_count_nowhere() -> None:
    world = World([node("a")], [pod("p", "gone")], {})
    assert world.pods == {}


def test_a_pod_whose_requests_cannot_be_read_takes_a_place() -> None:
    world = World([node("a")], [pod("p", "a", cpu="many")], {})
    assert world.nodes["a"].used == {"pods": 1}
    assert "not a quantity" in world.unreadable["uid-team-p"]


def test_a_node_whose_allocatable_cannot_be_read_has_no_room() -> None:
    assert World([node("a", cpu="many")], [], {}).nodes["a"].allocatable == {}


def test_pods_that_go_do_not_stay() -> None:
    world = World([node("a")], [pod("p", "a", deleting=True), pod("q", "a")], {})
    assert world.matching(TEAM, WEB) == {"a": 2}
    assert world.matching(TEAM, WEB, staying=True) == {"a": 1}
    assert list(world.owned.values()) == [{"a": 1}]


def test_pods_of_chosen_or_of_all_namespaces_match() -> None:
    pods = [pod("p", "a"), pod("q", "b", namespace="other")]
    world = World([node("a"), node("b")], pods, {})
    assert world.matching(TEAM, WEB) == {"a": 1}
    assert world.matching(None, WEB) == {"a": 1, "b": 1}
    assert world.matching(frozenset({"team", "other"}), WEB) == {"a": 1, "b": 1}


def test_the_namespaces_of_a_term() -> None:
    world = World([], [], {"x": {"tier": "back"}, "y": {}})

    def means(**term: Any) -> frozenset[str] | None:
        return world.namespaces_of(from_plain(term, PodAffinityTerm), "team")

    assert means() == TEAM
    assert means(namespaces=["x"]) == frozenset({"x"})
    assert means(namespaceSelector={}) is None
    assert means(namespaceSelector={"matchLabels": {"tier": "back"}}) == frozenset({"x"})
    both = means(namespaces=["y"], namespaceSelector={"matchLabels": {"tier": "back"}})
    assert both == frozenset({"x", "y"})


def test_terms_of_running_pods_are_found_by_the_pods_they_mean() -> None:
    world, _ = full()

    def found(name: str, **parts: Any) -> int:
        return len(list(world.anti_terms(world.seen(pod(name, **parts)))))

    assert found("web") == 1
    assert found("more", labels={"app": "web", "tier": "front"}) == 1
    assert found("other", labels={"app": "db"}) == 0
    assert found("elsewhere", namespace="other") == 0


def test_a_selector_of_two_labels_is_found_by_either() -> None:
    """Whatever the order of the labels, a move counts."""
    both = LabelSelector(match_labels={"tier": "front", "app": "web"})
    labels = {"tier": "front", "app": "web"}
    world = World([node("a"), node("b")], [pod("p", "a", labels=labels)], {})
    rules = [LabelSelectorRequirement(key="tier", operator="Exists")]
    exists = LabelSelector(match_expressions=tuple(rules))
    for selector in (both, exists, LabelSelector()):
        for namespaces in (TEAM, None):
            assert world.matching(namespaces, selector) == {"a": 1}
    moved = world.pods["uid-team-p"]
    world.remove(moved)
    world.add(moved, "b")
    for selector in (both, exists, LabelSelector()):
        for namespaces in (TEAM, None):
            assert world.matching(namespaces, selector) == {"b": 1}


def test_host_ports_of_containers_and_sidecars_count() -> None:
    port = {"ports": [{"hostPort": 1, "protocol": "UDP", "hostIP": "10.0.0.1"}]}
    inits = [{"name": "i", **port}, {"name": "s", "restartPolicy": "Always", **port}]
    found = host_ports(pod("p", spec={"containers": PORT, "initContainers": inits}))
    assert found == (("TCP", "0.0.0.0", 80), ("UDP", "10.0.0.1", 1))
