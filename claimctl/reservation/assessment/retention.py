"""Decide for one reservation whether it holds its claim, releases it, or asks for nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf

from claimctl.reservation.facts.decision import Blocker
from claimctl.reservation.facts.reasons import Reason, RetentionPolicy
from claimctl.reservation.facts.references import is_tombstone, uids_written_by
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase
from claimctl.reservation.kinds.shipped import WORKLOAD_RESOURCES
from claimctl.reservation.users.ghosts import longer_grace
from claimctl.text import counted, listed
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.reservations import (
    NEVER_REALLOCATED,
    REALLOCATE_ANNOTATION,
    RELEASE_ANNOTATION,
    ClaimReservation,
)

_RECENT, _CHILDREN_SOON, _CHILDREN_LATER = 60.0, 2.0, 30.0
"""How often the children of a workload that is over are listed again: in the first seconds after
its last pod, and later. Garbage collection needs a moment; a child that stays may stay for days."""
_AT_ONCE = 0.001
"""Seconds to wait if the status that starts the idle time is yet to be written."""


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
    is_listed: bool = False
    """Whether the claim lists ``reference``."""
    longer_grace: Blocker | None = None
    """For a deleted reservation: a blocker while its grace, the longest of all, still counts."""
    blocker: Blocker | None = None
    """With HOLD: why the reservation does not release the claim. With RELEASE: ``longer_grace``, or
    what has become of the devices."""

    def hold(self, reason: Reason, message: str, after: float | None = None) -> RetentionDecision:
        """The same, but the claim is held for this reason."""
        blocker = Blocker(reason, message, after)
        return replace(self, action=Action.HOLD, reason=Reason.HELD, blocker=blocker)

    def release(self, reason: Reason) -> RetentionDecision:
        """The same, but the claim is released for this reason."""
        return replace(self, action=Action.RELEASE, reason=reason)


def decide_retention(snapshot: Snapshot, held: Held, groups: frozenset[str]) -> RetentionDecision:
    """What the reservation asks for, within the limit of the cluster. The claim exists and the
    workload's state is confirmed.

    Args:
        groups: UIDs of the listed PodGroups that belong to the claim's workloads.
    """
    wanted, unused = _as_asked(snapshot, held, groups), snapshot.unused_since
    limit = snapshot.rules.max_seconds_without_pods
    if wanted.action is not Action.HOLD or unused is None:
        return wanted
    # The limit applies whatever the spec and the workload say, also to what cannot be read. While
    # the status still counts consumers that are gone, it does not record when the last one went.
    status, created = held.reservation.status, held.reservation.metadata.creation_timestamp
    since = max(unused, created) if created is not None else unused
    age = min((snapshot.now - since).total_seconds(), held.since_use)
    unrecorded = status.consumers and not snapshot.consumers.count
    left = limit - (0.0 if unrecorded else age)
    if left <= 0 or has_begun(snapshot, held, Reason.UNUSED_TOO_LONG):
        return wanted.release(Reason.UNUSED_TOO_LONG)
    if limit == inf:
        return wanted
    assert wanted.blocker is not None
    after = left if wanted.blocker.after is None else min(left, wanted.blocker.after)
    return replace(wanted, blocker=replace(wanted.blocker, after=after))


def _as_asked(snapshot: Snapshot, held: Held, groups: frozenset[str]) -> RetentionDecision:
    claim, meta, workload = snapshot.claim, held.reservation.metadata, held.workload
    assert claim is not None
    # 1. Which reference was reserved for the reservation, and which is its present one?
    recorded = recorded_reference(claim, held.reservation, held.resource)
    reference = recorded
    if held.resource and workload.exists:
        reference = held.reference
    lent = longer_grace(snapshot, held) if meta.deleting else None
    listed = reference is not None and reference.uid in snapshot.listed_uids
    present = RetentionDecision(
        held, Action.NONE, Reason.WORKLOAD_NOT_FOUND, reference, recorded, listed, lent
    )
    unknown = workload.phase is WorkloadPhase.UNKNOWN
    if not held.resource and recorded is None and not unknown:
        return replace(present, reason=Reason.WORKLOAD_KIND_UNSUPPORTED)
    # 2. Is the claim released whatever the state of the workload?
    if claim.metadata.deleting:
        return replace(present, blocker=lent).release(Reason.CLAIM_DELETED)
    # Garbage collection deletes the reservation of a workload that is gone, and may leave objects
    # that the workload made.
    if meta.deleting and (held.withdrawn or not workload.children):
        return replace(present, blocker=lent).release(Reason.WITHDRAWN)
    if meta.annotation(RELEASE_ANNOTATION) == claim.metadata.uid:
        return present.release(Reason.RELEASE_REQUESTED)
    # 3. If the workload cannot be read, a present hold stays, and no new hold is made.
    if workload.phase is WorkloadPhase.UNREADABLE:
        undecided = replace(present, blocker=Blocker(Reason.UNREADABLE, workload.problem))
        if reference is not None and recorded is not None:
            return replace(undecided, action=Action.HOLD, reason=Reason.HELD)
        return replace(undecided, reason=Reason.UNREADABLE)
    # An unknown state holds, also for a new hold, and ends none.
    if unknown and reference is None:
        blocker = Blocker(Reason.WORKLOAD_STATE_UNKNOWN, workload.problem)
        return replace(present, reason=Reason.WORKLOAD_STATE_UNKNOWN, blocker=blocker)
    # 4. Has the workload left an allocation behind, without a hold, that no other component gives
    # back? The scheduler leaves such an allocation when it gives up a pod that is gone (Unreserve).
    # So does a workload with a PodGroup that came and went while no controller ran: its group stays
    # listed, and after the fence only tombstones.
    alone = all(entry.uid in groups or is_tombstone(entry) for entry in snapshot.references)
    ended = Reason.WORKLOAD_ENDED if workload.ended else _claim_over(snapshot, held)
    if recorded is None and ended is not None and snapshot.allocated and alone:
        return present.release(ended)
    if reference is None:
        return present
    # 5. May the reservation begin to hold the claim?
    if recorded is None:
        refusal = snapshot.dialect.refuses(claim, reference)
        if workload.is_over:
            refusal = Reason.WORKLOAD_ENDED
        elif not workload.names_claim:
            by_pods = Reason.CLAIM_NOT_NAMED_BY_POD
            refusal = by_pods if workload.by_pods else Reason.CLAIM_NOT_NAMED_BY_POD_TEMPLATE
        elif held.reservation.spec.sticky is not None and not held.has_made(claim):
            refusal = Reason.STICKY_NAME_TAKEN
        if refusal not in (None, Reason.WORKLOAD_RECREATED):
            return replace(present, reason=refusal)
    # 6. What do the workload, its pods and the policy ask for?
    decision = _by_workload(snapshot, claim, present, reference)
    # 7. A user's request to give the devices up waits, or is ignored: say so.
    asked = snapshot.allocated and held.name in snapshot.asked_to_reallocate
    if not asked or decision.action is not Action.HOLD or decision.blocker is None:
        return decision
    text = f"{REALLOCATE_ANNOTATION} asks to give the devices up when no pod uses them"
    if not held.may_reallocate:
        text = f"{REALLOCATE_ANNOTATION} is ignored, since {NEVER_REALLOCATED}"
    message = f"{decision.blocker.message}; {text}"
    return replace(decision, blocker=replace(decision.blocker, message=message))


def _claim_over(snapshot: Snapshot, held: Held) -> Reason | None:
    """The reason to release a sticky claim that no pod uses, or will use again; None if there is
    none."""
    unused = held.workload.claim_over and not snapshot.consumers.alive
    return Reason.ORDINAL_ENDED if unused else None


def recorded_reference(
    claim: ResourceClaim, reservation: ClaimReservation, resource: str = ""
) -> Reference | None:
    """The reference that claimctl listed in this claim for the reservation, if it did.

    The status of the reservation records the reference, and the UID of the claim. The controller
    writes the status a moment after the list. Until then ``shown_reference`` tells: the reservation
    has to name the workload, and managedFields have to name claimctl as the writer of the entry.

    Args:
        resource: the resource name of the workload's kind; '' for a kind with a shipped rule.
    """
    status = reservation.status
    if status.reserved_for is not None and status.claim_uid == claim.metadata.uid:
        return status.reserved_for
    return shown_reference(claim, reservation, resource)


def shown_reference(
    claim: ResourceClaim, reservation: ClaimReservation, resource: str = ""
) -> Reference | None:
    """The listed reference that claimctl wrote for the reservation, by managedFields or spec.

    Args:
        resource: the resource name of the workload's kind; '' for a kind with a shipped rule.
    """
    ref, created_for = reservation.spec.workload_ref, claim.spec.reserved_for
    resource = resource or WORKLOAD_RESOURCES.get((ref.api_group, ref.kind), "")
    if not resource:
        return None
    named = [
        listed
        for listed in claim.status.reserved_for
        if listed.key == (ref.api_group, resource, ref.name)
    ]
    # a claim may have many reservations: its managedFields are decoded only where they can decide
    written = uids_written_by(claim) if named else frozenset()
    return next(
        (
            listed
            for listed in named
            if listed.uid in written or (created_for is not None and listed.uid == created_for.uid)
        ),
        None,
    )


def _by_workload(
    snapshot: Snapshot, claim: ResourceClaim, present: RetentionDecision, reference: Reference
) -> RetentionDecision:
    """What the state of the workload asks for, or the pods that wait in vain.

    A workload ``is_over`` if it makes nothing more itself, and has ``ended`` if besides nothing
    that it has made can make pods.
    """
    held, spec = present.held, present.held.reservation.spec
    if held.workload.phase is WorkloadPhase.UNKNOWN:
        return present.hold(Reason.WORKLOAD_STATE_UNKNOWN, held.workload.problem)
    known = spec.retention_policy in set(RetentionPolicy)
    # a policy that this version does not know counts as Manual
    policy = RetentionPolicy(spec.retention_policy) if known else RetentionPolicy.MANUAL
    if held.workload.ended and policy is not RetentionPolicy.MANUAL:
        return present.release(Reason.WORKLOAD_ENDED)
    if (over := _claim_over(snapshot, held)) is not None and policy is not RetentionPolicy.MANUAL:
        return present.release(over)
    created_for = claim.spec.reserved_for
    if not held.workload.ended and created_for is not None and created_for.uid != reference.uid:
        # KEP-5194: spec.reservedFor is immutable, and names another incarnation
        return present.release(Reason.WORKLOAD_RECREATED)
    unreachable = _by_waiting_pods(snapshot, present)
    if unreachable is not None and unreachable.action is Action.RELEASE:
        return unreachable
    if held.workload.is_over and policy is RetentionPolicy.MANUAL:
        command = f"claimctl release {snapshot.name} -n {snapshot.namespace}"
        text = f"retentionPolicy {spec.retention_policy}: `{command}` frees it"
        wanted = present.hold(Reason.RETENTION, text)
    elif held.workload.wants_nothing:
        wanted = _by_idle_time(snapshot, present, policy)
    elif held.workload.phase in (WorkloadPhase.ABSENT, WorkloadPhase.ENDED) and not (
        held.workload.orphaned_replica_sets
    ):
        wanted = _by_children(snapshot, present)
    elif held.workload.phase is WorkloadPhase.ABSENT:
        text = f"ReplicaSet {held.workload.orphaned_replica_sets[0]} still creates pods"
        wanted = present.hold(Reason.WORKLOAD_WANTS_PODS, text)
    else:
        wants = held.workload.wants
        pods = {0: "pods", 1: "1 pod"}.get(wants, f"{wants} pods")
        text = f"{spec.workload_ref.kind} {spec.workload_ref.name} wants {pods}"
        wanted = present.hold(Reason.WORKLOAD_WANTS_PODS, text)
    if unreachable is None or wanted.action is Action.RELEASE:
        return wanted
    # whichever time alone changes first
    choices = (unreachable, wanted)
    return min(choices, key=lambda choice: (choice.blocker and choice.blocker.after) or inf)


def _by_children(snapshot: Snapshot, present: RetentionDecision) -> RetentionDecision:
    """Hold the claim of a workload that is over, while objects that it made may make pods."""
    children, since = present.held.workload.children, present.held.reservation.status
    if not children:
        using = counted(snapshot.consumers.count, "pod still uses", "pods still use")
        return present.hold(Reason.CONSUMERS_LEFT, f"the workload is over, and {using} the claim")
    last = since.last_consumer_time
    soon = last is not None and (snapshot.now - last).total_seconds() < _RECENT
    text = f"the workload is over, and objects that it made are left: {listed(children)}"
    after = _CHILDREN_SOON if soon else _CHILDREN_LATER
    return present.hold(Reason.CHILDREN_REMAIN, text, after)


def _by_idle_time(
    snapshot: Snapshot, present: RetentionDecision, policy: RetentionPolicy
) -> RetentionDecision:
    """Hold the claim of an idle workload until its pods are gone and the timeout is over."""
    held, count = present.held, snapshot.consumers.count
    if count:
        using = counted(count, "pod still uses the claim", "pods still use the claim")
        return present.hold(Reason.CONSUMERS_LEFT, using)
    if policy is not RetentionPolicy.WHILE_RUNNING:
        text = f"retentionPolicy {policy} holds while the workload is idle"
        return present.hold(Reason.RETENTION, text)
    timeout, since = held.reservation.spec.idle_timeout_seconds, held.reservation.status.idle_since
    idle = held.idle_age
    if idle is None:
        # this process did not see the time appear
        idle = (snapshot.now - since).total_seconds() if since is not None else 0.0
    if (since is None or idle < timeout) and not has_begun(snapshot, held, Reason.IDLE):
        text = f"idle: the claim is released after {timeout} s without pods"
        return present.hold(Reason.IDLE_TIMEOUT, text, max(timeout - idle, _AT_ONCE))
    return present.release(Reason.IDLE)


def _by_waiting_pods(snapshot: Snapshot, present: RetentionDecision) -> RetentionDecision | None:
    """What pods ask for that wait for devices which they cannot reach: that the claim is given up,
    now or after a while; None if none waits."""
    held, pods = present.held, snapshot.consumers
    if pods.shut_out:
        return present.release(Reason.HOLD_YIELDED)
    if not held.may_reallocate:
        return _hold_pinned(snapshot, present, NEVER_REALLOCATED) if snapshot.stuck_since else None
    loss = snapshot.loss
    if loss is not None and (loss.after == 0 or has_begun(snapshot, held, Reason.REALLOCATED)):
        # also beside bound pods: the next one comes before any status could say so
        blocker = Blocker(loss.reason, loss.message)
        return replace(present, blocker=blocker).release(Reason.REALLOCATED)
    if held.name in snapshot.asked_to_reallocate:
        usable = not snapshot.allocated or bool(pods.bound)
        return None if usable else present.release(Reason.REALLOCATED)
    since = snapshot.stuck_since
    timeout = held.reservation.spec.reallocate_after_seconds
    if since is None or timeout is None:
        return None
    # the scheduler's clock may be ahead, and this one be set right while nothing else happens
    left = timeout - max((snapshot.now - since).total_seconds(), 0.0)
    waits = left > 0 and not snapshot.node_missing
    if waits and not has_begun(snapshot, held, Reason.REALLOCATED):
        return _hold_pinned(snapshot, present, f"it is released after {timeout} s of that", left)
    return present.release(Reason.REALLOCATED)


def _hold_pinned(
    snapshot: Snapshot, present: RetentionDecision, until: str, after: float | None = None
) -> RetentionDecision:
    """Hold the claim although pods wait for it in vain: the scheduler finds no place for them where
    the devices are."""
    claim = snapshot.claim
    nodes = sorted(claim.nodes_named) if claim is not None else []
    where = f" on {listed(nodes)}" if nodes else ""
    text = f"no pod finds a place with the devices{where}; {until}"
    return present.hold(Reason.PODS_PINNED, text, after)


def has_begun(snapshot: Snapshot, held: Held, reason: Reason) -> bool:
    """Whether the status records that a release of this claim for this reason has begun: another
    controller's wait may be over before ours, and the two must not undo each other's writes."""
    progress, claim = held.reservation.status.release, snapshot.claim
    return (
        progress is not None
        and claim is not None
        and (progress.claim_uid, progress.reason) == (claim.metadata.uid, reason)
    )
