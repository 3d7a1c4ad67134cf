"""Whether a node fits a pod: one node, one pod, one rule of the scheduler's filters a case."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.wire.base import from_plain
from claimctl_reschedule.plan.fit import Fitter, Unknown, Volumes
from claimctl_reschedule.plan.world import World
from claimctl_reschedule.shapes.scheduling import (
    PersistentVolume,
    PersistentVolumeClaim,
    SchedulingNode,
    SchedulingPod,
)
from claimctl_reschedule_tests.support.scheduling import node, pod


def rule(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    wanted = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": wanted}}


def tolerating(**toleration: str) -> dict[str, Any]:
    return {"tolerations": [toleration]}


def port(number: int, **more: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "ports": [{"hostPort": number, **more}]}]}


ZONE = {"zone": "x", "size": "3"}
NO_GPU = pod("p", requests={"example.com/gpu": "1"})
CASES: dict[str, tuple[SchedulingNode, SchedulingPod, str]] = {
    "an empty node": (node("a"), pod("p"), ""),
    "a node that is not ready": (node("a", ready=False), pod("p"), "not ready"),
    "a cordon": (node("a", unschedulable=True), pod("p"), "cordoned"),
    "a tolerated cordon": (
        node("a", unschedulable=True),
        pod("p", spec=tolerating(operator="Exists")),
        "",
    ),
    "a taint": (node("a", taints=(("k", "NoSchedule"),)), pod("p"), "taint"),
    "a tolerated taint": (
        node("a", taints=(("k", "NoSchedule"),)),
        pod("p", spec=tolerating(key="k", operator="Exists")),
        "",
    ),
    "a taint that evicts": (node("a", taints=(("k", "NoExecute"),)), pod("p"), "taint"),
    "a taint that only warns": (node("a", taints=(("k", "PreferNoSchedule"),)), pod("p"), ""),
    "a node selector": (node("a", labels=ZONE), pod("p", spec={"nodeSelector": {"zone": "x"}}), ""),
    "another node selector": (
        node("a", labels=ZONE),
        pod("p", spec={"nodeSelector": {"zone": "x", "size": "4"}}),
        "node selector or affinity",
    ),
    "one term of several is enough": (
        node("a", labels=ZONE),
        pod(
            "p",
            spec=required(
                {"matchExpressions": [rule("zone", "In", "y")]},
                {"matchExpressions": [rule("size", "Gt", "2"), rule("zone", "Exists")]},
            ),
        ),
        "",
    ),
    "all rules of a term must be met": (
        node("a", labels=ZONE),
        pod(
            "p",
            spec=required({"matchExpressions": [rule("zone", "Exists"), rule("size", "Lt", "3")]}),
        ),
        "node selector or affinity",
    ),
    "a term without rules selects nothing": (
        node("a"),
        pod("p", spec=required({})),
        "node selector or affinity",
    ),
    "fields are matched as labels are": (
        node("a"),
        pod("p", spec=required({"matchFields": [rule("metadata.name", "In", "a")]})),
        "",
    ),
    "no room for its cpu": (node("a", cpu="1"), pod("p", cpu="1001m"), "insufficient cpu"),
    "just enough cpu": (node("a", cpu="1"), pod("p", cpu="1"), ""),
    "no place": (node("a", pods=0), pod("p"), "too many pods"),
    "a resource that the node lacks": (node("a"), NO_GPU, "insufficient example.com/gpu"),
    "a resource that the node has": (node("a", more={"example.com/gpu": "1"}), NO_GPU, ""),
    "nothing of a resource that the node lacks": (
        node("a"),
        pod("p", requests={"example.com/gpu": "0"}),
        "",
    ),
    "a resource that devices provide": (
        node("a"),
        pod("p", requests={"example.com/drawn": "1"}),
        "",
    ),
    "a resource that devices provide elsewhere": (
        node("a", more={"example.com/drawn": "1"}),
        pod("p", requests={"example.com/drawn": "2"}),
        "insufficient example.com/drawn",
    ),
}


def problem(where: SchedulingNode, asking: SchedulingPod, *others: SchedulingPod) -> str:
    world = World([where, node("other")], others, {})
    fitter = Fitter(world, Volumes([], []), frozenset({"example.com/drawn"}))
    return fitter.of(world.seen(asking)).problem(world.nodes[where.metadata.name])


@pytest.mark.parametrize("name", CASES)
def test_one_node(name: str) -> None:
    where, asking, expected = CASES[name]
    assert problem(where, asking) == expected


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (pod("q", "a", cpu="5"), "insufficient cpu"),
        (pod("q", "a", cpu="4"), ""),
        (pod("q", "a", cpu="5", deleting=True), "insufficient cpu"),
        (pod("q", "a", cpu="5", phase="Succeeded"), ""),
        (pod("q", "other", cpu="5"), ""),
    ],
)
def test_the_other_pods_take_up_room(other: SchedulingPod, expected: str) -> None:
    assert problem(node("a", cpu="8"), pod("p", cpu="4"), other) == expected


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (port(80), "host port in use"),
        (port(81), ""),
        (port(80, protocol="UDP"), ""),
        (port(80, hostIP="10.0.0.1"), "host port in use"),
    ],
)
def test_a_host_port_is_taken_once(other: dict[str, Any], expected: str) -> None:
    assert problem(node("a"), pod("p", spec=port(80)), pod("q", "a", spec=other)) == expected


def test_the_same_port_at_two_addresses_is_no_conflict() -> None:
    one, other = port(80, hostIP="10.0.0.1"), port(80, hostIP="10.0.0.2")
    assert problem(node("a"), pod("p", spec=one), pod("q", "a", spec=other)) == ""
    assert problem(node("a"), pod("p", spec=one), pod("q", "a", spec=one)) == "host port in use"


def test_affinity_to_pods_and_spread_are_asked() -> None:
    """Their rules are in test_affinity.py and test_spread.py."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}
    apart = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
    }
    asking = pod("p", spec={"affinity": apart})
    assert problem(node("a"), asking, pod("q", "a")) == "pod anti-affinity"
    asking = pod("p", spec={"topologySpreadConstraints": [term]})
    assert problem(node("a"), asking, pod("q", "a"), pod("r", "a")) == "topology spread"


