"""Compute the statuses that reservations should have, and write one that differs."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from claimctl.reservation.assessment.assess import Assessment, Phase
from claimctl.reservation.assessment.retention import Action, RetentionDecision
from claimctl.reservation.facts.decision import Blocker, Decision, WriteStatus
from claimctl.reservation.facts.reasons import ConditionType, Reason, ReleaseStep
from claimctl.reservation.facts.references import LIMIT, is_workload
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.status.conditions import conditions, shorten
from claimctl.reservation.users.ghosts import MOST, ghosts_to_record
from claimctl.wire.fitted import fitted
from claimctl.wire.meta import Condition, find_condition, renewed
from claimctl.wire.reservations import (
    FINALIZER,
    ClaimReservation,
    ClaimReservationStatus,
    ReferenceCounts,
    ReleaseProgress,
)
from claimctl.wire.resources import CLAIMRESERVATIONS

MOMENT = 1.0
"""Seconds in which more may change that the same status can tell."""
NOTHING_YET = 5.0
"""Seconds to wait before a status tells that the claim is not allocated yet."""
CONTESTED_SECONDS = 30.0
"""Least time in seconds between two writes of a status that another client keeps overwriting."""


def decide_statuses(facts: Assessment, decision: Decision) -> None:
    """Add the statuses. If there is no other write, write the first status that is due.

    What the protocol needs is written at once. The rest waits for a moment, because more may change
    in that time, so that the number of writes does not grow with the number of pods.

    No status is written into a reservation that is about to disappear. The record of its release
    goes with it. Should a scheduler allocate the claim anew before that, the record does no harm:
    claimctl removes the finalizer of a claim without allocation only from a version that has rested
    for the settle time (``release.protocol.finalizer_step``). Another client's finalizer may keep
    the reservation for long, so then the status is written.
    """
    statuses = {r.held.name: fitted(desired_status(facts, decision, r)) for r in facts.retentions}
    decision.statuses = statuses
    if decision.decided:
        return
    released = facts.phase is Phase.UNALLOCATED and not facts.finalizer_left
    for retention in facts.retentions:
        reservation, status = retention.held.reservation, statuses[retention.held.name]
        meta = reservation.metadata
        goes = released and meta.deleting and set(meta.finalizers) <= {FINALIZER}
        if reservation.status == status or goes:
            continue
        left = _patience(facts, retention, status)
        if left <= 0:
            last = decision.after is None and _is_last(facts, status)
            decision.write = WriteStatus(reservation, status, last)
            return
        decision.waits.append(left)


def _is_last(facts: Assessment, status: ClaimReservationStatus) -> bool:
    """Whether no decision follows from the status: it only reports a hold that stays, and no time
    counts from it."""
    if facts.phase is not Phase.KEPT or not facts.held or len(facts.retentions) != 1:
        return False
    current = facts.retentions[0].held.reservation.status
    return (
        bool(facts.snapshot.consumers.count)
        and current.release is None
        and not facts.snapshot.ghosts
        and status.pod_group_name == current.pod_group_name
    )


def leave_alone(snapshot: Snapshot) -> Decision:
    """Write only that an object cannot be read; all other fields of the statuses stay."""
    unread = snapshot.unreadable_parts
    text = "; ".join(item.describe() for item in unread[:3])
    blockers = tuple(Blocker(Reason.UNREADABLE, item.describe()) for item in unread)
    names = {item.name for item in unread if item.resource.plural == CLAIMRESERVATIONS.plural}
    decision = Decision(blockers=blockers)
    for held in snapshot.reservations:
        status = held.reservation.status
        wanted = refused_status(held.reservation, status, Reason.UNREADABLE, text, snapshot.now)
        if held.name not in names and wanted != status and decision.write is None:
            decision.write = WriteStatus(held.reservation, wanted)
    return decision


def _patience(
    facts: Assessment, retention: RetentionDecision, wanted: ClaimReservationStatus
) -> float:
    """Seconds until the status is written; 0 if the protocol needs it now.

    What the server says about a template is known in this reconcile only, so it cannot wait.
    """
    snapshot, held, rules = facts.snapshot, retention.held, facts.snapshot.rules
    current, since_last, due = held.reservation.status, held.status_age, held.due_age
    # 1. A controller that starts now needs it: at once.
    if not _may_wait(snapshot, current, wanted):
        return 0.0
    # 2. Another client keeps overwriting the status: rarely.
    if held.repeated_statuses >= rules.fight_limit:
        return CONTESTED_SECONDS - since_last
    # 3. Only counters change, and no time from which others count: rarely.
    essence = [(c.type, c.status, c.reason) for c in wanted.conditions]
    same_use = current.last_consumer_time == wanted.last_consumer_time
    if same_use and essence == [(c.type, c.status, c.reason) for c in current.conditions]:
        return max(rules.status_seconds - since_last, MOMENT - due)
    # 4. A condition changes: after a moment, in which more may change.
    if snapshot.no_template:
        return -due
    ready = find_condition(wanted.conditions, ConditionType.READY)
    if ready is None or ready.status != "True":
        return MOMENT - due
    if facts.phase is Phase.UNALLOCATED and not current.conditions:
        return NOTHING_YET - due
    # a Job's status says that the Job has ended about a second after its last pod
    unused = bool(current.consumers) and not snapshot.consumers.count
    return (2 * MOMENT if unused or facts.releasing is not None else MOMENT) - due


def _may_wait(
    snapshot: Snapshot, current: ClaimReservationStatus, wanted: ClaimReservationStatus
) -> bool:
    """Whether a controller that starts now could do without this change, so that the write may
    wait."""
    # the recorded reference counts for a claim, by its UID
    now = (current.claim_uid, current.reserved_for) if current.reserved_for else None
    then = (wanted.claim_uid, wanted.reserved_for) if wanted.reserved_for else None
    # nothing is recorded yet, and managedFields say that claimctl listed the reference
    shown = wanted.reserved_for is not None and wanted.reserved_for.uid in snapshot.written_uids
    return (
        current.release == wanted.release
        and (now == then or (now is None and shown))
        and current.pod_group_name == wanted.pod_group_name
        and current.force_deleted_pods == wanted.force_deleted_pods
        and (current.idle_since is None) == (wanted.idle_since is None)
    )


def desired_status(
    facts: Assessment, decision: Decision, retention: RetentionDecision
) -> ClaimReservationStatus:
    """The whole status. A time in it changes only when its event happens again. One that seems
    wrong stays; else two controllers would correct each other for ever."""
    snapshot, held = facts.snapshot, retention.held
    reservation, old = held.reservation, held.reservation.status
    claim, now = snapshot.claim, snapshot.now.replace(microsecond=0)
    allocated_at, counts = None, None
    if claim is not None:
        workloads = sum(map(is_workload, snapshot.non_pods))
        pods = len(snapshot.references) - workloads
        counts = ReferenceCounts(pods=pods, workloads=workloads, limit=LIMIT)
        if (allocation := claim.status.allocation) is not None:
            known = old.allocation_time if old.claim_uid in ("", claim.metadata.uid) else None
            allocated_at = allocation.allocation_timestamp or known or now
    # while a fenced claim is still allocated, the recorded reference stays
    reserved_for = retention.recorded if snapshot.allocated else None
    idle = held.workload.wants_nothing
    idle_since = None if held.idle_outdated else old.idle_since
    count = snapshot.consumers.count
    ghosts = ghosts_to_record(snapshot, old.force_deleted_pods) if snapshot.ghosts else ()
    return ClaimReservationStatus(
        observed_generation=reservation.metadata.generation,
        dialect=snapshot.rules.dialect,
        claim_uid=claim.metadata.uid if claim else "",
        reserved_for=retention.reference if facts.is_held_for(retention) else reserved_for,
        pod_group_name=held.workload.pod_group or old.pod_group_name,
        references=counts,
        consumers=count,
        nodes=snapshot.consumers.nodes()[:MOST],
        allocation_time=allocated_at,
        last_consumer_time=now if old.consumers and not count else old.last_consumer_time,
        idle_since=(idle_since or now) if idle and not count else None,
        force_deleted_pods=ghosts,
        release=_progress(facts, decision, retention),
        conditions=conditions(facts, decision, retention, ghosts),
    )


def _progress(
    facts: Assessment, decision: Decision, retention: RetentionDecision
) -> ReleaseProgress | None:
    """The progress of the release, recorded in each reservation that releases the claim. It stays
    until the claim has lost its finalizer: it shows another controller who deallocated."""
    old, step = retention.held.reservation.status.release, decision.step
    if facts.finalizer_left:
        return old
    if step is None or facts.releasing is None or retention.action is not Action.RELEASE:
        return None
    meta, now = facts.claim.metadata, facts.snapshot.now.replace(microsecond=0)
    going_on = old is not None and old.claim_uid == meta.uid
    return ReleaseProgress(
        step=step,
        reason=facts.releasing,
        since=old.since if going_on and old else now,
        claim_uid=meta.uid,
        resource_version=meta.resource_version if step is ReleaseStep.FENCED else "",
    )


def refused_status(
    reservation: ClaimReservation,
    wanted: ClaimReservationStatus,
    reason: Reason,
    message: str,
    now: datetime,
) -> ClaimReservationStatus:
    """``wanted`` with the condition ``Ready=False``: the reservation cannot be served.

    Args:
        reason: ``FORBIDDEN`` (a right is missing), ``INVALID`` (the API server does not accept the
            object) or ``UNREADABLE`` (an object cannot be read).
    """
    ready = Condition(
        type=ConditionType.READY,
        status="False",
        observed_generation=reservation.metadata.generation,
        reason=reason,
        message=shorten(message),
    )
    ready = renewed(ready, reservation.status.conditions, now)
    others = tuple(
        condition for condition in wanted.conditions if condition.type != ConditionType.READY
    )
    return fitted(replace(wanted, conditions=(ready, *others)))
