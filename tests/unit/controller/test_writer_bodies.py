"""What is sent: merge patches and new objects."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from claimctl.controller.writer import (
    claim_body,
    finalizers_patch,
    status_patch,
)
from claimctl.wire.base import encode_as_go
from claimctl.wire.claims import ResourceClaimTemplate, ResourceClaimTemplateSpec
from claimctl.wire.meta import Condition, ObjectMeta
from claimctl.wire.reservations import (
    FINALIZER,
    ClaimReservationStatus,
    ReferenceCounts,
    ReleaseProgress,
)
from tests.support.builders import NAMESPACE, NOW, deployment_ref, reservation


def test_what_a_status_no_longer_has_is_removed() -> None:
    old = ClaimReservationStatus(
        consumers=3,
        references=ReferenceCounts(pods=3, workloads=1),
        release=ReleaseProgress(step="Fenced", claim_uid="u", resource_version="7"),
    )
    new = replace(old, consumers=0, references=ReferenceCounts(workloads=1), release=None)
    assert status_patch(old, new) == {
        "status": {"consumers": 0, "references": {"pods": 0}, "release": None}
    }


def test_conditions_are_sent_whole_with_the_fields_the_schema_requires() -> None:
    condition = Condition(type="Ready", status="True", reason="Ready", last_transition_time=NOW)
    patch = status_patch(ClaimReservationStatus(), ClaimReservationStatus(conditions=(condition,)))
    assert patch["status"]["conditions"] == [
        {
            "type": "Ready",
            "status": "True",
            "reason": "Ready",
            "message": "",
            "lastTransitionTime": "2026-03-01T12:00:00Z",
        }
    ]


def test_finalizers_of_others_stay() -> None:
    both, theirs = ("theirs", FINALIZER), ("theirs",)
    added = finalizers_patch(ObjectMeta(finalizers=theirs), present=True)
    assert added == {"metadata": {"finalizers": [*both]}}
    removed = finalizers_patch(ObjectMeta(finalizers=both), present=False)
    assert removed == {"metadata": {"finalizers": [*theirs]}}


def test_a_claim_is_made_as_its_template_says_and_belongs_to_the_reservation() -> None:
    template = ResourceClaimTemplate(
        metadata=ObjectMeta(name="template", labels={"not": "copied"}),
        spec=ResourceClaimTemplateSpec(
            metadata=ObjectMeta(labels={"team": "ml"}, annotations={"note": "x"}),
            spec=msgspec.Raw(b'{"devices":{"requests":[{"name":"gpu"}]}}'),
        ),
    )
    assert claim_body(reservation(), template, deployment_ref()) == {
        "metadata": {
            "name": "slice",
            "namespace": NAMESPACE,
            "labels": {"team": "ml", "app.kubernetes.io/managed-by": "claimctl"},
            "annotations": {"note": "x"},
            "ownerReferences": [
                {
                    "apiVersion": "claimctl.io/v1alpha1",
                    "kind": "ClaimReservation",
                    "name": "train-slice",
                    "uid": "uid-train-slice",
                    "controller": True,
                    "blockOwnerDeletion": False,
                }
            ],
        },
        "spec": {
            "devices": {"requests": [{"name": "gpu"}]},
            "reservedFor": {
                "apiGroup": "apps",
                "resource": "deployments",
                "name": "train",
                "uid": "uid-train",
            },
        },
    }
    assert "reservedFor" not in claim_body(reservation(), template, None)["spec"]


@pytest.mark.parametrize("levels", [99, 100, 900, 10_000])
def test_no_claim_is_made_of_a_template_that_is_nested_too_deeply(levels: int) -> None:
    spec = b'{"devices":%b1%b}' % (b"[" * levels, b"]" * levels)
    template = ResourceClaimTemplate(spec=ResourceClaimTemplateSpec(spec=msgspec.Raw(spec)))
    if levels == 99:
        assert encode_as_go(claim_body(reservation(), template, None))
    else:
        with pytest.raises(msgspec.DecodeError, match="more than 100 levels deep"):
            claim_body(reservation(), template, None)
