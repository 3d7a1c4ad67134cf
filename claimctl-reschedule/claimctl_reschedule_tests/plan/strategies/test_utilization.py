"""LowNodeUtilization: which nodes are over- and under-used, and what moves between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from claimctl.label_selectors import LabelSelector
from claimctl_reschedule.plan.inventory import DeviceCount
from claimctl_reschedule.plan.plan import Plan
from claimctl_reschedule.plan.planning import plan, plan_with
from claimctl_reschedule.plan.policy import (
    EvictionLimits,
    LowNodeUtilization,
    Namespaces,
    Policy,
    Profile,
    RemoveDuplicates,
    RunLimits,
)
from claimctl_reschedule.shapes.scheduling import SchedulingNode, SchedulingPod
from claimctl_reschedule_tests.support.no_devices import NoDevices, PodsAlone
from claimctl_reschedule_tests.support.scheduling import moves, node, observed, pod, reasons

Objects = list[SchedulingNode | SchedulingPod]
LOW = {"cpu": 20.0, "memory": 20.0, "pods": 20.0}
HIGH = {"cpu": 50.0, "memory": 50.0, "pods": 50.0}
GPU = "deviceclass.resource.kubernetes.io/gpu.example.com"


def policy(wanted: LowNodeUtilization, **more: Any) -> Policy:
    return Policy(profiles=(Profile(balance=(wanted,)),), **more)


def planned(
    *objects: SchedulingNode | SchedulingPod, low: Any = LOW, high: Any = HIGH, **more: Any
) -> Plan:
    return plan(
        observed(*objects),
        policy(LowNodeUtilization(thresholds=low, target_thresholds=high, **more)),
    )


def filled(where: str, count: int, cpu: str = "1", **parts: Any) -> Objects:
    """Pods of different owners, so that nothing spreads them."""
    return [
        pod(f"{where}{number:02}", where, f"{where}{number}", cpu, **parts)
        for number in range(count)
    ]


def notes(found: Plan) -> list[str]:
    return [each.text for each in found.notes]


def test_an_over_used_node_is_relieved_until_it_is_at_its_target() -> None:
    found = planned(node("a"), node("b"), *filled("a", 6))
    # 6 of 8 cpu is 75 %; at 4 of 8 the node is not above 50 % any more
    assert moves(found) == {"a00": ("a", "b"), "a01": ("a", "b")}
    assert found.moves[0].why == "a is over-used in cpu"
    assert notes(found) == []


def test_the_node_furthest_above_a_target_is_relieved_first_whatever_its_bytes() -> None:
    bytes_ = filled("b", 5, requests={"cpu": "1", "memory": "3Gi"})
    wanted = LowNodeUtilization(thresholds=LOW, target_thresholds=HIGH)
    found = plan(
        observed(node("b"), node("c"), node("z"), *bytes_, *filled("z", 7)),
        policy(wanted, limits=RunLimits(total=1)),
    )
    assert moves(found) == {"z00": ("z", "c")}


def test_nobody_is_over_used() -> None:
    found = planned(node("a"), node("b"), *filled("a", 4))
    assert (moves(found), notes(found)) == ({}, ["no node is over-used"])


def test_nobody_is_under_used() -> None:
    found = planned(node("a"), node("b"), *filled("a", 6), *filled("b", 2))
    assert (moves(found), notes(found)) == ({}, ["no node is under-used"])


def test_a_node_is_under_used_only_below_all_thresholds() -> None:
    at_it = filled("b", 1, cpu="1600m")
    below = filled("b", 1, cpu="1599m")
    assert notes(planned(node("a"), node("b"), *filled("a", 6), *at_it)) == [
        "no node is under-used"
    ]
    assert moves(planned(node("a"), node("b"), *filled("a", 6), *below)) != {}


@pytest.mark.parametrize("parts", [{"unschedulable": True}, {"ready": False}])
def test_a_node_that_takes_no_pods_is_not_under_used(parts: Any) -> None:
    found = planned(node("a"), node("b", **parts), *filled("a", 6))
    assert notes(found) == ["no node is under-used"]


def test_all_under_used() -> None:
    assert notes(planned(node("a"), node("b"))) == ["all nodes are under-used"]


def test_number_of_nodes() -> None:
    objects: Objects = [node("a"), node("b"), *filled("a", 6)]
    waiting = planned(*objects, number_of_nodes=1)
    assert moves(waiting) == {}
    assert notes(waiting) == ["numberOfNodes is 1: 1 under-used node is not enough to act"]
    assert moves(planned(*objects, node("c"), number_of_nodes=1)) != {}


def test_without_thresholds_it_says_so() -> None:
    found = planned(node("a"), node("b"), *filled("a", 8), low={}, high={})
    assert (moves(found), len(found.notes)) == ({}, 1)


def test_a_large_pod_that_would_overload_any_node_stays() -> None:
    found = planned(node("a"), node("b"), *filled("a", 1, cpu="5"))
    assert moves(found) == {}
    assert reasons(found) == {"a00": "NoBetterNode"}


def test_only_pods_that_use_what_is_exceeded_are_considered() -> None:
    none = pod("none", "a", "none", cpu=None, requests={"memory": "1Gi"}, age=1.0)
    found = planned(node("a"), node("b"), none, *filled("a", 6))
    assert "none" not in moves(found) | reasons(found)


def test_any_exceeded_resource_makes_a_node_over_used() -> None:
    tiny = filled("a", 6, cpu="10m")
    found = planned(node("a", pods=10), node("b", pods=10), *tiny)
    assert len(moves(found)) == 1
    assert found.moves[0].why == "a is over-used in pods"


def test_the_most_over_used_node_comes_first() -> None:
    objects: Objects = [node("a"), node("b"), node("c"), *filled("a", 5), *filled("b", 7)]
    found = planned(*objects)
    assert [move.pod.node for move in found.moves][:1] == ["b"]
    assert [move.pod.node for move in found.moves].count("a") == 1


def test_a_pod_stays_that_would_overload_a_node_which_scores_as_well_as_the_expected_one() -> None:
    """The scheduler takes any of them. How many pods a node can have is no part of its score."""
    for places, expected in ((110, {"p0": ("a", "b")}), (4, {})):
        nodes = [node("a"), node("b"), node("c", pods=places)]
        others = [pod(f"{name}{n}", name, None, cpu=None) for name in "bc" for n in range(2)]
        big = [pod("p0", "a", "p", cpu="3"), pod("q0", "a", "q", cpu="2")]
        limits = {"cpu": 30.0, "pods": 60.0}, {"cpu": 60.0, "pods": 70.0}
        wanted = LowNodeUtilization(thresholds=limits[0], target_thresholds=limits[1])
        made = plan(observed(*nodes, *others, *big), policy(wanted))
        assert moves(made) == expected


def test_a_limit_per_node() -> None:
    found = planned(node("a"), node("b"), *filled("a", 8), eviction_limits=EvictionLimits(node=1))
    assert len(moves(found)) == 1
    assert set(reasons(found).values()) == {"LimitPerNodeOfStrategy"}


def test_namespaces_that_are_left_out() -> None:
    found = planned(
        node("a"), node("b"), *filled("a", 6), evictable_namespaces=Namespaces(exclude=("team",))
    )
    assert moves(found) == {}
    assert set(reasons(found).values()) == {"NamespaceExcluded"}


def test_deviation_thresholds_are_around_the_mean() -> None:
    low = high = {"cpu": 10.0}
    # 50 %, 25 % and 0 %: the mean is 25 %
    objects: Objects = [node("a"), node("b"), node("c"), *filled("a", 4), *filled("b", 2)]
    found = planned(*objects, low=low, high=high, use_deviation_thresholds=True)
    assert moves(found) == {"a00": ("a", "c"), "a01": ("a", "c")}
    wide = {"cpu": 30.0}
    found = planned(*objects, low=wide, high=wide, use_deviation_thresholds=True)
    assert moves(found) == {}


def test_a_little_below_the_mean_is_not_under_used() -> None:
    """50 %, 25 % and 20 %: the mean is 31.7 %."""
    objects: Objects = [node(name) for name in "abc"]
    objects += [*filled("a", 4), *filled("b", 2), *filled("c", 1, cpu="1600m")]

    def found(below: float) -> Plan:
        low = {"cpu": below}
        return planned(*objects, low=low, high={"cpu": 10.0}, use_deviation_thresholds=True)

    assert notes(found(below=12.0)) == ["no node is under-used"]
    assert [name for name, _ in moves(found(below=11.0)).values()] == ["a"]


def test_the_expected_node_must_not_become_over_used() -> None:
    """The scheduler prefers c, which is large in cpu and short of places."""
    objects: Objects = [node("a"), node("b", cpu="8", pods=110), node("c", cpu="400", pods=3)]
    rest = [pod(f"c{number}", "c", f"c{number}", cpu="10m") for number in range(1)]
    found = planned(*objects, *rest, *filled("a", 6))
    assert moves(found) == {}
    assert set(reasons(found).values()) == {"NoBetterNode"}


def test_it_does_not_undo_what_duplicates_are_spread_for() -> None:
    """2 and 2 pods of a Job, which are not spread by default: a move would make 1 and 3."""
    pods = [pod(f"p{number}", "a", cpu="3", kind="Job") for number in range(2)]
    pods += [pod(f"q{number}", "b", cpu="10m", kind="Job") for number in range(2)]
    seen = observed(node("a"), node("b"), *pods)
    alone = (LowNodeUtilization(thresholds=LOW, target_thresholds=HIGH),)
    assert len(moves(plan(seen, Policy(profiles=(Profile(balance=alone),))))) == 1
    for both in ((RemoveDuplicates(), *alone), (*alone, RemoveDuplicates())):
        made = plan(seen, Policy(profiles=(Profile(balance=both),)))
        assert moves(made) == {}
        assert set(reasons(made).values()) == {"NoBetterNode"}


def test_only_chosen_nodes_are_balanced() -> None:
    chosen = LabelSelector(match_labels={"pool": "x"})
    inside, outside = {"labels": {"pool": "x"}}, {"labels": {"pool": "y"}}
    wanted = LowNodeUtilization(thresholds=LOW, target_thresholds=HIGH)

    def found(**where: Any) -> Plan:
        objects: Objects = [node("a", **where["a"]), node("b", **where["b"]), *filled("a", 6)]
        return plan(observed(*objects), policy(wanted, node_selector=chosen))

    assert moves(found(a=inside, b=inside)) != {}
    assert notes(found(a=outside, b=inside)) == ["all nodes are under-used"]
    assert notes(found(a=inside, b=outside)) == ["no node is under-used"]


class FourGpus(NoDevices):
    """Four GPUs on each node with a name of g; a pod uses one."""

    def __init__(self, used: dict[str, int]) -> None:
        super().__init__()
        self.used = used

    def usage(self, device_class: str) -> Mapping[str, DeviceCount]:
        return {name: DeviceCount(used, 4) for name, used in self.used.items()}

    def requested(self, pod: SchedulingPod, device_class: str) -> int:
        return int(pod.metadata.name.startswith("g"))


def test_nodes_without_the_devices_that_the_thresholds_name_are_left_alone() -> None:
    wanted = LowNodeUtilization(thresholds={GPU: 25.0}, target_thresholds={GPU: 75.0})
    objects = observed(node("g1"), node("plain"), *filled("g1", 4))
    found = plan_with(objects, policy(wanted), FourGpus({"g1": 4}), PodsAlone())
    assert (moves(found), notes(found)) == ({}, ["no node is under-used"])


def test_held_devices_count_as_used_and_empty_nodes_take_pods() -> None:
    wanted = LowNodeUtilization(thresholds={GPU: 25.0}, target_thresholds={GPU: 75.0})
    objects = observed(node("g1"), node("g2"), *filled("g1", 4))
    found = plan_with(
        objects,
        policy(wanted, limits=RunLimits(total=1)),
        FourGpus({"g1": 4, "g2": 0}),
        PodsAlone(),
    )
    assert moves(found) == {"g100": ("g1", "g2")}
