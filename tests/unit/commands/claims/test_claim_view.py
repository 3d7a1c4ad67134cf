"""How a claim is shown: its state, who holds it, where."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from claimctl.commands.claims.claim_list import summary_of
from claimctl.commands.claims.claim_view import ClaimView, views
from claimctl.commands.claims.meanings import MEANINGS, RELEASE_WAITS
from claimctl.reservation.facts.reasons import Reason
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.meta import Condition
from claimctl.wire.reservations import ClaimReservation, ClaimReservationStatus, ReleaseProgress
from tests.support.builders import (
    claim,
    deployment_ref,
    finished,
    pod_ref,
    reservation,
    running,
    tomb,
)
from tests.support.printed import as_json

RELEASING = reservation(status=ClaimReservationStatus(release=ReleaseProgress(step="Fenced")))


def view(shown: ResourceClaim, *reservations: ClaimReservation) -> ClaimView:
    return ClaimView(shown, (), reservations)


@pytest.mark.parametrize(
    ("shown", "state"),
    [
        (view(claim(allocated=False)), "Pending"),
        (view(claim(pod_ref("a"), deployment_ref())), "Held"),
        (view(claim(pod_ref("a"))), "InUse"),
        (view(claim()), "Allocated"),
        (view(claim(), RELEASING), "Releasing"),
        (view(claim(pod_ref("a"), deleting=True), RELEASING), "Deleting"),
        (view(claim(allocated=False), RELEASING), "Pending"),
    ],
)
def test_the_state_of_a_claim(shown: ClaimView, state: str) -> None:
    assert shown.state == state


def test_the_holders_are_pods_against_the_limit_and_workloads_by_name() -> None:
    shown = view(claim(pod_ref("a"), tomb("b"), deployment_ref()), reservation())
    assert shown.holders == "deployments/train, 1 pod"
    assert (len(shown.tombstones), shown.retention) == (1, "WhileRunning")


def test_the_policy_is_that_of_the_reservations_that_hold() -> None:
    holds = reservation(status=ClaimReservationStatus(reserved_for=deployment_ref()))
    manual = reservation(retention_policy="Manual")
    assert view(claim(), manual, holds).retention == "WhileRunning"
    assert view(claim(), manual, reservation()).retention == "Manual,WhileRunning"


def test_the_node_is_where_pods_are_and_else_where_the_allocation_pins_it() -> None:
    used = ClaimView(claim(pod_ref("a")), (running("a", "node-7"), finished("b", "node-8")), ())
    assert used.nodes == ("node-7",)
    assert view(claim()).nodes == ("node-0",)


def test_each_claim_gets_its_own_pods_and_reservations() -> None:
    (shown,) = views([claim()], [running("a")], [reservation()])
    assert (len(shown.pods), len(shown.reservations)) == (1, 1)


def test_the_document_is_stable() -> None:
    shown = ClaimView(claim(pod_ref("a"), deployment_ref()), (running("a"),), (reservation(),))
    assert as_json(summary_of(shown, datetime(2026, 3, 1, tzinfo=UTC))) == {
        "namespace": "train",
        "name": "slice",
        "uid": "uid-slice",
        "state": "Held",
        "problems": [],
        "allocated": True,
        "devices": ["node-0/gpu-0"],
        "classes": [],
        "nodes": ["node-0"],
        "allocatedSince": None,
        "usedSince": None,
        "unusedSince": None,
        "references": {
            "pods": 1,
            "finishedPods": 0,
            "podsListedAhead": 0,
            "workloads": [
                {
                    "apiGroup": "apps",
                    "resource": "deployments",
                    "name": "train",
                    "uid": "uid-train",
                }
            ],
            "limit": 256,
        },
        "consumers": {"bound": 1, "pending": 0},
        "reservations": ["train-slice"],
        "retentionPolicies": ["WhileRunning"],
        "ordinal": None,
        "member": None,
        "releaseAsked": False,
        "idle": None,
        "creationTimestamp": None,
        "ageSeconds": None,
    }


ABOUT_THE_HOLD = {
    Reason.WORKLOAD_WANTS_PODS,
    Reason.IDLE_TIMEOUT,
    Reason.RETENTION,
    Reason.OTHER_HOLDERS,
    Reason.PODS_PINNED,
}
"""Why no release is to begin at all."""


@pytest.mark.parametrize("reason", Reason)
def test_a_claim_is_releasing_as_the_metric_counts_it(reason: Reason) -> None:
    """The controller's metric counts a claim that is to be released, whatever that waits for."""
    waits = MEANINGS[reason].topic == RELEASE_WAITS or reason is Reason.UNREADABLE
    said = Condition(type="Released", status="False", reason=reason, message="why")
    status = ClaimReservationStatus(claim_uid="uid-slice", conditions=(said,))
    view = views([claim(deployment_ref())], (), [reservation(status=status)])[0]
    assert (view.state == "Releasing") == (waits and reason not in ABOUT_THE_HOLD)
