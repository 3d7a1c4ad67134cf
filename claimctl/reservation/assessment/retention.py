"""Decide for one reservation whether it holds its claim, releases it, or asks for nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from math import inf

from claimctl.reservation.facts.decision import Blocker
from claimctl.reservation.facts.dialects import DIALECTS
from claimctl.reservation.facts.pods import Consumers
from claimctl.reservation.facts.reasons import Reason, RetentionPolicy
from claimctl.reservation.facts.references import (
    WORKLOAD_RESOURCES,
    is_tombstone,
    same_name,
    uids_written_by,
    workload_reference,
)
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase
from claimctl.reservation.users.blockers import longer_grace
from claimctl.reservation.users.waiting import (
    asks_to_reallocate,
    evicts,
    list_full,
    may_reallocate,
    stuck_since,
)
from claimctl.text import counted
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.reservations import (
    REALLOCATE_ANNOTATION,
    RELEASE_ANNOTATION,
    ClaimReservation,
)


class Action(StrEnum):
    HOLD = "Hold"
    RELEASE = "Release"
    NONE = "None"


@dataclass(frozen=True, slots=True)
class RetentionDecision:
    """What one reservation asks for."""

    held: Held
    action: Action
    reason: Reason
    reference: Reference | None = None
    """The reference to the workload's present incarnation if it exists, else ``recorded``."""
    recorded: Reference | None = None
    """The reference that was reserved on this claim for the reservation, of any incarnation."""
    longer_grace: Blocker | None = None
    """For a deleted reservation: a blocker while its grace, the longest of all, still counts."""
    blocker: Blocker | None = None
    """With HOLD: why the reservation does not release the claim. With RELEASE: ``longer_grace``."""


def decide_retention(
    snapshot: Snapshot, held: Held, consumers: Consumers, groups: frozenset[str]
) -> RetentionDecision:
    """What the reservation asks for. The claim exists and the workload's state is confirmed.

    Args:
        groups: UIDs of the listed PodGroups that belong to the claim's workloads.
    """
    decision = _decide(snapshot, held, consumers, groups)
    why = decision.blocker
    if decision.action is not Action.HOLD or why is None:
        return decision
    if not asks_to_reallocate(snapshot.claim, held) or not snapshot.allocated:
        return decision
    return replace(decision, blocker=replace(why, message=f"{why.message}; {_request(held)}"))


def _request(held: Held) -> str:
    """What becomes of the request to give the devices up, for a condition."""
    if not may_reallocate(held):
        return f"{REALLOCATE_ANNOTATION} is ignored, since reallocateTimeoutSeconds is null"
    return f"{REALLOCATE_ANNOTATION} asks to give the devices up when no pod uses them"


def _decide(
    snapshot: Snapshot, held: Held, consumers: Consumers, groups: frozenset[str]
) -> RetentionDecision:
    assert snapshot.claim is not None
    recorded = _recorded(snapshot, held)
    present = RetentionDecision(
        held,
        Action.NONE,
        Reason.WORKLOAD_NOT_FOUND,
        _reference(held) or recorded,
        recorded,
        longer_grace(snapshot, held) if held.reservation.metadata.deleting else None,
    )
    if _unsupported(held.reservation):
        return replace(present, reason=Reason.WORKLOAD_KIND_UNSUPPORTED)
    if (reason := _forced(snapshot, held)) is not None:
        return _releases(replace(present, blocker=present.longer_grace), reason)
    if held.workload.phase is WorkloadPhase.UNREADABLE:
        return _undecided(present)
    if recorded is None and _left_behind(snapshot, held, groups):
        return _releases(present, Reason.WORKLOAD_ENDED)
    if present.reference is None:
        return present
    refusal = _refusal(snapshot, held, present.reference)
    if refusal is not None and recorded is None:
        return replace(present, reason=refusal)
    return _by_workload(snapshot, present, consumers)


def _undecided(present: RetentionDecision) -> RetentionDecision:
    """The decision for an unreadable workload: a present hold stays, and no new hold is made."""
    why = Blocker(Reason.UNREADABLE, present.held.workload.problem)
    held = present.reference is not None and present.recorded is not None
    retention, reason = (Action.HOLD, Reason.HELD) if held else (Action.NONE, Reason.UNREADABLE)
    return replace(present, action=retention, reason=reason, blocker=why)


