"""How other commands tell of a plan under way."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from claimctl.downgrade.under_way import (
    describe_plan,
    frozen_for,
    is_held_by_pods_alone,
    prepare_command,
)
from claimctl.wire.claims import Reference
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.reservations import (
    ClaimName,
    DowngradedClaim,
    DowngradePlan,
    DowngradePlanSpec,
    DowngradePlanStatus,
)
from tests.support.builders import claim

TRAIN = Reference(api_group="apps", resource="deployments", name="train", uid="d-1")
GANG = Reference(api_group="scheduling.k8s.io", resource="podgroups", name="gang", uid="g-1")


def record(*replaced: Reference, state: str = "Expanded") -> DowngradedClaim:
    return DowngradedClaim(
        namespace="ml", name="slice", uid="c-1", state=state, replaced_references=replaced
    )


def plan(phase: str, *claims: DowngradedClaim, done: int = 1, **spec: Any) -> DowngradePlan:
    status = DowngradePlanStatus(phase=phase, total=len(claims), done=done, claims=claims)
    meta = ObjectMeta(name="claimctl", creation_timestamp=datetime(2026, 3, 1, 12, tzinfo=UTC))
    return DowngradePlan(metadata=meta, spec=DowngradePlanSpec(**spec), status=status)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        pytest.param(
            plan("Prepared", record(TRAIN), record(GANG)),
            "a downgrade of all namespaces is under way since 2026-03-01T12:00:00Z; Prepared; "
            "1 claim held by pods alone: do not scale to 0 now; next: `claimctl downgrade status`",
            id="prepared",
        ),
        pytest.param(
            plan("Expanding", record(TRAIN, state="Pending"), done=0, namespaces=("ml",)),
            "a downgrade of ml is under way since 2026-03-01T12:00:00Z; Expanding, 0 of 1 claim "
            "done; next: `claimctl downgrade prepare -n ml`",
            id="cut off",
        ),
        pytest.param(
            plan("", done=0),
            "a downgrade of all namespaces is under way since 2026-03-01T12:00:00Z; not begun, "
            "0 of 0 claims done; next: `claimctl downgrade prepare`",
            id="not begun",
        ),
        pytest.param(
            plan("PartlyRestored", record(TRAIN, state="NotRestored"), action="Restore"),
            "a downgrade of all namespaces is under way since 2026-03-01T12:00:00Z; "
            "PartlyRestored; next: `claimctl downgrade restore`",
            id="on the way back",
        ),
        pytest.param(
            plan("Prepared", record(GANG), upgrade_to="1.37"),
            "an upgrade to 1.37 is under way since 2026-03-01T12:00:00Z; Prepared; new pods of "
            "PodGroups wait; next: `claimctl upgrade status`",
            id="an upgrade",
        ),
        pytest.param(
            plan("Prepared", record(GANG), upgrade_to="1.37", action="Restore"),
            "an upgrade to 1.37 is under way since 2026-03-01T12:00:00Z; Prepared; next: "
            "`claimctl upgrade restore`",
            id="an upgrade on the way back",
        ),
    ],
)
def test_a_plan_is_told_in_one_line_with_the_next_command(given: DowngradePlan, text: str) -> None:
    assert describe_plan(given) == text


@pytest.mark.parametrize(
    ("plans", "what"),
    [
        ((), ""),
        ((plan("Prepared"),), "downgrade"),
        ((plan("Prepared", upgrade_to="1.37"),), "upgrade"),
        ((plan("Prepared", action="Restore"),), ""),
        ((plan("Prepared", namespaces=("elsewhere",)),), ""),
    ],
    ids=["no plan", "a downgrade", "an upgrade", "the way back", "another namespace"],
)
def test_what_a_claim_is_frozen_for(plans: tuple[DowngradePlan, ...], what: str) -> None:
    assert frozen_for(plans, claim()) == what


@pytest.mark.parametrize(
    ("made", "alone"),
    [
        (record(TRAIN), True),
        (record(GANG, TRAIN), True),
        (record(GANG), False),
        (record(TRAIN, state="Pending"), False),
    ],
    ids=["a workload", "beside its PodGroup", "a PodGroup alone", "not yet"],
)
def test_a_claim_without_its_workload_is_held_by_its_pods(
    made: DowngradedClaim, alone: bool
) -> None:
    assert is_held_by_pods_alone(made) is alone


def test_the_command_of_a_plan_has_its_scope() -> None:
    spec = DowngradePlanSpec(
        namespaces=("ml", "web"),
        claim_selector="team in (a, b)",
        skip=(ClaimName(namespace="ml", name="slice"),),
    )
    assert prepare_command(spec) == (
        "claimctl downgrade prepare -n ml -n web -l 'team in (a, b)' --skip ml/slice"
    )
