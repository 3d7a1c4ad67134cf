"""Budgets: what the eviction subresource of a real server allows, counted over a whole plan."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.wire.resources import kind_of
from claimctl.wire.unreadable import Unreadable
from claimctl_reschedule.plan.budgets import Budgets
from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule.plan.world import World, WorldPod
from claimctl_reschedule.shapes.scheduling import PodDisruptionBudget, SchedulingPod
from claimctl_reschedule_tests.support.scheduling import budget, node, pod

WEB = {"matchLabels": {"app": "web"}}
EVERYTHING: dict[str, Any] = {}


def seen(*pods: SchedulingPod) -> list[WorldPod]:
    world = World([node("a")], [], {})
    return [world.seen(each) for each in pods]


def reason(budgets: Budgets, *pods: SchedulingPod) -> Ground | None:
    found = budgets.obstacle(seen(*pods))
    return found.reason if found else None


SICK = pod("p", "a", ready=False)
CASES = {
    "without a budget everything goes": ((), pod("p", "a"), None),
    "a budget that allows one": ((budget("b", 1, WEB),), pod("p", "a"), None),
    "a budget that allows none": ((budget("b", 0, WEB),), pod("p", "a"), Ground.BUDGET_SPENT),
    "a budget for other labels": ((budget("b", 0, WEB),), pod("p", "a", "db"), None),
    "a budget of another namespace": ((budget("b", 0, WEB, namespace="x"),), pod("p", "a"), None),
    "an empty selector is for all pods": (
        (budget("b", 0, EVERYTHING),),
        pod("p", "a", "db"),
        Ground.BUDGET_SPENT,
    ),
    "no selector is for no pod": ((budget("b", 0, None),), pod("p", "a"), None),
    "a selector without labels to match": (
        (budget("b", 0, {"matchExpressions": [{"key": "app", "operator": "Exists"}]}),),
        pod("p", "a"),
        Ground.BUDGET_SPENT,
    ),
    "two budgets": (
        (budget("b", 5, WEB), budget("c", 5, EVERYTHING)),
        pod("p", "a"),
        Ground.TWO_BUDGETS,
    ),
    "two budgets and a pending pod": (
        (budget("b", 0, WEB), budget("c", 0, EVERYTHING)),
        pod("p", "a", phase="Pending"),
        None,
    ),
    "a budget that its controller has not read": (
        (budget("b", 5, WEB, generation=2),),
        pod("p", "a"),
        Ground.BUDGET_NOT_OBSERVED,
    ),
    "a pending pod costs nothing": ((budget("b", 0, WEB),), pod("p", "a", phase="Pending"), None),
    "a finished pod costs nothing": ((budget("b", 0, WEB),), pod("p", "a", phase="Failed"), None),
    "a sick pod of a healthy workload costs nothing": (
        (budget("b", 0, WEB, healthy=(2, 2)),),
        SICK,
        None,
    ),
    "a sick pod of a sick workload costs": (
        (budget("b", 0, WEB, healthy=(1, 2)),),
        SICK,
        Ground.BUDGET_SPENT,
    ),
    "a sick pod of a workload that needs none costs": (
        (budget("b", 0, WEB, healthy=(0, 0)),),
        SICK,
        Ground.BUDGET_SPENT,
    ),
    "a sick pod costs nothing where the budget says so": (
        (budget("b", 0, WEB, healthy=(1, 2), policy="AlwaysAllow"),),
        SICK,
        None,
    ),
    "a ready pod costs where sick ones do not": (
        (budget("b", 0, WEB, policy="AlwaysAllow"),),
        pod("p", "a"),
        Ground.BUDGET_SPENT,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_eviction(name: str) -> None:
    budgets: tuple[PodDisruptionBudget, ...]
    budgets, victim, expected = CASES[name]
    assert reason(Budgets(budgets), victim) is expected


def test_the_sum_of_several_evictions_counts() -> None:
    budgets = Budgets([budget("b", 2, WEB)])
    pods = [pod(f"p{number}", "a") for number in range(3)]
    assert reason(budgets, *pods[:2]) is None
    assert reason(budgets, *pods) is Ground.BUDGET_SPENT


def test_what_is_spent_stays_spent() -> None:
    budgets = Budgets([budget("b", 2, WEB)])
    for evicted in seen(pod("p1", "a"), pod("p2", "a", phase="Pending")):
        budgets.spend(evicted)
    assert reason(budgets, pod("p3", "a")) is None
    budgets.spend(*seen(pod("p3", "a")))
    assert reason(budgets, pod("p4", "a")) is Ground.BUDGET_SPENT


def test_a_budget_that_cannot_be_read_protects_its_namespace() -> None:
    kind = kind_of("policy/v1", PodDisruptionBudget)
    broken = Unreadable(kind, "no number", namespace="team", name="b", uid="u")
    budgets = Budgets([], [broken])
    assert reason(budgets, pod("p", "a")) is Ground.UNREADABLE
    assert reason(budgets, pod("p", "a", namespace="other")) is None
