"""A plan in a file is for one cluster, for a few minutes, and as it was made."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from claimctl_reschedule.plan.plan import Move, Plan, PodRef
from claimctl_reschedule.run import planfile
from claimctl_reschedule.run.planfile import PlanError, check, document, parse

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
POD = PodRef(namespace="ml", name="a", uid="a-1", node="n1")
PLAN = Plan(
    made_at=NOON, cluster_uid="c-1", moves=(Move(strategy="RemoveDuplicates", pod=POD),)
).sealed()


def test_a_plan_comes_back_as_it_was() -> None:
    assert parse(json.dumps(document(PLAN)).encode()) == PLAN


def test_an_edited_plan_is_refused() -> None:
    other = document(PLAN)
    other["moves"][0]["pod"]["name"] = "b"
    with pytest.raises(PlanError, match="was edited"):
        parse(json.dumps(other).encode())


@pytest.mark.parametrize(
    ("uid", "age", "expected"),
    [
        ("c-1", 0, ""),
        ("c-1", 599, ""),
        ("c-1", 601, "is 10 minutes old, and at most 10 are allowed: make another one"),
        ("c-1", -61, "is from the future"),
        ("c-2", 0, "is for another cluster: the UID of its kube-system is c-1, here it is c-2"),
    ],
)
def test_which_plans_are_too_old_or_of_another_cluster(uid: str, age: int, expected: str) -> None:
    now = NOON + timedelta(seconds=age)
    if not expected:
        check(PLAN, uid, now)
        return
    with pytest.raises(PlanError) as raised:
        check(PLAN, uid, now)
    assert str(raised.value).startswith(expected)


def test_the_kind_is_that_of_the_page() -> None:
    assert (planfile.KIND, planfile.API_VERSION) == (
        "ReschedulePlan",
        "cli.claimctl.io/v1alpha1",
    )
