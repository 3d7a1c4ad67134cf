"""The order of victims: each rule decides where those before it find the pods equal."""

from __future__ import annotations

from claimctl_reschedule.plan.facts import PREFER_NO_EVICTION, victim_rank
from claimctl_reschedule.plan.world import World
from claimctl_reschedule_tests.support.scheduling import node, pod

PREFERS = {PREFER_NO_EVICTION: "true"}
IN_ORDER = [
    pod("sick", "a", ready=False, priority=100, qos="Guaranteed", annotations=PREFERS, age=9e9),
    pod("low", "a", priority=-5, qos="Guaranteed", annotations=PREFERS, age=9e8),
    pod("best-effort", "a", qos="BestEffort", annotations=PREFERS, age=9e7),
    pod("young", "a", age=10.0),
    pod("a-old", "a", age=1000.0),
    pod("z-old", "a", age=1000.0),
    pod("prefers-none", "a", annotations=PREFERS, age=1.0),
    pod("guaranteed", "a", qos="Guaranteed", age=1.0),
    pod("high", "a", priority=1, qos="BestEffort", age=1.0),
]


def test_the_order_of_victims() -> None:
    world = World([node("a")], [], {})
    ranked = sorted((world.seen(each) for each in reversed(IN_ORDER)), key=victim_rank)
    assert [each.pod.metadata.name for each in ranked] == [each.metadata.name for each in IN_ORDER]


def test_without_a_class_in_the_status_a_pod_with_requests_is_burstable() -> None:
    world = World([node("a")], [], {})
    none = world.seen(pod("none", "a", cpu=None, qos=""))
    some = world.seen(pod("asks", "a", qos=""))
    known = world.seen(pod("bust", "a", qos="Burstable"))
    assert sorted([known, some, none], key=victim_rank) == [none, some, known]
