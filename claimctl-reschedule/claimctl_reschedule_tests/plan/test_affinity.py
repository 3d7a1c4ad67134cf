"""Required affinity between pods, in both directions."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl_reschedule.plan.affinity import check_of
from claimctl_reschedule.plan.world import World
from claimctl_reschedule.shapes.scheduling import SchedulingPod
from claimctl_reschedule_tests.support.scheduling import node, pod

NODES = [
    node("a1", labels={"zone": "a"}),
    node("a2", labels={"zone": "a"}),
    node("b1", labels={"zone": "b"}),
    node("none"),
]


def term(app: str, **more: Any) -> dict[str, Any]:
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}, **more}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def apart(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def web(affinity: dict[str, Any]) -> SchedulingPod:
    return pod("p", spec={"affinity": affinity})


DB = pod("db", "a1", "db")
AVOIDS_WEB = pod("db", "a1", "db", spec={"affinity": apart(term("web"))})
ALL, NONE = ["a1", "a2", "b1", "none"], list[str]()
CASES: dict[str, tuple[SchedulingPod, list[SchedulingPod], list[str]]] = {
    "no terms": (pod("p"), [DB], ALL),
    "near a pod: its whole zone": (web(near(term("db"))), [DB], ["a1", "a2"]),
    "near a pod that is not there": (web(near(term("db"))), [], NONE),
    "near its own kind: the first goes anywhere in a zone": (
        web(near(term("web"))),
        [DB],
        ["a1", "a2", "b1"],
    ),
    "near its own kind: the second goes to the first": (
        web(near(term("web"))),
        [pod("q", "b1")],
        ["b1"],
    ),
    "near pods of which each is meant by all terms": (
        web(near(term("db"), {"topologyKey": "zone", "labelSelector": {}})),
        [DB, pod("q", "b1", "other")],
        ["a1", "a2"],
    ),
    "near two kinds that no pod is at once": (
        web(near(term("db"), term("other"))),
        [DB, pod("q", "a1", "other")],
        NONE,
    ),
    "apart from a pod": (web(apart(term("db"))), [DB], ["b1", "none"]),
    "apart from a pod that is not there": (web(apart(term("db"))), [], ALL),
    "apart from either of two": (
        web(apart(term("db"), term("other"))),
        [DB, pod("q", "b1", "other")],
        ["none"],
    ),
    "a pod that is there wants to be apart": (pod("p"), [AVOIDS_WEB], ["b1", "none"]),
    "a pod that is there wants to be apart from others": (
        pod("p", owner="x"),
        [AVOIDS_WEB],
        ALL,
    ),
    "in another namespace nobody is meant": (
        web(apart(term("db"))),
        [pod("db", "a1", "db", namespace="other")],
        ALL,
    ),
    "in a named namespace": (
        web(apart(term("db", namespaces=["other"]))),
        [pod("db", "a1", "db", namespace="other"), pod("d", "b1", "db")],
        ["b1", "none"],
    ),
    "a pod that is there means the namespace": (
        pod("p"),
        [
            pod(
                "db",
                "b1",
                "db",
                namespace="other",
                spec={"affinity": apart(term("web", namespaceSelector={}))},
            )
        ],
        ["a1", "a2", "none"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_nodes_that_fit(name: str) -> None:
    asking, others, expected = CASES[name]
    world = World(NODES, others, {})
    check = check_of(world, world.seen(asking))
    found = [each for each in world.nodes.values() if check is None or not check.problem(each)]
    assert [each.name for each in found] == expected


def test_the_problem_names_the_direction() -> None:
    world = World(NODES, [DB], {})
    far = check_of(world, world.seen(web(near(term("db")))))
    close = check_of(world, world.seen(web(apart(term("db")))))
    assert far is not None
    assert close is not None
    assert far.problem(world.nodes["b1"]) == "pod affinity"
    assert close.problem(world.nodes["a1"]) == "pod anti-affinity"