def test_the_answers_follow_the_moves() -> None:
    world = World([node("a", cpu="1")], [pod("q", "a", cpu="1")], {})
    fitter = Fitter(world, Volumes([], []))
    asking = world.seen(pod("p", cpu="1"))
    assert fitter.of(asking).problem(world.nodes["a"]) == "insufficient cpu"
    world.remove(world.pods["uid-team-q"])
    assert fitter.of(asking).problem(world.nodes["a"]) == ""


def test_volumes_bind_a_pod_to_their_nodes() -> None:
    terms = [{"matchFields": [rule("metadata.name", "In", "a")]}]
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
    volume = from_plain({"metadata": {"name": "pv"}, "spec": affinity}, PersistentVolume)
    claim = from_plain(
        {"metadata": {"namespace": "team", "name": "disk"}, "spec": {"volumeName": "pv"}},
        PersistentVolumeClaim,
    )
    world = World([node("a"), node("b")], [], {})
    fitter = Fitter(world, Volumes([claim], [volume]))
    mounted = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "disk"}}]}
    fitting = fitter.of(world.seen(pod("p", spec=mounted)))
    assert [fitting.problem(each) for each in world.nodes.values()] == ["", "volume node affinity"]


@pytest.mark.parametrize(
    "spec",
    [
        tolerating(key="k", operator="Gt", value="1"),
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "lost"}}]},
    ],
)
def test_what_claimctl_does_not_know_is_not_guessed(spec: dict[str, Any]) -> None:
    with pytest.raises(Unknown):
        problem(node("a"), pod("p", spec=spec))
