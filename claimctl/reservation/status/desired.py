"""The status a ClaimReservation should have, and its conditions."""

from __future__ import annotations

from datetime import datetime

from claimctl.reservation.assessment import Assessment
from claimctl.reservation.ghosts import MOST, told_ghosts
from claimctl.reservation.reasons import ReleaseStep
from claimctl.reservation.reserved_for.references import LIMIT, is_workload
from claimctl.reservation.retention import Action, RetentionDecision
from claimctl.reservation.snapshot import Snapshot
from claimctl.reservation.status.conditions import conditions
from claimctl.reservation.workloads import Life
from claimctl.wire.claims import Reference
from claimctl.wire.reservations import (
    ClaimReservationStatus,
    ReferenceCounts,
    ReleaseProgress,
)


def desired_status(found: Assessment, retention: RetentionDecision) -> ClaimReservationStatus:
    """The whole status, with only those times changed that something happened to.

    Somebody else's clock may have told them: one that seems wrong stays as it is, or two would
    correct each other for ever.
    """
    snapshot, held = found.snapshot, retention.held
    reservation, old = held.reservation, held.reservation.status
    claim, now = snapshot.claim, _seconds(snapshot.now)
    same = claim is not None and old.claim_uid in ("", claim.metadata.uid)
    idle = held.workload.life is Life.IDLE or not held.workload.names_claim
    idle_since = None if held.idle_outdated else old.idle_since
    unused = not found.consumers.count
    ghosts = told_ghosts(snapshot, old.force_deleted_pods)
    return ClaimReservationStatus(
        observed_generation=reservation.metadata.generation,
        dialect=snapshot.rules.dialect,
        claim_uid=claim.metadata.uid if claim else "",
        reserved_for=_reserved_for(found, retention),
        pod_group_name=held.workload.pod_group or old.pod_group_name,
        references=_counts(snapshot) if claim else None,
        consumers=found.consumers.count,
        nodes=found.consumers.nodes()[:MOST],
        allocation_time=_allocation_time(snapshot, old if same else None, now),
        last_consumer_time=now if old.consumers and unused else old.last_consumer_time,
        idle_since=(idle_since or now) if idle and unused else None,
        force_deleted_pods=ghosts,
        release=_progress(found, retention, now),
        conditions=conditions(found, retention, ghosts),
    )


def _seconds(moment: datetime) -> datetime:
    return moment.replace(microsecond=0)


def _reserved_for(found: Assessment, retention: RetentionDecision) -> Reference | None:
    """The reference as written; kept on record while a fenced claim is still allocated."""
    if found.listed(retention.reference):
        return retention.reference
    return retention.recorded if found.snapshot.allocated else None


def _counts(snapshot: Snapshot) -> ReferenceCounts:
    workloads = sum(map(is_workload, snapshot.references))
    return ReferenceCounts(
        pods=len(snapshot.references) - workloads, workloads=workloads, limit=LIMIT
    )


def _allocation_time(
    snapshot: Snapshot, old: ClaimReservationStatus | None, now: datetime
) -> datetime | None:
    allocation = snapshot.claim.status.allocation if snapshot.claim else None
    if allocation is None:
        return None
    return allocation.allocation_timestamp or (old.allocation_time if old else None) or now


def _progress(
    found: Assessment, retention: RetentionDecision, now: datetime
) -> ReleaseProgress | None:
    """How far the release has come, on record with each reservation that lets the claim go."""
    if found.step is None or found.releasing is None or retention.action is not Action.RELEASE:
        return None
    meta, old = found.claim.metadata, retention.held.reservation.status.release
    going_on = old is not None and old.claim_uid == meta.uid
    return ReleaseProgress(
        step=found.step,
        reason=found.releasing,
        since=old.since if going_on and old else now,
        claim_uid=meta.uid,
        resource_version=meta.resource_version if found.step is ReleaseStep.FENCED else "",
    )
