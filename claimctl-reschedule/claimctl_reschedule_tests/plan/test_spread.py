"""Hard topology spread constraints."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.wire.base import from_plain
from claimctl_reschedule.plan.fit import wanted_nodes
from claimctl_reschedule.plan.spread import checks_of, selector_of
from claimctl_reschedule.plan.world import World
from claimctl_reschedule.shapes.scheduling import SchedulingPod, TopologySpreadConstraint
from claimctl_reschedule_tests.support.scheduling import node, pod

NODES = [
    node("a1", labels={"zone": "a", "tier": "x"}),
    node("a2", labels={"zone": "a"}, taints=(("k", "NoSchedule"),)),
    node("b1", labels={"zone": "b"}),
    node("none"),
]
WEB = {"matchLabels": {"app": "web"}}


def constraint(**more: Any) -> dict[str, Any]:
    return {"maxSkew": 1, "topologyKey": "zone", "labelSelector": WEB, **more}


def spread(*constraints: dict[str, Any], **spec: Any) -> SchedulingPod:
    return pod("p", spec={"topologySpreadConstraints": list(constraints), **spec})


def there(*where: str, **parts: Any) -> list[SchedulingPod]:
    return [pod(f"q{number}", name, **parts) for number, name in enumerate(where)]


ZONES = ["a1", "a2", "b1"]
CASES: dict[str, tuple[SchedulingPod, list[SchedulingPod], list[str]]] = {
    "no constraint": (pod("p"), there("a1", "a1"), ["a1", "a2", "b1", "none"]),
    "the first pod": (spread(constraint()), [], ZONES),
    "the second goes to the other zone": (spread(constraint()), there("a1"), ["b1"]),
    "the third goes anywhere": (spread(constraint()), there("a1", "b1"), ZONES),
    "a larger skew": (spread(constraint(maxSkew=2)), there("a1"), ZONES),
    "a soft constraint is no filter": (
        spread(constraint(whenUnsatisfiable="ScheduleAnyway")),
        there("a1"),
        ["a1", "a2", "b1", "none"],
    ),
    "a pod that the selector does not mean": (
        spread(constraint(labelSelector={"matchLabels": {"app": "db"}})),
        [pod("d", "a1", "db")],
        ZONES,
    ),
    "pods that go do not count": (spread(constraint()), there("a1", deleting=True), ZONES),
    "pods of another namespace do not count": (
        spread(constraint()),
        there("a1", namespace="other"),
        ZONES,
    ),
    "fewer domains than wanted: none may have more than the skew": (
        spread(constraint(minDomains=3)),
        there("a1", "b1"),
        [],
    ),
    "as many domains as wanted": (spread(constraint(minDomains=2)), there("a1", "b1"), ZONES),
    "nodes that the pod cannot use are no domains": (
        spread(constraint(), nodeSelector={"zone": "a"}),
        there("a1"),
        ZONES,
    ),
    "nodes that the pod cannot use are domains if it says so": (
        spread(constraint(nodeAffinityPolicy="Ignore"), nodeSelector={"zone": "a"}),
        there("a1"),
        ["b1"],
    ),
    "pods on tainted nodes count": (spread(constraint()), there("a2"), ["b1"]),
    "pods on tainted nodes do not count if it says so": (
        spread(constraint(nodeTaintsPolicy="Honor")),
        there("a2"),
        ZONES,
    ),
    "two constraints": (
        spread(constraint(), constraint(topologyKey="kubernetes.io/hostname")),
        there("a1", "b1", "b1"),
        ["a2"],
    ),
    "two constraints: nodes without both labels are no domains": (
        spread(constraint(), constraint(topologyKey="tier", maxSkew=5)),
        there("a1"),
        ["a1"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_nodes_that_fit(name: str) -> None:
    asking, others, expected = CASES[name]
    world = World(NODES, others, {})
    seen = world.seen(asking)
    checks = checks_of(world, seen, wanted_nodes(asking))
    found = [each for each in world.nodes.values() if not any(c.problem(each) for c in checks)]
    assert [each.name for each in found] == expected


def test_what_was_found_for_one_pod_is_not_taken_for_a_pod_with_other_wishes() -> None:
    world = World(NODES, there("a1"), {})
    honest = constraint(nodeTaintsPolicy="Honor")
    for asking, expected in (
        (spread(constraint()), ["b1"]),
        (spread(constraint(), nodeSelector={"zone": "a"}), ZONES),
        (spread(constraint(nodeAffinityPolicy="Ignore"), nodeSelector={"zone": "a"}), ["b1"]),
        (spread(honest), ["b1"]),
        (spread(honest, tolerations=[{"operator": "Exists"}]), ["b1"]),
        (spread(constraint(topologyKey="tier")), ["a1"]),
    ):
        seen = world.seen(asking)
        checks = checks_of(world, seen, wanted_nodes(asking))
        found = [each for each in world.nodes.values() if not any(c.problem(each) for c in checks)]
        assert [each.name for each in found] == expected


def test_the_values_of_chosen_labels_narrow_the_selector() -> None:
    world = World(NODES, [], {})
    seen = world.seen(pod("p", labels={"app": "web", "version": "2"}))
    keys = constraint(matchLabelKeys=["version", "absent"])
    selector = selector_of(from_plain(keys, TopologySpreadConstraint), seen)
    assert selector is not None
    assert [(each.key, each.values) for each in selector.match_expressions] == [("version", ("2",))]
