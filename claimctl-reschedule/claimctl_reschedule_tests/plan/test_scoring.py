"""Scores of nodes, computed by hand by the rules of the default scheduler."""

from __future__ import annotations

from typing import Any

from claimctl_reschedule.plan.scoring import scores
from claimctl_reschedule.plan.world import HOSTNAME, World
from claimctl_reschedule.shapes.scheduling import SchedulingNode, SchedulingPod
from claimctl_reschedule_tests.support.scheduling import node, pod

GI = 1024**3
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def scored(
    nodes: list[SchedulingNode], asking: SchedulingPod, *others: SchedulingPod
) -> dict[str, int]:
    world = World(nodes, others, {})
    found = scores(world, world.seen(asking), list(world.nodes.values()))
    return dict(zip(world.nodes, found, strict=True))


def bare(name: str = "p", **requests: str) -> SchedulingPod:
    """A pod without an owner: no default spread."""
    return pod(name, owner=None, cpu=None, requests=requests)


def test_least_allocated_and_balanced() -> None:
    nodes = [node("a", cpu="4", memory="8Gi"), node("b", cpu="8", memory="8Gi")]
    # a: cpu 75 % left, memory 75 % left: 75 + 100; b: 87 (87.5) and 75: 81 + (1 - 0.0625) * 100
    assert scored(nodes, bare(cpu="1", memory="2Gi")) == {"a": 75 + 100, "b": 81 + 93}


def test_what_is_used_counts() -> None:
    nodes = [node("a", cpu="4", memory="8Gi")]
    used = pod("q", "a", owner=None, cpu="1", requests={"memory": "4Gi"})
    # cpu 50 % left, memory 25 % left; half of the cpu and 3/4 of the memory are used
    assert scored(nodes, bare(cpu="1", memory="2Gi"), used) == {"a": 37 + 87}


def test_a_pod_without_requests_counts_with_defaults_and_is_not_balanced() -> None:
    nodes = [node("a", cpu="1", memory=str(2000 * 1024**2))]
    assert scored(nodes, bare()) == {"a": 90}


def test_a_node_that_would_be_too_full_scores_nothing_for_room() -> None:
    assert scored([node("a", cpu="1", memory="0")], bare(cpu="2")) == {"a": 0 + 100}


def test_taints_that_only_warn() -> None:
    nodes = [
        node("a"),
        node("b", taints=(("k", "PreferNoSchedule"),)),
        node("c", taints=(("k", "PreferNoSchedule"), ("l", "PreferNoSchedule"))),
    ]
    found = scored(nodes, bare(cpu="1"))
    assert found["a"] - found["b"] == 3 * 50
    assert found["a"] - found["c"] == 3 * 100
    tolerates = {"tolerations": [{"key": "k", "operator": "Exists"}]}
    found = scored(nodes[:2], pod("p", owner=None, spec=tolerates))
    assert found["a"] == found["b"]


def test_preferred_nodes() -> None:
    def prefer(weight: int, zone: str) -> dict[str, Any]:
        rule = {"key": "zone", "operator": "In", "values": [zone]}
        return {"weight": weight, "preference": {"matchExpressions": [rule]}}

    preferred = {
        "preferredDuringSchedulingIgnoredDuringExecution": [prefer(50, "a"), prefer(20, "b")]
    }
    asking = pod("p", owner=None, spec={"affinity": {"nodeAffinity": preferred}})
    nodes = [node(name, labels={"zone": name}) for name in "abc"]
    found = scored(nodes, asking)
    assert found["a"] - found["c"] == 2 * 100
    assert found["b"] - found["c"] == 2 * 40


def test_the_pods_of_one_owner_are_spread_without_asking() -> None:
    nodes = [node("a"), node("b"), node("c")]
    others = [pod(f"q{number}", name, cpu=None) for number, name in enumerate("aab")]
    found = scored(nodes, pod("p", cpu=None), *others)
    alone = scored(nodes, pod("p", owner=None, cpu=None), *others)
    # by log(5): a 2 * 1.609 + 2 = 5, b 4, c 2; normalized by (5 + 2 - x) / 5
    assert {name: found[name] - alone[name] for name in found} == {
        "a": 2 * 40,
        "b": 2 * 60,
        "c": 2 * 100,
    }