def _left_behind(snapshot: Snapshot, held: Held, groups: frozenset[str]) -> bool:
    """Whether the workload has ended without a hold, and no other component will deallocate.

    The scheduler leaves such an allocation when it gives up a pod that is gone (Unreserve). A
    workload with a PodGroup does so if it came and went while no controller ran: its group stays
    listed, and after the fence only tombstones.
    """
    abandoned = snapshot.allocated and all(
        each.uid in groups or is_tombstone(each) for each in snapshot.references
    )
    return abandoned and held.workload.ended


def _recorded(snapshot: Snapshot, held: Held) -> Reference | None:
    """The reference that was reserved on this claim for the reservation, of any incarnation.

    The reservation's status records it. If claimctl was killed before it wrote the status, the
    claim shows it: by managedFields, or by ``spec.reservedFor``.
    """
    claim, status = snapshot.claim, held.reservation.status
    if claim is None:
        return None
    if status.reserved_for is not None and status.claim_uid == claim.metadata.uid:
        return status.reserved_for
    return shown_reference(claim, held.reservation)


def shown_reference(claim: ResourceClaim, reservation: ClaimReservation) -> Reference | None:
    """The listed reference that claimctl wrote for the reservation, by managedFields or spec."""
    if _unsupported(reservation):
        return None
    name = workload_reference(reservation.spec.workload_ref, "")
    known = uids_written_by(claim) | {
        claim.spec.reserved_for.uid if claim.spec.reserved_for else ""
    }
    listed = claim.status.reserved_for
    return next((ref for ref in listed if same_name(ref, name) and ref.uid in known), None)


def _unsupported(reservation: ClaimReservation) -> bool:
    ref = reservation.spec.workload_ref
    return (ref.api_group, ref.kind) not in WORKLOAD_RESOURCES


def _reference(held: Held) -> Reference | None:
    """The reference to the workload's present incarnation, or None if it does not exist."""
    if held.workload.exists and not _unsupported(held.reservation):
        return workload_reference(held.reservation.spec.workload_ref, held.workload.uid)
    return None


def _forced(snapshot: Snapshot, held: Held) -> Reason | None:
    """A reason to release the claim whatever the state of the workload, or None."""
    assert snapshot.claim is not None
    if snapshot.claim.metadata.deleting:
        return Reason.CLAIM_DELETED
    if held.reservation.metadata.deleting:
        return Reason.WITHDRAWN
    if held.reservation.metadata.annotation(RELEASE_ANNOTATION) == snapshot.claim.metadata.uid:
        return Reason.RELEASE_REQUESTED
    return None


def _refusal(snapshot: Snapshot, held: Held, reference: Reference) -> Reason | None:
    """Why a reservation that holds nothing yet may not begin to hold, or None."""
    assert snapshot.claim is not None
    if held.workload.ended:
        return Reason.WORKLOAD_ENDED
    if not held.workload.names_claim:
        return Reason.CLAIM_NOT_NAMED_BY_POD_TEMPLATE
    refusal = DIALECTS[snapshot.rules.dialect].refuses(snapshot.claim, reference)
    return None if refusal is Reason.WORKLOAD_RECREATED else refusal


def _by_workload(
    snapshot: Snapshot, present: RetentionDecision, consumers: Consumers
) -> RetentionDecision:
    held, reference = present.held, present.reference
    assert snapshot.claim is not None
    assert reference is not None
    policy = _policy(held)
    if held.workload.ended and policy is not RetentionPolicy.MANUAL:
        return _releases(present, Reason.WORKLOAD_ENDED)
    if not held.workload.ended and _other_incarnation(snapshot, reference):
        return _releases(present, Reason.WORKLOAD_RECREATED)
    trapped = _trapped(snapshot, present, consumers)
    if trapped is not None and trapped.action is Action.RELEASE:
        return trapped
    wanted = _by_policy(snapshot, present, policy, consumers)
    if trapped is None or wanted.action is Action.RELEASE:
        return wanted
    # whichever time alone changes first
    return min(trapped, wanted, key=lambda each: (each.blocker and each.blocker.after) or inf)


def _by_policy(
    snapshot: Snapshot,
    present: RetentionDecision,
    policy: RetentionPolicy,
    consumers: Consumers,
) -> RetentionDecision:
    held = present.held
    if held.workload.ended:
        asked = held.reservation.spec.retention_policy
        text = f"retentionPolicy {asked}: `claimctl release` frees it"
        return _holds(present, Reason.RETENTION, text)
    if held.workload.phase is not WorkloadPhase.IDLE and held.workload.names_claim:
        return _holds(present, Reason.WORKLOAD_WANTS_PODS, _wants(held))
    return _idle(snapshot, present, policy, consumers)


