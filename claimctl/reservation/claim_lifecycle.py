"""Claims that do not exist or are not allocated: making, replacing and tidying up."""

from __future__ import annotations

from dataclasses import replace

from claimctl.reservation.context import ClaimContext
from claimctl.reservation.decision import (
    ClearReleaseRequest,
    CreateClaim,
    Decision,
    DeleteClaim,
    SetFinalizer,
    Write,
)
from claimctl.reservation.dialects import DIALECTS
from claimctl.reservation.reasons import Reason
from claimctl.reservation.release.finalizers import in_doubt
from claimctl.reservation.reserved_for.references import WORKLOAD_RESOURCES, workload_reference
from claimctl.reservation.retention import Action, RetentionDecision
from claimctl.reservation.snapshot import Held, Snapshot
from claimctl.reservation.status.outlook import Outlook
from claimctl.reservation.status.writes import sooner, tell
from claimctl.wire.reservations import FINALIZER


def without_claim(snapshot: Snapshot) -> Decision:
    """The claim does not exist: make it, or say so; what is being deleted has nothing left.

    It may yet be made while another controller has not seen the deletion.
    """
    after: float | None = None
    for held in snapshot.reservations:
        meta = held.reservation.metadata
        if meta.deleting and FINALIZER in meta.finalizers:
            if (left := in_doubt(snapshot, held)) <= 0:
                return Decision(write=SetFinalizer(held.reservation, present=False))
            after = sooner(after, left)
        if _may_create(snapshot, held):
            reference = workload_reference(held.reservation.spec.workload_ref, held.workload.uid)
            created_for = DIALECTS[snapshot.rules.dialect].created_for(reference)
            return Decision(write=CreateClaim(held.reservation, created_for))
    retentions = [
        RetentionDecision(held, Action.NONE, Reason.CLAIM_NOT_FOUND)
        for held in snapshot.reservations
    ]
    outlooks = [ended_release(retention, Outlook(snapshot.consumers())) for retention in retentions]
    return tell(snapshot, retentions, outlooks, Decision(after=after))


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


def ended_release(retention: RetentionDecision, outlook: Outlook) -> Outlook:
    """With the allocation gone, a release on record has come to its end."""
    progress = retention.held.reservation.status.release
    if progress is None:
        return outlook
    return replace(outlook, finished_release=progress.reason)


def tidy(context: ClaimContext) -> Write | None:
    """What remains to be done about a claim without allocation."""
    if context.snapshot.unreadable:
        return None
    for retention in context.retentions:
        if retention.reason is Reason.RELEASE_REQUESTED:
            return ClearReleaseRequest(retention.held.reservation)
        if _to_be_replaced(context, retention.held):
            meta = context.claim.metadata
            return DeleteClaim(meta.uid, meta.resource_version)
    return None


def _to_be_replaced(context: ClaimContext, held: Held) -> bool:
    """Whether claimctl made the claim, and for an earlier incarnation of the workload."""
    maker, created_for = context.claim.metadata.controller(), context.claim.spec.reserved_for
    return (
        created_for is not None
        and maker is not None
        and maker.uid == held.reservation.metadata.uid
        and not context.claim.metadata.deleting
        and not held.reservation.metadata.deleting
        and held.workload.exists
        and not held.workload.ended
        and held.workload.uid != created_for.uid
        and not context.consumers.bound
    )