def test_the_pods_of_one_owner_are_spread_over_zones() -> None:
    nodes = [node(name, labels={"topology.kubernetes.io/zone": name[0]}) for name in ("x1", "x2")]
    nodes.append(node("y1", labels={"topology.kubernetes.io/zone": "y"}))
    found = scored(nodes, pod("p", cpu=None), pod("q", "x1", cpu=None))
    assert found["x1"] < found["x2"] < found["y1"]


def test_a_job_is_not_spread_without_asking() -> None:
    nodes = [node("a"), node("b", cpu="8", memory="32Gi")]
    others = [pod("q", "a", kind="Job", cpu=None)]
    with_it = scored(nodes, pod("p", kind="Job", cpu=None), *others)
    assert with_it == scored(nodes, bare(), *others)


def test_soft_constraints() -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    nodes = [node(name, labels={"zone": name}) for name in "ab"] + [node("none")]
    spec = {"topologySpreadConstraints": [constraint]}
    others = [pod(f"q{number}", "a", cpu=None) for number in range(2)]
    found = scored(nodes, pod("p", owner="web", cpu=None, spec=spec), *others)
    alone = scored(nodes, bare(), *others)
    # a: 2 * log(4) = 2.77, rounded 3; b: 0; a node without the label: nothing
    assert {name: found[name] - alone[name] for name in found} == {
        "a": 0,
        "b": 2 * 100,
        "none": 0,
    }


def test_preferred_pods() -> None:
    def prefer(app: str, weight: int) -> dict[str, Any]:
        term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}}
        return {"weight": weight, "podAffinityTerm": term}

    def preferred(*terms: dict[str, Any]) -> dict[str, Any]:
        return {"preferredDuringSchedulingIgnoredDuringExecution": list(terms)}

    affinity = {
        "podAffinity": preferred(prefer("db", 10)),
        "podAntiAffinity": preferred(prefer("noise", 10)),
    }
    nodes = [node(name, labels={"zone": name}) for name in "abc"]
    others = [pod("d", "a", "db", cpu=None), pod("n", "b", "noise", cpu=None)]
    found = scored(nodes, pod("p", owner=None, cpu=None, spec={"affinity": affinity}), *others)
    alone = scored(nodes, bare(), *others)
    assert {name: found[name] - alone[name] for name in found} == {
        "a": 2 * 100,
        "b": 0,
        "c": 2 * 50,
    }


def test_what_pods_on_nodes_want_near_them_counts() -> None:
    """The terms of a pod that runs: preferred ones with their weights, required affinity with 1."""
    nodes = [node("a"), node("b"), node("c")]
    near_web = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
    wishes: list[dict[str, Any]] = [
        {"podAffinity": {REQUIRED: [near_web]}},
        {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": near_web}]}},
    ]
    asking = pod("p", owner=None, labels={"app": "web"})
    others = [
        pod(f"q{number}", each, owner=None, spec={"affinity": wish})
        for number, (each, wish) in enumerate(zip("ab", wishes, strict=True))
    ]
    plain = [pod(each.metadata.name, each.spec.node_name, owner=None) for each in others]
    found, before = scored(nodes, asking, *others), scored(nodes, asking, *plain)
    # 1, -1 and 0 become 100, 0 and 50
    assert {name: found[name] - before[name] for name in found} == {"a": 200, "b": 0, "c": 100}
    stranger = pod("p", owner=None, labels={"app": "db"})
    assert scored(nodes, stranger, *others) == scored(nodes, stranger, *plain)


def test_what_a_node_lacks_does_not_count() -> None:
    """75 % of the memory is left, and nothing is out of balance."""
    assert scored([node("a", cpu="0", memory="8Gi")], bare(memory="2Gi")) == {"a": 75 + 100}