def _policy(held: Held) -> RetentionPolicy:
    """The retention policy. A policy that this version does not know counts as Manual."""
    asked = held.reservation.spec.retention_policy
    return RetentionPolicy(asked) if asked in set(RetentionPolicy) else RetentionPolicy.MANUAL


def _other_incarnation(snapshot: Snapshot, reference: Reference) -> bool:
    """Whether ``spec.reservedFor`` has the UID of another incarnation (KEP-5194: immutable)."""
    assert snapshot.claim is not None
    created_for = snapshot.claim.spec.reserved_for
    return created_for is not None and created_for.uid != reference.uid


def _releases(present: RetentionDecision, reason: Reason) -> RetentionDecision:
    return replace(present, action=Action.RELEASE, reason=reason)


def _idle(
    snapshot: Snapshot, present: RetentionDecision, policy: RetentionPolicy, consumers: Consumers
) -> RetentionDecision:
    if consumers.count:
        using = counted(consumers.count, "pod still uses the claim", "pods still use the claim")
        return _holds(present, Reason.CONSUMERS_LEFT, using)
    if policy is not RetentionPolicy.WHILE_RUNNING:
        return _holds(
            present, Reason.RETENTION, f"retentionPolicy {policy} holds while the workload is idle"
        )
    spec, status = present.held.reservation.spec, present.held.reservation.status
    left = spec.idle_timeout_seconds - _idle_for(snapshot, present.held)
    if (status.idle_since is None or left > 0) and not begun(snapshot, present.held, Reason.IDLE):
        text = f"idle; released after {spec.idle_timeout_seconds} s of it"
        return _holds(present, Reason.IDLE_TIMEOUT, text, max(left, _AT_ONCE))
    return _releases(present, Reason.IDLE)


def _trapped(
    snapshot: Snapshot, present: RetentionDecision, consumers: Consumers
) -> RetentionDecision | None:
    """The decision if pods wait for the claim in vain because of the hold; None if none does."""
    if list_full(snapshot, consumers):
        return _releases(present, Reason.HOLD_YIELDED)
    if not may_reallocate(present.held):
        return None
    if evicts(snapshot):
        # also beside bound pods: the next one comes before any status could say so
        return _releases(present, Reason.REALLOCATED)
    if asks_to_reallocate(snapshot.claim, present.held):
        usable = not snapshot.allocated or bool(consumers.bound)
        return None if usable else _releases(present, Reason.REALLOCATED)
    since = stuck_since(snapshot, consumers)
    timeout = present.held.reservation.spec.reallocate_timeout_seconds
    if since is None or timeout is None:
        return None
    left = timeout - _passed(snapshot, since)
    if left > 0 and not begun(snapshot, present.held, Reason.REALLOCATED):
        text = f"its pods are unschedulable while it is held; released after {timeout} s of it"
        return _holds(present, Reason.WORKLOAD_WANTS_PODS, text, left)
    return _releases(present, Reason.REALLOCATED)


_AT_ONCE = 0.001
"""Seconds to wait if the status that starts the idle time is yet to be written."""


def _idle_for(snapshot: Snapshot, held: Held) -> float:
    """Seconds since idleSince of the status: by our monotonic clock if known, else by wall time."""
    since = held.reservation.status.idle_since
    if held.idle_age is not None or since is None:
        return held.idle_age or 0.0
    return _passed(snapshot, since)


def _passed(snapshot: Snapshot, since: datetime) -> float:
    return (snapshot.now - since).total_seconds()


def begun(snapshot: Snapshot, held: Held, reason: Reason) -> bool:
    """Whether the status records that a release of this claim for this reason has begun.

    Another controller's wait may be over before ours. Without this check, two controllers that
    wait by their own clocks would undo each other's writes.
    """
    progress, claim = held.reservation.status.release, snapshot.claim
    return (
        progress is not None
        and claim is not None
        and (progress.claim_uid, progress.reason) == (claim.metadata.uid, reason)
    )


def _wants(held: Held) -> str:
    if held.workload.phase is WorkloadPhase.ABSENT:
        return f"ReplicaSet {held.workload.orphaned_replica_sets[0]} goes on making pods"
    ref = held.reservation.spec.workload_ref
    return f"{ref.kind} {ref.name} wants {counted(held.workload.wants, 'pod')}"


def _holds(
    present: RetentionDecision, reason: Reason, message: str, after: float | None = None
) -> RetentionDecision:
    blocker = Blocker(reason, message, after)
    return replace(present, action=Action.HOLD, reason=Reason.HELD, blocker=blocker)
