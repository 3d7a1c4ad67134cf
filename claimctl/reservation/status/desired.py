"""Compute the statuses that reservations should have, and write one that differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec

from claimctl.reservation.assessment import Assessment
from claimctl.reservation.decision import Blocker, Decision, WriteStatus
from claimctl.reservation.ghosts import MOST, ghosts_to_record
from claimctl.reservation.reasons import ConditionType, Reason, ReleaseStep
from claimctl.reservation.reserved_for.references import LIMIT, is_workload
from claimctl.reservation.retention import Action, RetentionDecision
from claimctl.reservation.snapshot import Snapshot
from claimctl.reservation.status.conditions import conditions, shortened
from claimctl.reservation.workloads import WorkloadPhase
from claimctl.wire.claims import Reference
from claimctl.wire.meta import Condition, find_condition
from claimctl.wire.reservations import (
    ClaimReservation,
    ClaimReservationStatus,
    ReferenceCounts,
    ReleaseProgress,
)
from claimctl.wire.resources import CLAIMRESERVATIONS
from claimctl.wire.unreadable import Unreadable

CONTESTED_SECONDS = 30.0
"""Least time in seconds between two writes of a status that another client keeps overwriting."""


def with_statuses(found: Assessment) -> Assessment:
    """Add the statuses. If there is no other write, write the first status that differs.

    Changes that only report (counts, nodes, messages) wait until ``status_seconds`` have passed
    since the last status write, so that the number of writes does not grow with the number of
    pods. A status that another client keeps overwriting waits for ``CONTESTED_SECONDS``.
    """
    wanted = {each.held.name: desired_status(found, each) for each in found.retentions}
    found = replace(found, statuses=wanted)
    if found.decided:
        return found
    for retention in found.retentions:
        reservation, status = retention.held.reservation, wanted[retention.held.name]
        if reservation.status == status:
            continue
        age = found.snapshot.memory.status_age.get(retention.held.name)
        left = 0.0 if age is None else _pause(found.snapshot, reservation, status) - age
        if left <= 0:
            return replace(found, write=WriteStatus(reservation, status))
        found = found.sooner(left)
    return found


def leave_alone(snapshot: Snapshot, unread: Sequence[Unreadable]) -> Decision:
    """Write only that an object cannot be read; all other fields of the statuses stay."""
    refusal = Refusal(Reason.UNREADABLE, "; ".join(each.describe() for each in unread[:3]))
    blockers = tuple(Blocker(Reason.UNREADABLE, each.describe()) for each in unread)
    names = {each.name for each in unread if each.resource.plural == CLAIMRESERVATIONS.plural}
    decision = Decision(blockers=blockers)
    for held in snapshot.reservations:
        status = held.reservation.status
        wanted = refused_status(held.reservation, status, refusal, snapshot.now)
        if held.name not in names and wanted != status and decision.write is None:
            decision = replace(decision, write=WriteStatus(held.reservation, wanted))
    return decision


def _pause(
    snapshot: Snapshot, reservation: ClaimReservation, wanted: ClaimReservationStatus
) -> float:
    """Least seconds between two status writes; 0 if the protocol needs the write."""
    if not _same_protocol(reservation.status, wanted):
        return 0.0
    repeated = snapshot.memory.repeated_statuses.get(reservation.metadata.name, 0)
    if repeated >= snapshot.rules.fight_limit:
        return CONTESTED_SECONDS
    same = _essence(reservation.status) == _essence(wanted)
    return snapshot.rules.status_seconds if same else 0.0


def _same_protocol(current: ClaimReservationStatus, wanted: ClaimReservationStatus) -> bool:
    return (
        current.release == wanted.release
        and current.reserved_for == wanted.reserved_for
        and current.pod_group_name == wanted.pod_group_name
        and current.force_deleted_pods == wanted.force_deleted_pods
    )


def _essence(status: ClaimReservationStatus) -> list[tuple[str, str, str]]:
    return [(c.type, c.status, c.reason) for c in status.conditions]


def desired_status(found: Assessment, retention: RetentionDecision) -> ClaimReservationStatus:
    """The whole status. A time in it changes only when its event happens again.

    Another controller's clock may have set a time. A time that seems wrong stays; else two
    controllers would correct each other for ever.
    """
    snapshot, held = found.snapshot, retention.held
    reservation, old = held.reservation, held.reservation.status
    claim, now = snapshot.claim, _seconds(snapshot.now)
    same = claim is not None and old.claim_uid in ("", claim.metadata.uid)
    idle = held.workload.phase is WorkloadPhase.IDLE or not held.workload.names_claim
    idle_since = None if held.idle_outdated else old.idle_since
    unused = not found.consumers.count
    ghosts = ghosts_to_record(snapshot, old.force_deleted_pods)
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
    """The listed reference; while a fenced claim is still allocated, the recorded one."""
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
    """The progress of the release, recorded in each reservation that releases the claim."""
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


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a reservation cannot be served.

    The reason is ``FORBIDDEN`` (a right is missing), ``INVALID`` (the API server does not accept
    the object) or ``UNREADABLE`` (an object cannot be read).
    """

    reason: Reason
    message: str


def refused_status(
    reservation: ClaimReservation, wanted: ClaimReservationStatus, refusal: Refusal, now: datetime
) -> ClaimReservationStatus:
    """``wanted`` with the condition ``Ready=False``; its time stays if it was False before."""
    before = find_condition(reservation.status.conditions, ConditionType.READY)
    known = before is not None and before.status == "False"
    ready = Condition(
        type=ConditionType.READY,
        status="False",
        reason=refusal.reason,
        message=shortened(refusal.message),
        observed_generation=reservation.metadata.generation,
        last_transition_time=before.last_transition_time
        if before is not None and known
        else now.replace(microsecond=0),
    )
    others = tuple(each for each in wanted.conditions if each.type != ConditionType.READY)
    return msgspec.structs.replace(wanted, conditions=(ready, *others))
