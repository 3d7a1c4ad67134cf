"""Make the bodies of requests from structs: pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from claimctl.reservation.pod_groups.lifecycle import MakeGroup
from claimctl.wire.base import decode, merge_diff, to_plain
from claimctl.wire.claims import Reference, ResourceClaimTemplate
from claimctl.wire.meta import Condition
from claimctl.wire.reservations import (
    FINALIZER,
    MANAGED_LABEL,
    ClaimReservation,
    ClaimReservationStatus,
)
from claimctl.wire.resources import CLAIMRESERVATIONS


def status_patch(old: ClaimReservationStatus, new: ClaimReservationStatus) -> dict[str, Any]:
    return {"status": merge_diff(status_body(old), status_body(new))}


def status_body(status: ClaimReservationStatus) -> dict[str, Any]:
    """A status as JSON, with the empty fields that the schema requires."""
    body: dict[str, Any] = to_plain(status)
    if status.conditions:
        body["conditions"] = [_condition(condition) for condition in status.conditions]
    if status.references is not None:
        counts = status.references
        body["references"] = {
            "pods": counts.pods,
            "workloads": counts.workloads,
            "limit": counts.limit,
        }
    body["consumers"] = status.consumers
    return body


def _condition(condition: Condition) -> dict[str, Any]:
    return {"message": "", "reason": "", **to_plain(condition)}


def list_replacement(
    present: Iterable[Reference], wanted: Iterable[Reference]
) -> list[dict[str, Any]]:
    """The operations of a JSON patch that replace a claim's list if it is still ``present``.

    The API forbids additions to a claim that is being deleted, so that is tested, too. A claim
    whose list has entries is allocated.
    """
    path = "/status/reservedFor"
    return [
        {"op": "test", "path": "/metadata/deletionTimestamp", "value": None},
        {"op": "test", "path": path, "value": [to_plain(each) for each in present]},
        {"op": "replace", "path": path, "value": [to_plain(each) for each in wanted]},
    ]


def finalizers_patch(
    present: Iterable[str], *, add: str | None = None, remove: str | None = None
) -> dict[str, Any]:
    kept = [finalizer for finalizer in present if finalizer not in (add, remove)]
    return {"metadata": {"finalizers": [*kept, add] if add is not None else kept}}


def claim_body(
    reservation: ClaimReservation,
    template: ResourceClaimTemplate,
    reserved_for: Reference | None,
) -> dict[str, Any]:
    """The claim to create from a reservation's template.

    The reservation owns the claim, without blocking a foreground deletion.

    Raises:
        msgspec.ValidationError: the template's spec is not an object.
    """
    spec: dict[str, Any] = decode(template.spec.spec, dict[str, Any])
    if reserved_for is not None:
        spec["reservedFor"] = to_plain(reserved_for)
    meta = template.spec.metadata
    return {
        "metadata": {
            "name": reservation.spec.resource_claim_name,
            "namespace": reservation.metadata.namespace,
            "labels": {**(meta.labels or {}), MANAGED_LABEL: "claimctl"},
            "annotations": dict(meta.annotations or {}),
            "ownerReferences": [_owner(reservation)],
        },
        "spec": spec,
    }


def _owner(reservation: ClaimReservation) -> dict[str, Any]:
    return {
        "apiVersion": CLAIMRESERVATIONS.api_version,
        "kind": CLAIMRESERVATIONS.kind,
        "name": reservation.metadata.name,
        "uid": reservation.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def group_body(name: str, group: MakeGroup) -> dict[str, Any]:
    """The PodGroup to create: its pods are scheduled one by one, and share claims."""
    return {
        "metadata": {
            "name": name,
            "labels": {MANAGED_LABEL: "claimctl"},
            "finalizers": [FINALIZER],
            "ownerReferences": [
                {**to_plain(owner), "blockOwnerDeletion": False} for owner in group.owners
            ],
        },
        "spec": {
            "schedulingPolicy": {"basic": {}},
            "resourceClaims": [to_plain(claim) for claim in group.claims],
        },
    }


def reservation_body(reservation: ClaimReservation) -> dict[str, Any]:
    """The ClaimReservation to create, without status."""
    return {
        "metadata": to_plain(reservation.metadata),
        "spec": to_plain(reservation.spec),
    }
