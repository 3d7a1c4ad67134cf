"""The models that users see and the structs that are read and written are the same shapes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel, ValidationError

from claimctl import api
from claimctl.api.claimreservation import (
    ClaimReservationSpec,
    ClaimReservationStatus,
    ForceDeletedPod,
    ReferenceCounts,
    ReleaseProgress,
    WorkloadRef,
)
from claimctl.api.common import Condition, Reference
from claimctl.api.downgradeplan import DowngradedClaim, DowngradePlanSpec, DowngradePlanStatus
from claimctl.api.reschedulerecord import (
    RecordedAttempts,
    RecordedMove,
    RecordedRun,
    RecordedTaint,
    RecordedWorkload,
    RescheduleRecordStatus,
)
from claimctl.wire import claims, meta, records, reservations
from claimctl.wire.base import decode, encode, to_plain

PAIRS: list[tuple[type[BaseModel], type[msgspec.Struct]]] = [
    (WorkloadRef, reservations.WorkloadRef),
    (ClaimReservationSpec, reservations.ClaimReservationSpec),
    (ReferenceCounts, reservations.ReferenceCounts),
    (ForceDeletedPod, reservations.ForceDeletedPod),
    (ReleaseProgress, reservations.ReleaseProgress),
    (ClaimReservationStatus, reservations.ClaimReservationStatus),
    (Condition, meta.Condition),
    (Reference, claims.Reference),
    (DowngradePlanSpec, reservations.DowngradePlanSpec),
    (DowngradedClaim, reservations.DowngradedClaim),
    (DowngradePlanStatus, reservations.DowngradePlanStatus),
    (api.ClaimReservation, reservations.ClaimReservation),
    (api.DowngradePlan, reservations.DowngradePlan),
    (RecordedMove, records.RecordedMove),
    (RecordedWorkload, records.RecordedWorkload),
    (RecordedTaint, records.RecordedTaint),
    (RecordedAttempts, records.RecordedAttempts),
    (RecordedRun, records.RecordedRun),
    (RescheduleRecordStatus, records.RescheduleRecordStatus),
    (api.RescheduleRecord, records.RescheduleRecord),
]

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

WHOLE_RESERVATION = reservations.ClaimReservation(
    api_version="claimctl.io/v1alpha1",
    kind="ClaimReservation",
    metadata=meta.ObjectMeta(name="train", namespace="ml"),
    spec=reservations.ClaimReservationSpec(
        resource_claim_name="train-slice",
        resource_claim_template_name="tpu-slice",
        workload_ref=reservations.WorkloadRef(api_group="apps", kind="Deployment", name="train"),
        retention_policy="Manual",
        idle_timeout_seconds=1,
        force_deleted_pod_grace_seconds=2,
        reallocate_timeout_seconds=None,
    ),
    status=reservations.ClaimReservationStatus(
        observed_generation=1,
        dialect="native",
        claim_uid="c-1",
        reserved_for=claims.Reference(
            api_group="apps", resource="deployments", name="train", uid="d-1"
        ),
        references=reservations.ReferenceCounts(pods=1, workloads=1),
        consumers=1,
        nodes=("node-1",),
        allocation_time=NOON,
        last_consumer_time=NOON,
        idle_since=NOON,
        force_deleted_pods=(
            reservations.ForceDeletedPod(
                uid="p-1", name="train-0", node_name="node-1", boot_id="b-1", since=NOON
            ),
        ),
        release=reservations.ReleaseProgress(
            step="Fenced", reason="Idle", since=NOON, claim_uid="c-1", resource_version="7"
        ),
        conditions=(
            meta.Condition(
                type="Ready",
                status="True",
                reason="Ready",
                message="held for deployments.apps/train",
                observed_generation=1,
                last_transition_time=NOON,
            ),
        ),
    ),
)
WHOLE_PLAN = reservations.DowngradePlan(
    api_version="claimctl.io/v1alpha1",
    kind="DowngradePlan",
    metadata=meta.ObjectMeta(name="claimctl"),
    spec=reservations.DowngradePlanSpec(namespaces=("ml",)),
    status=reservations.DowngradePlanStatus(
        observed_generation=1,
        phase="Prepared",
        total=1,
        done=1,
        claims=(
            reservations.DowngradedClaim(
                namespace="ml",
                name="train-slice",
                uid="c-1",
                state="Expanded",
                pods=200,
                workload_references=(
                    claims.Reference(
                        api_group="apps", resource="deployments", name="train", uid="d-1"
                    ),
                ),
                replaced_references=(
                    claims.Reference(
                        api_group="apps", resource="deployments", name="train", uid="d-1"
                    ),
                ),
                resource_version="41",
            ),
        ),
    ),
)


@pytest.mark.parametrize(("model", "struct"), PAIRS, ids=lambda each: each.__name__)
def test_model_and_struct_have_the_same_fields(
    model: type[BaseModel], struct: type[msgspec.Struct]
) -> None:
    assert {field.alias for field in model.model_fields.values()} == {
        field.encode_name for field in msgspec.structs.fields(struct)
    }


@pytest.mark.parametrize("whole", [WHOLE_RESERVATION, WHOLE_PLAN], ids=lambda each: each.kind)
def test_what_a_struct_writes_a_model_takes_and_gives_back(
    whole: reservations.ClaimReservation | reservations.DowngradePlan,
) -> None:
    model: type[BaseModel] = getattr(api, whole.kind)
    seen = model.model_validate_json(encode(whole))
    assert decode(seen.model_dump_json(by_alias=True, exclude_unset=True), type(whole)) == whole


def test_absent_fields_of_the_spec_mean_the_same_to_server_and_controller() -> None:
    least: dict[str, Any] = {
        "resourceClaimName": "train-slice",
        "workloadRef": {"apiGroup": "apps", "kind": "Deployment", "name": "train"},
    }
    filled = ClaimReservationSpec.model_validate(least).model_dump(by_alias=True)
    assert decode(encode(filled), reservations.ClaimReservationSpec) == decode(
        encode(least), reservations.ClaimReservationSpec
    )


@pytest.mark.parametrize(
    ("given", "seconds", "written"),
    [({}, 60, {}), ({"reallocateTimeoutSeconds": None}, None, {"reallocateTimeoutSeconds": None})],
)
def test_never_to_reallocate_is_told_from_saying_nothing(
    given: dict[str, Any], seconds: int | None, written: dict[str, Any]
) -> None:
    spec = decode(encode(given), reservations.ClaimReservationSpec)
    assert spec.reallocate_timeout_seconds == seconds
    assert to_plain(spec) == written


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"resourceClaimName": "Not_DNS"}, "resourceClaimName"),
        ({"resourceClaimName": ""}, "resourceClaimName"),
        ({"resourceClaimTemplateName": "a..b"}, "resourceClaimTemplateName"),
        ({"retentionPolicy": "Never"}, "retentionPolicy"),
        ({"idleTimeoutSeconds": -1}, "idleTimeoutSeconds"),
        ({"forceDeletedPodGraceSeconds": 10**12}, "forceDeletedPodGraceSeconds"),
        ({"idleTimeoutSecond": 1}, "idleTimeoutSecond"),
    ],
)
def test_bad_specs_are_refused_by_field(wrong: dict[str, Any], field: str) -> None:
    spec = {
        "resourceClaimName": "train-slice",
        "workloadRef": {"apiGroup": "apps", "kind": "Deployment", "name": "train"},
        **wrong,
    }
    with pytest.raises(ValidationError) as caught:
        ClaimReservationSpec.model_validate(spec)
    assert [error["loc"] for error in caught.value.errors()] == [(field,)]
