"""What a report says of a plan that was carried out, or would be, and its exit code."""

from __future__ import annotations

import pytest

from claimctl.commands.downgrade.following import PlanResult
from claimctl.commands.downgrade.report import (
    EXPANDED,
    DowngradeReport,
    document,
    loss,
    prepared_code,
)
from claimctl.downgrade.records import PlanPhase, RecordState
from claimctl.wire.claims import Reference
from claimctl.wire.reservations import DowngradedClaim, DowngradePlanStatus

TRAIN = Reference(api_group="apps", resource="deployments", name="train", uid="d")
GANG = Reference(api_group="scheduling.k8s.io", resource="podgroups", name="gang", uid="g")


def report(
    state: RecordState = RecordState.EXPANDED,
    phase: PlanPhase = PlanPhase.PREPARED,
    *,
    replaced: Reference = TRAIN,
    pods: int = 2,
    by: str = "controller",
) -> DowngradeReport:
    record = DowngradedClaim(
        namespace="ml",
        name="slice",
        uid="c",
        state=state,
        pods=pods,
        replaced_references=(replaced,),
    )
    status = DowngradePlanStatus(phase=phase, total=1, done=1, claims=(record,))
    return document(PlanResult(status, by))


@pytest.mark.parametrize(
    ("state", "phase", "code"),
    [
        (RecordState.EXPANDED, PlanPhase.PREPARED, 0),
        (RecordState.REFUSED, PlanPhase.BLOCKED, 3),
        (RecordState.FAILED, PlanPhase.BLOCKED, 1),
        (RecordState.PENDING, PlanPhase.FAILED, 1),
    ],
)
def test_a_claim_that_was_refused_needs_action_and_one_that_failed_is_a_failure(
    state: RecordState, phase: PlanPhase, code: int
) -> None:
    assert prepared_code(report(state, phase)) == code


@pytest.mark.parametrize(("by", "state"), [("controller", "Expanded"), ("", "WouldExpand")])
def test_a_dry_run_has_a_word_of_its_own_for_what_it_would_do(by: str, state: str) -> None:
    shown = report(by=by)
    assert (shown.dry_run, shown.claims[0].state, shown.count(EXPANDED)) == (not by, state, 1)


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (report(), "only its 2 pods hold it, not the workload: a scale to 0 loses its devices"),
        (
            report(pods=1),
            "only its 1 pod holds it, not the workload: a scale to 0 loses its devices",
        ),
        (
            report(by=""),
            "only its 2 pods would hold it, not the workload: a scale to 0 loses its devices",
        ),
        (report(RecordState.REFUSED), ""),
        (report(replaced=GANG), ""),
    ],
    ids=["several pods", "one pod", "dry run", "refused", "a PodGroup held nothing"],
)
def test_it_is_said_which_claim_a_scale_to_0_loses(shown: DowngradeReport, text: str) -> None:
    assert loss(shown.claims[0]) == text
