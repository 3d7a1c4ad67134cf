"""Compute the statuses that reservations should have, and write one that differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as replaced
from datetime import datetime
from math import inf

from msgspec.structs import replace

from claimctl.reservation.assessment.assessment import Assessment, Phase
from claimctl.reservation.assessment.retention import Action, RetentionDecision
from claimctl.reservation.facts.decision import Blocker, Decision, WriteStatus
from claimctl.reservation.facts.reasons import ConditionType, Reason, ReleaseStep
from claimctl.reservation.facts.references import (
    LIMIT,
    is_workload,
    uids_written_by,
)
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase
from claimctl.reservation.status.conditions import conditions, shortened
from claimctl.reservation.users.ghosts import MOST, ghosts_to_record
from claimctl.wire.claims import Reference
from claimctl.wire.meta import Condition, find_condition
from claimctl.wire.reservations import (
    FINALIZER,
    ClaimReservation,
    ClaimReservationStatus,
    ReferenceCounts,
    ReleaseProgress,
)
from claimctl.wire.resources import CLAIMRESERVATIONS
from claimctl.wire.unreadable import Unreadable

MOMENT = 1.0
"""Seconds in which more may change that the same status can tell."""

NOTHING_YET = 5.0
"""Seconds to wait before a status tells that the claim is not allocated yet."""

CONTESTED_SECONDS = 30.0
"""Least time in seconds between two writes of a status that another client keeps overwriting."""


def with_statuses(found: Assessment) -> Assessment:
    """Add the statuses. If there is no other write, write the first status that is due.

    What the protocol needs is written at once. The rest waits for a moment, because more may change
    in that time, so that the number of writes does not grow with the number of pods.
    """
    wanted = {each.held.name: desired_status(found, each) for each in found.retentions}
    found = replace(found, statuses=wanted)
    if found.decided:
        return found
    for retention in found.retentions:
        reservation, status = retention.held.reservation, wanted[retention.held.name]
        if reservation.status == status or _goes_anyway(found, reservation):
            continue
        left = _left(found, reservation, status)
        if left <= 0:
            return replace(found, write=WriteStatus(reservation, status, _is_last(found, status)))
        found = found.sooner(left)
    return found


def _is_last(found: Assessment, status: ClaimReservationStatus) -> bool:
    """Whether no decision follows from the status: it only reports a hold that stays.

    A status that another controller needs for a release, or from which a time counts, is looked at
    again.
    """
    held = [each.held.reservation for each in found.retentions if each.action is Action.HOLD]
    if found.phase is not Phase.KEPT or len(held) != 1 or len(found.retentions) != 1:
        return False
    (current,) = (each.status for each in held)
    return (
        found.after is None
        and bool(found.consumers.count)
        and current.release is None
        and not found.snapshot.ghosts
        and status.pod_group_name == current.pod_group_name
    )


def _goes_anyway(found: Assessment, reservation: ClaimReservation) -> bool:
    """Whether the reservation goes in a moment, so that a last status would tell nobody anything.

    The record of its release goes with it. Should a scheduler allocate the claim anew before that,
    the record does no harm: claimctl removes the finalizer of a claim without allocation only from
    a version that has rested for the settle time (``release.protocol.finalizer_step``). Another
    client's finalizer may keep the reservation for long, so then the status is written.
    """
    released = found.phase is Phase.UNALLOCATED and not found.finalizer_left
    meta = reservation.metadata
    return released and meta.deleting and set(meta.finalizers) <= {FINALIZER}


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
            decision = replaced(decision, write=WriteStatus(held.reservation, wanted))
    return decision


def _left(
    found: Assessment, reservation: ClaimReservation, wanted: ClaimReservationStatus
) -> float:
    """Seconds until the status is written; 0 if the protocol needs it now.

    A status that another client keeps overwriting waits for ``CONTESTED_SECONDS``.
    """
    if not _same_protocol(found.snapshot, reservation.status, wanted):
        return 0.0
    name, memory, rules = reservation.metadata.name, found.snapshot.memory, found.snapshot.rules
    since_last = memory.status_age.get(name, inf)
    if memory.repeated_statuses.get(name, 0) >= rules.fight_limit:
        return CONTESTED_SECONDS - since_last
    due = inf if memory.due_age is None else memory.due_age.get(name, 0.0)
    if _only_counts(reservation.status, wanted):
        return max(rules.status_seconds - since_last, MOMENT - due)
    return _patience(found, reservation.status, wanted) - due


def _patience(
    found: Assessment, current: ClaimReservationStatus, wanted: ClaimReservationStatus
) -> float:
    """Seconds to wait before a change of conditions, or the time of the last consumer, is written.

    What the server says about a template is known in this reconcile only, so it cannot wait.
    """
    if found.snapshot.template_missing or found.snapshot.template_refused:
        return 0.0
    ready = find_condition(wanted.conditions, ConditionType.READY)
    if ready is None or ready.status != "True":
        return MOMENT
    if found.phase is Phase.UNALLOCATED and not current.conditions:
        return NOTHING_YET
    # a Job's status says that the Job has ended about a second after its last pod
    unused = bool(current.consumers) and not found.consumers.count
    return 2 * MOMENT if unused or found.releasing is not None else MOMENT


def _same_protocol(
    snapshot: Snapshot, current: ClaimReservationStatus, wanted: ClaimReservationStatus
) -> bool:
    """Whether the wanted status tells a controller that starts now nothing that it needs."""
    return (
        current.release == wanted.release
        and (_record(current) == _record(wanted) or _is_first_shown(snapshot, current, wanted))
        and current.pod_group_name == wanted.pod_group_name
        and current.force_deleted_pods == wanted.force_deleted_pods
        and (current.idle_since is None) == (wanted.idle_since is None)
    )


def _record(status: ClaimReservationStatus) -> tuple[str, Reference] | None:
    """The recorded reference, with the UID of the claim that it counts for."""
    return None if status.reserved_for is None else (status.claim_uid, status.reserved_for)


def _is_first_shown(
    snapshot: Snapshot, current: ClaimReservationStatus, wanted: ClaimReservationStatus
) -> bool:
    """Whether nothing is recorded yet, and the claim itself shows the reference.

    managedFields say that claimctl listed it. A controller that starts now finds it there.
    """
    claim, reference = snapshot.claim, wanted.reserved_for
    if claim is None or reference is None or current.reserved_for is not None:
        return False
    return reference.uid in uids_written_by(claim)


def _only_counts(current: ClaimReservationStatus, wanted: ClaimReservationStatus) -> bool:
    """Whether conditions and the time of the last consumer stay, from which other times count."""
    same = current.last_consumer_time == wanted.last_consumer_time
    return same and _essence(current) == _essence(wanted)


def _essence(status: ClaimReservationStatus) -> list[tuple[str, str, str]]:
    return [(c.type, c.status, c.reason) for c in status.conditions]


def desired_status(found: Assessment, retention: RetentionDecision) -> ClaimReservationStatus:
    """The whole status. A time in it changes only when its event happens again.

    Another controller's clock may have set a time. A time that seems wrong stays; else two
    controllers would correct each other for ever.
    """
    snapshot, held = found.snapshot, retention.held
    reservation, old = held.reservation, held.reservation.status
    claim, now = snapshot.claim, snapshot.now.replace(microsecond=0)
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


def _reserved_for(found: Assessment, retention: RetentionDecision) -> Reference | None:
    """The listed reference; while a fenced claim is still allocated, the recorded one."""
    if found.listed(retention.reference):
        return retention.reference
    return retention.recorded if found.snapshot.allocated else None


def _counts(snapshot: Snapshot) -> ReferenceCounts:
    workloads = sum(map(is_workload, snapshot.no_pods))
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
    """The progress of the release, recorded in each reservation that releases the claim.

    The record stays after the deallocation until the claim has lost its finalizer: it shows
    another controller who deallocated.
    """
    if found.finalizer_left:
        return retention.held.reservation.status.release
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
    return replace(wanted, conditions=(ready, *others))
