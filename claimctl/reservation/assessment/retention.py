"""Decide for one reservation whether it holds its claim, releases it, or asks for nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf

from claimctl.reservation.facts.decision import Blocker
from claimctl.reservation.facts.reasons import Reason, RetentionPolicy
from claimctl.reservation.facts.recorded_references import recorded_reference
from claimctl.reservation.facts.references import is_tombstone
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase
from claimctl.reservation.users.ghosts import longer_grace
from claimctl.text import counted, listed
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.reservations import (
    NEVER_REALLOCATED,
    REALLOCATE_ANNOTATION,
    RELEASE_ANNOTATION,
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
    return _within_limit(snapshot, _as_asked(snapshot, held, groups))


def _within_limit(snapshot: Snapshot, wanted: RetentionDecision) -> RetentionDecision:
    """The same, but a hold ends when no pod has used the claim for as long as the cluster allows,
    whatever the spec and the workload say, also if they cannot be read."""
    held, unused = wanted.held, snapshot.unused_since
    limit = snapshot.rules.max_seconds_without_pods
    if wanted.action is not Action.HOLD or unused is None:
        return wanted
    # While the status still counts consumers that are gone, it does not record when the last one
    # went.
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
    """What the reservation asks for without the limit: the first case that applies."""
    claim, workload = snapshot.claim, held.workload
    assert claim is not None
    present = _present(snapshot, claim, held)
    reference, recorded = present.reference, present.recorded
    unknown = workload.phase is WorkloadPhase.UNKNOWN
    # 1. claimctl has no rule for the workload's kind.
    if not held.resource and recorded is None and not unknown:
        return replace(present, reason=Reason.WORKLOAD_KIND_UNSUPPORTED)
    # 2. The claim is released whatever the state of the workload.
    if (release := _release_in_any_state(claim, present)) is not None:
        return release
    # 3. The workload cannot be read: a present hold stays, and no new hold is made.
    if workload.phase is WorkloadPhase.UNREADABLE:
        undecided = replace(present, blocker=Blocker(Reason.UNREADABLE, workload.problem))
        if reference is not None and recorded is not None:
            return replace(undecided, action=Action.HOLD, reason=Reason.HELD)
        return replace(undecided, reason=Reason.UNREADABLE)
    # 4. The state is unknown, and there is no object to hold the claim for. If there is one, an
    # unknown state holds the claim for it (``_by_workload``).
    if unknown and reference is None:
        blocker = Blocker(Reason.WORKLOAD_STATE_UNKNOWN, workload.problem)
        return replace(present, reason=Reason.WORKLOAD_STATE_UNKNOWN, blocker=blocker)
    # 5. The workload has left an allocation behind, without a hold, and no other component gives it
    # back. The scheduler leaves such an allocation when it gives up a pod that is gone (Unreserve).
    # So does a workload with a PodGroup that came and went while no controller ran: its group stays
    # listed, and after the fence only tombstones.
    alone = all(entry.uid in groups or is_tombstone(entry) for entry in snapshot.references)
    ended = _end(snapshot, held)
    if recorded is None and ended is not None and snapshot.allocated and alone:
        return present.release(ended)
    # 6. The workload does not exist, and no incarnation of it has held the claim.
    if reference is None:
        return present
    # 7. The reservation may not begin to hold the claim.
    if recorded is None and (refusal := _refusal(snapshot, claim, held, reference)) is not None:
        return replace(present, reason=refusal)
    # 8. The workload, its pods and the policy decide.
    return _with_request(snapshot, _by_workload(snapshot, claim, present, reference))


def _present(snapshot: Snapshot, claim: ResourceClaim, held: Held) -> RetentionDecision:
    """The references of the reservation, in a decision that asks for nothing, since the workload
    does not exist. The cases of ``_as_asked`` change what is otherwise."""
    recorded = recorded_reference(claim, held.reservation, held.resource)
    exists = held.resource and held.workload.exists
    reference = held.reference if exists else recorded
    return RetentionDecision(
        held,
        Action.NONE,
        Reason.WORKLOAD_NOT_FOUND,
        reference,
        recorded,
        is_listed=reference is not None and reference.uid in snapshot.listed_uids,
        longer_grace=longer_grace(snapshot, held) if held.reservation.metadata.deleting else None,
    )


def _release_in_any_state(
    claim: ResourceClaim, present: RetentionDecision
) -> RetentionDecision | None:
    """The release of a claim that is deleted, or whose reservation is, or for which a user asks;
    None if nothing of that is so.

    Garbage collection deletes the reservation of a workload that is gone. The objects that the
    workload made may be left, and then the claim stays held.
    """
    held, meta = present.held, present.held.reservation.metadata
    if claim.metadata.deleting:
        return replace(present, blocker=present.longer_grace).release(Reason.CLAIM_DELETED)
    if meta.deleting and (held.withdrawn_by_user or not held.workload.children):
        return replace(present, blocker=present.longer_grace).release(Reason.WITHDRAWN)
    if meta.annotation(RELEASE_ANNOTATION) == claim.metadata.uid:
        return present.release(Reason.RELEASE_REQUESTED)
    return None


def _end(snapshot: Snapshot, held: Held) -> Reason | None:
    """Why no pod will use the claim again: the workload has ended, or it wants no pod for this
    sticky claim any more, and none uses it; None if a pod may."""
    if held.workload.ended:
        return Reason.WORKLOAD_ENDED
    unused = held.workload.claim_over and not snapshot.consumers.alive
    return Reason.ORDINAL_ENDED if unused else None


def _refusal(
    snapshot: Snapshot, claim: ResourceClaim, held: Held, reference: Reference
) -> Reason | None:
    """Why the reservation may not begin to hold the claim; None if it may."""
    workload = held.workload
    if workload.is_over:
        return Reason.WORKLOAD_ENDED
    if not workload.names_claim:
        by_pods = Reason.CLAIM_NOT_NAMED_BY_POD
        return by_pods if workload.by_pods else Reason.CLAIM_NOT_NAMED_BY_POD_TEMPLATE
    if held.reservation.spec.sticky is not None and not held.has_made(claim):
        return Reason.STICKY_NAME_TAKEN
    refusal = snapshot.dialect.refuses(claim, reference)
    # a claim that was created for another incarnation is released (``_by_workload``)
    return None if refusal is Reason.WORKLOAD_RECREATED else refusal


def _with_request(snapshot: Snapshot, decision: RetentionDecision) -> RetentionDecision:
    """The same, but a hold says what becomes of a user's request to give the devices up: it waits,
    or is ignored."""
    asked = snapshot.allocated and decision.held.name in snapshot.asked_to_reallocate
    if not asked or decision.action is not Action.HOLD or decision.blocker is None:
        return decision
    text = f"{REALLOCATE_ANNOTATION} asks to give the devices up when no pod uses them"
    if not decision.held.may_reallocate:
        text = f"{REALLOCATE_ANNOTATION} is ignored, since {NEVER_REALLOCATED}"
    message = f"{decision.blocker.message}; {text}"
    return replace(decision, blocker=replace(decision.blocker, message=message))


def _by_workload(
    snapshot: Snapshot, claim: ResourceClaim, present: RetentionDecision, reference: Reference
) -> RetentionDecision:
    """What the workload, its pods and the policy ask for: the first case that applies.

    A workload ``is_over`` if it makes nothing more itself, and has ``ended`` if besides nothing
    that it has made can make pods.
    """
    held, workload = present.held, present.held.workload
    policy = _policy(held)
    # 1. Nothing can be said about the workload: the claim is held.
    if workload.phase is WorkloadPhase.UNKNOWN:
        return present.hold(Reason.WORKLOAD_STATE_UNKNOWN, workload.problem)
    # 2. No pod will use the claim again.
    ended = _end(snapshot, held)
    if ended is not None and policy is not RetentionPolicy.MANUAL:
        return present.release(ended)
    # 3. The claim was created for another incarnation: spec.reservedFor is immutable (KEP-5194).
    created_for = claim.spec.reserved_for
    if not workload.ended and created_for is not None and created_for.uid != reference.uid:
        return present.release(Reason.WORKLOAD_RECREATED)
    # 4. Pods wait for devices that they cannot reach, and the claim is given up for them now.
    by_pods = _by_waiting_pods(snapshot, present)
    if by_pods is not None and by_pods.action is Action.RELEASE:
        return by_pods
    # 5. The state of the workload ends the hold, or no pod waits so.
    by_state = _by_state(snapshot, present, policy)
    if by_pods is None or by_state.action is Action.RELEASE:
        return by_state
    # 6. Both hold the claim: the one whose time is over first tells why.
    choices = (by_pods, by_state)
    return min(choices, key=lambda choice: (choice.blocker and choice.blocker.after) or inf)


def _policy(held: Held) -> RetentionPolicy:
    """The retention policy; one that this version does not know counts as Manual."""
    given = held.reservation.spec.retention_policy
    return RetentionPolicy(given) if given in set(RetentionPolicy) else RetentionPolicy.MANUAL


def _by_state(
    snapshot: Snapshot, present: RetentionDecision, policy: RetentionPolicy
) -> RetentionDecision:
    """What the state of the workload and the policy ask for: the first case that applies."""
    workload, spec = present.held.workload, present.held.reservation.spec
    # 1. The workload is over, and only a user ends the hold.
    if workload.is_over and policy is RetentionPolicy.MANUAL:
        command = f"claimctl release {snapshot.name} -n {snapshot.namespace}"
        text = f"retentionPolicy {spec.retention_policy}: `{command}` frees it"
        return present.hold(Reason.RETENTION, text)
    # 2. It is idle.
    if workload.wants_nothing:
        return _by_idle_time(snapshot, present, policy)
    # 3. It is over, and what it has made is left.
    if workload.is_over:
        return _by_children(snapshot, present)
    # 4. It is a Deployment that is gone, and its ReplicaSets are left.
    if workload.orphaned_replica_sets:
        text = f"ReplicaSet {workload.orphaned_replica_sets[0]} still creates pods"
        return present.hold(Reason.WORKLOAD_WANTS_PODS, text)
    # 5. It wants pods.
    wants = workload.wants
    pods = {0: "pods", 1: "1 pod"}.get(wants, f"{wants} pods")
    text = f"{spec.workload_ref.kind} {spec.workload_ref.name} wants {pods}"
    return present.hold(Reason.WORKLOAD_WANTS_PODS, text)


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
