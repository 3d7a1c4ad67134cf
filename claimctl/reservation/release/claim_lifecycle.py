"""Claims that do not exist or are not allocated: create, replace and tidy up."""

from __future__ import annotations

from msgspec.structs import replace

from claimctl.reservation.assessment.assessment import Assessment
from claimctl.reservation.facts.decision import (
    ClearReleaseRequest,
    CreateClaim,
    DeleteClaim,
    SetFinalizer,
    Write,
)
from claimctl.reservation.facts.dialects import DIALECTS
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import WORKLOAD_RESOURCES, workload_reference
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.reservation.release.finalizers import in_doubt
from claimctl.wire.reservations import FINALIZER


def make(found: Assessment) -> Assessment:
    """Handle a claim that does not exist: create it, or finish deleted reservations.

    A deleted reservation keeps its finalizer for the settle time, because another controller that
    has not seen the deletion may still create the claim.
    """
    snapshot = found.snapshot
    for held in snapshot.reservations:
        meta = held.reservation.metadata
        if meta.deleting and FINALIZER in meta.finalizers:
            if (left := in_doubt(snapshot, held)) <= 0:
                return replace(found, write=SetFinalizer(held.reservation, present=False))
            found = found.sooner(left)
        if _may_create(snapshot, held):
            reference = workload_reference(held.reservation.spec.workload_ref, held.workload.uid)
            created_for = DIALECTS[snapshot.rules.dialect].created_for(reference)
            return replace(found, write=CreateClaim(held.reservation, created_for))
    return found


def _may_create(snapshot: Snapshot, held: Held) -> bool:
    spec = held.reservation.spec
    return (
        bool(spec.resource_claim_template_name)
        and (spec.workload_ref.api_group, spec.workload_ref.kind) in WORKLOAD_RESOURCES
        and not snapshot.template_missing
        and not snapshot.template_refused
        and not held.reservation.metadata.deleting
        and held.workload.exists
        and not held.workload.ended
    )


def tidy(found: Assessment) -> Write | None:
    """The write that a claim without allocation still needs, or None."""
    if found.snapshot.unreadable:
        return None
    for retention in found.retentions:
        if retention.reason is Reason.RELEASE_REQUESTED:
            return ClearReleaseRequest(retention.held.reservation)
        if _to_be_replaced(found, retention.held):
            meta = found.claim.metadata
            return DeleteClaim(meta.uid, meta.resource_version)
    return None


def _to_be_replaced(found: Assessment, held: Held) -> bool:
    """Whether claimctl created the claim for an earlier incarnation of the workload."""
    maker, created_for = found.claim.metadata.controller(), found.claim.spec.reserved_for
    return (
        created_for is not None
        and maker is not None
        and maker.uid == held.reservation.metadata.uid
        and not found.claim.metadata.deleting
        and not held.reservation.metadata.deleting
        and held.workload.exists
        and not held.workload.ended
        and held.workload.uid != created_for.uid
        and not found.consumers.bound
    )
