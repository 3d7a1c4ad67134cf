"""From a snapshot of one claim to at most one write.

The order of the writes is the protocol: a reservation's finalizer before anything is held for
it, the intent of a release before the claim is touched, the claim before what only tells news.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from claimctl.reservation import claim_lifecycle as absent
from claimctl.reservation.context import ClaimContext
from claimctl.reservation.decision import (
    Blocker,
    ClearReleaseRequest,
    ConfirmWorkload,
    Decision,
    Need,
    SetFinalizer,
)
from claimctl.reservation.pod_groups.version_skew import look_again
from claimctl.reservation.reasons import Reason, ReleaseStep
from claimctl.reservation.release import finalizers as parting
from claimctl.reservation.release.blockers import blockers
from claimctl.reservation.release.protocol import fenced, finalizer_step, next_step
from claimctl.reservation.reserved_for.holds import (
    add_tombstones_first,
    holds_while_held,
    holds_while_waiting,
    plan_list,
    write_list,
    yields,
)
from claimctl.reservation.reserved_for.references import (
    WORKLOAD_RESOURCES,
    is_pod,
    same_name,
    workload_reference,
)
from claimctl.reservation.retention import Action
from claimctl.reservation.snapshot import Held, Snapshot
from claimctl.reservation.status.outlook import Outlook
from claimctl.reservation.status.writes import leave_alone, sooner, tell
from claimctl.reservation.unreadable import about_claim
from claimctl.reservation.workloads import Life
from claimctl.wire.reservations import FINALIZER

CACHE_CATCHES_UP = 0.5
"""Seconds to wait when a live LIST shows what the caches do not show yet."""
_PASSES = frozenset(
    {
        Reason.HISTORY_UNKNOWN,
        Reason.FORCE_DELETED_PODS,
        Reason.PODS_MAY_BE_BOUND,
        Reason.UNREADABLE,
    }
)
"""What stands against a release for a time that each controller measures by itself, or for this
version of claimctl alone."""


def decide(snapshot: Snapshot) -> Decision:
    """What to do about one claim now; the same snapshot always gives the same decision."""
    if unread := about_claim(snapshot.unreadable):
        return leave_alone(snapshot, unread)
    for held in snapshot.reservations:
        meta = held.reservation.metadata
        if not meta.deleting and FINALIZER not in meta.finalizers:
            return Decision(write=SetFinalizer(held.reservation, present=True))
        if held.released_since_asked:
            return Decision(write=ClearReleaseRequest(held.reservation))
    if needs := tuple(_unseen(snapshot)):
        return Decision(needs=needs)
    if snapshot.claim is None:
        return absent.without_claim(snapshot)
    return _decide(ClaimContext.of(snapshot, snapshot.claim))


def _unseen(snapshot: Snapshot) -> Iterable[Need]:
    for held in snapshot.reservations:
        ref = held.reservation.spec.workload_ref
        if (ref.api_group, ref.kind) not in WORKLOAD_RESOURCES:
            continue
        if held.workload.life is Life.UNSEEN or _may_be_outdated(snapshot, held):
            yield ConfirmWorkload(workload_reference(ref, ""))


def _may_be_outdated(snapshot: Snapshot, held: Held) -> bool:
    """Whether the claim knows another incarnation of the workload than its cache shows.

    That may be an earlier one, or one that the cache has yet to show.
    """
    if snapshot.claim is None or not held.workload.exists or held.workload.confirmed:
        return False
    seen = workload_reference(held.reservation.spec.workload_ref, held.workload.uid)
    created_for = snapshot.claim.spec.reserved_for
    known = (*snapshot.references, *((created_for,) if created_for else ()))
    return any(same_name(each, seen) and each.uid != seen.uid for each in known)


def _decide(context: ClaimContext) -> Decision:
    if not context.snapshot.allocated:
        return _unallocated(context)
    reason = context.release_reason
    if reason is None:
        return _hold(context)
    if (decision := _left_to_kcm(context)) is not None:
        return _finish(context, Outlook(context.consumers), decision)
    found = blockers(context.snapshot, reason, context.consumers, context.own)
    return _wait(context, reason, found) if found else _release(context, reason)


def _hold(context: ClaimContext) -> Decision:
    plan = plan_list(context, holds_while_held(context))
    outlook = Outlook(context.consumers, plan, yielded=yields(context), fighting=context.fights)
    decision = Decision() if _group_unrecorded(context) else write_list(context, plan)
    for retention in context.retentions:
        after = retention.blocker.after if retention.blocker else None
        decision = replace(decision, after=sooner(decision.after, after))
    again = look_again(context.snapshot, context.consumers)
    decision = replace(decision, after=sooner(decision.after, again))
    return _finish(context, outlook, decision)


def _group_unrecorded(context: ClaimContext) -> bool:
    """Whether it has to be put on record first whose the group is that shares the claim.

    Once the workload is gone nobody else could tell.
    """
    return any(
        retention.action is Action.HOLD
        and retention.reference is not None
        and not context.listed(retention.reference)
        and retention.held.workload.pod_group != retention.held.reservation.status.pod_group_name
        for retention in context.retentions
        if retention.held.workload.pod_group
    )


def _left_to_kcm(context: ClaimContext) -> Decision | None:
    """Leave KCM alone with a list of nothing but pods: its last removal deallocates.

    None where it is not KCM's, or where KCM should have been done by now. Of pods that live the
    watch will tell; but a claim that is being deleted takes none of those that wait for it, and
    KCM leaves their entries.
    """
    references = context.snapshot.references
    if not references or not all(map(is_pod, references)):
        return None
    if context.live_pod_entries():
        in_vain = context.claim.metadata.deleting and not context.left_to_pods
        return None if in_vain else Decision()
    limit = context.snapshot.rules.dead_reference_seconds
    ages = context.snapshot.memory.dead_age
    left = limit - min(ages.get(reference.uid, 0.0) for reference in references)
    return Decision(after=max(left, 1.0)) if left > 0 else None


def _wait(context: ClaimContext, reason: Reason, found: tuple[Blocker, ...]) -> Decision:
    """The record of an intent stays where only time stands against it: another controller, for
    which that time is over, may be deallocating now, and the finalizer goes by the record."""
    plan = plan_list(context, holds_while_waiting(context))
    step = None
    if context.on_record and all(blocker.reason in _PASSES for blocker in found):
        step = _current_step(context)
    outlook = Outlook(context.consumers, plan, reason, step, found, fighting=context.fights)
    decision = write_list(context, plan)
    for blocker in (*found, *(retention.blocker for retention in context.retentions)):
        after = blocker.after if blocker else None
        decision = replace(decision, after=sooner(decision.after, after))
    return _finish(context, outlook, decision)


def _release(context: ClaimContext, reason: Reason) -> Decision:
    """Nothing seen in the caches stands against it: put it on record, then step by step."""
    if (decision := add_tombstones_first(context)) is not None:
        return _finish(context, Outlook(context.consumers, None, reason), decision)
    name = _current_step(context)
    if not context.on_record:
        return _finish(context, Outlook(context.consumers, None, reason, name), Decision())
    step = next_step(context.snapshot, reason, context.own)
    outlook = Outlook(context.consumers, None, reason, name, step.blockers)
    after = step.after
    if step.blockers and after is None:
        after = step.blockers[0].after or CACHE_CATCHES_UP
    return _finish(context, outlook, Decision(needs=step.needs, write=step.write, after=after))


def _current_step(context: ClaimContext) -> ReleaseStep:
    """How far the release has come, whoever brought it there."""
    is_fenced = fenced(context.snapshot, context.own) and not any(
        map(is_pod, context.snapshot.references)
    )
    return ReleaseStep.FENCED if is_fenced else ReleaseStep.INTENT


def _unallocated(context: ClaimContext) -> Decision:
    # another controller may have cleared the record of what this one was about to finish
    step = finalizer_step(
        context.snapshot, context.on_record or context.snapshot.memory.deallocated
    )
    if step.write is not None:
        return Decision(write=step.write)
    outlooks = [
        absent.ended_release(retention, Outlook(context.consumers))
        for retention in context.retentions
    ]
    decision = tell(context.snapshot, context.retentions, outlooks, Decision())
    if decision.write is None:
        decision = replace(decision, write=absent.tidy(context))
    return parting.let_reservations_go(context, decision)


def _finish(context: ClaimContext, outlook: Outlook, decision: Decision) -> Decision:
    outlooks = [
        outlook
        if retention.action is Action.RELEASE
        else replace(outlook, release=None, step=None, blockers=())
        for retention in context.retentions
    ]
    told = tell(context.snapshot, context.retentions, outlooks, decision)
    told = replace(told, releasing=outlook.release, blockers=outlook.blockers)
    return parting.let_reservations_go(context, told)
