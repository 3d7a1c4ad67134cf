"""The status a ClaimReservation should have, and its conditions."""

from __future__ import annotations

from datetime import datetime

from claimctl.reservation.ghosts import MOST, told_ghosts
from claimctl.reservation.reasons import ReleaseStep
from claimctl.reservation.reserved_for.references import LIMIT, is_workload
from claimctl.reservation.retention import RetentionDecision, recorded
from claimctl.reservation.snapshot import Snapshot
from claimctl.reservation.status.conditions import conditions
from claimctl.reservation.status.outlook import Outlook
from claimctl.reservation.workloads import Life
from claimctl.wire.claims import Reference
from claimctl.wire.reservations import (
    ClaimReservationStatus,
    ReferenceCounts,
    ReleaseProgress,
)


def desired_status(
    snapshot: Snapshot, retention: RetentionDecision, outlook: Outlook
) -> ClaimReservationStatus:
    """The whole status, with only those times changed that something happened to.

    Somebody else's clock may have told them: one that seems wrong stays as it is, or two would
    correct each other for ever.
    """
    reservation, old = retention.held.reservation, retention.held.reservation.status
    claim, now = snapshot.claim, _seconds(snapshot.now)
    same = claim is not None and old.claim_uid in ("", claim.metadata.uid)
    listed = _listed(snapshot, retention)
    idle = retention.held.workload.life is Life.IDLE or not retention.held.workload.names_claim
    idle_since = None if retention.held.idle_outdated else old.idle_since
    unused, last_used = not outlook.consumers.count, old.last_consumer_time
    return ClaimReservationStatus(
        observed_generation=reservation.metadata.generation,
        dialect=snapshot.rules.dialect,
        claim_uid=claim.metadata.uid if claim else "",
        reserved_for=_reserved_for(snapshot, retention, listed),
        pod_group_name=retention.held.workload.pod_group or old.pod_group_name,
        references=_counts(snapshot) if claim else None,
        consumers=outlook.consumers.count,
        nodes=outlook.consumers.nodes()[:MOST],
        allocation_time=_allocation_time(snapshot, old if same else None, now),
        last_consumer_time=now if old.consumers and unused else last_used,
        idle_since=(idle_since or now) if idle and unused else None,
        force_deleted_pods=told_ghosts(snapshot, old.force_deleted_pods),
        release=_progress(snapshot, old.release, outlook, now),
        conditions=conditions(snapshot, retention, outlook, listed=listed),
    )


def _seconds(moment: datetime) -> datetime:
    return moment.replace(microsecond=0)


def _listed(snapshot: Snapshot, retention: RetentionDecision) -> bool:
    return retention.reference is not None and any(
        reference.uid == retention.reference.uid for reference in snapshot.references
    )


def _reserved_for(
    snapshot: Snapshot, retention: RetentionDecision, listed: bool
) -> Reference | None:
    """The reference as written; kept on record while a fenced claim is still allocated."""
    if listed:
        return retention.reference
    return recorded(snapshot, retention.held) if snapshot.allocated else None


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
    snapshot: Snapshot, old: ReleaseProgress | None, outlook: Outlook, now: datetime
) -> ReleaseProgress | None:
    if outlook.step is None or outlook.release is None or snapshot.claim is None:
        return None
    meta = snapshot.claim.metadata
    going_on = old is not None and old.claim_uid == meta.uid
    return ReleaseProgress(
        step=outlook.step,
        reason=outlook.release,
        since=old.since if going_on and old else now,
        claim_uid=meta.uid,
        resource_version=meta.resource_version if outlook.step is ReleaseStep.FENCED else "",
    )
