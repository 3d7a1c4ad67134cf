"""Which claims a plan freezes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from claimctl.downgrade.scope import described, freezes, same_claims
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.reservations import (
    ClaimName,
    DowngradePlan,
    DowngradePlanSpec,
    DowngradePlanStatus,
)

SKIP = (ClaimName(namespace="ml", name="slice"),)
DELETED = ObjectMeta(deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("parts", "labels", "frozen"),
    [
        pytest.param({}, {}, True, id="the plan is for everything"),
        pytest.param({"namespaces": ("ml",)}, {}, True, id="its namespace is named"),
        pytest.param({"namespaces": ("web",)}, {}, False, id="another namespace is named"),
        pytest.param({"claim_selector": "team=ml"}, {"team": "ml"}, True, id="labels match"),
        pytest.param({"claim_selector": "team=ml"}, {}, False, id="labels do not match"),
        pytest.param({"claim_selector": "team=ml"}, None, True, id="labels are not known"),
        pytest.param({"claim_selector": "~"}, {}, True, id="the selector cannot be read"),
        pytest.param({"skip": SKIP}, {}, False, id="it is skipped"),
        pytest.param({"skip": SKIP, "namespaces": ("ml",)}, {}, False, id="named and skipped"),
    ],
)
def test_a_plan_freezes_the_claims_in_its_scope(
    parts: dict[str, Any], labels: Mapping[str, str] | None, frozen: bool
) -> None:
    plan = DowngradePlan(spec=DowngradePlanSpec(**parts))
    assert freezes(plan, "ml", "slice", labels) is frozen


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(DowngradePlan(metadata=DELETED), id="deleted"),
        pytest.param(DowngradePlan(status=DowngradePlanStatus(phase="Failed")), id="given up"),
    ],
)
def test_a_plan_that_is_over_without_a_result_freezes_nothing(plan: DowngradePlan) -> None:
    assert not freezes(plan, "ml", "slice", {})


def test_the_order_of_namespaces_and_the_skipped_claims_do_not_make_another_scope() -> None:
    one = DowngradePlanSpec(namespaces=("ml", "web"), claim_selector="a=b")
    other = DowngradePlanSpec(namespaces=("web", "ml"), claim_selector=" a=b", skip=SKIP)
    assert same_claims(one, other)
    assert not same_claims(one, DowngradePlanSpec(namespaces=("ml",), claim_selector="a=b"))
    assert not same_claims(one, DowngradePlanSpec(namespaces=("ml", "web")))


def test_a_scope_is_described_by_namespaces_and_labels() -> None:
    assert described(DowngradePlanSpec()) == "all namespaces"
    scope = DowngradePlanSpec(namespaces=("ml", "web"), claim_selector="team=a")
    assert described(scope) == "ml, web with labels team=a"
