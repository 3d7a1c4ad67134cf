"""From a snapshot of one claim to at most one write.

The order of the writes is the protocol: a reservation's finalizer before anything is held for
it, the intent of a release before the claim is touched, the claim before what only tells news.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from claimctl.reservation import claim_lifecycle as absent
from claimctl.reservation.context import Case
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
    bury_first,
    holding_wishes,
    plan_list,
    waiting_wishes,
    write_list,
    yields,
)
from claimctl.reservation.reserved_for.references import (
    WORKLOAD_RESOURCES,
    is_pod,
    same_name,
    workload_reference,
)
from claimctl.reservation.retention import Stand
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
    return _decide(Case.of(snapshot, snapshot.claim))


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
    made_for = snapshot.claim.spec.reserved_for
    known = (*snapshot.references, *((made_for,) if made_for else ()))
    return any(same_name(each, seen) and each.uid != seen.uid for each in known)


def _decide(case: Case) -> Decision:
    if not case.snapshot.allocated:
        return _unallocated(case)
    reason = case.release_reason
    if reason is None:
        return _hold(case)
    if (decision := _left_to_kcm(case)) is not None:
        return _finish(case, Outlook(case.consumers), decision)
    found = blockers(case.snapshot, reason, case.consumers, case.own)
    return _wait(case, reason, found) if found else _release(case, reason)


def _hold(case: Case) -> Decision:
    plan = plan_list(case, holding_wishes(case))
    outlook = Outlook(case.consumers, plan, yielded=yields(case), fighting=case.fights)
    decision = Decision() if _group_unrecorded(case) else write_list(case, plan)
    for stand in case.stands:
        after = stand.blocker.after if stand.blocker else None
        decision = replace(decision, after=sooner(decision.after, after))
    again = look_again(case.snapshot, case.consumers)
    decision = replace(decision, after=sooner(decision.after, again))
    return _finish(case, outlook, decision)


def _group_unrecorded(case: Case) -> bool:
    """Whether it has to be put on record first whose the group is that shares the claim.

    Once the workload is gone nobody else could tell.
    """
    return any(
        stand.stand is Stand.HOLD
        and stand.reference is not None
        and not case.listed(stand.reference)
        and stand.held.workload.pod_group != stand.held.reservation.status.pod_group_name
        for stand in case.stands
        if stand.held.workload.pod_group
    )


def _left_to_kcm(case: Case) -> Decision | None:
    """Leave KCM alone with a list of nothing but pods: its last removal deallocates.

    None where it is not KCM's, or where KCM should have been done by now. Of pods that live the
    watch will tell; but a claim that is being deleted takes none of those that wait for it, and
    KCM leaves their entries.
    """
    references = case.snapshot.references
    if not references or not all(map(is_pod, references)):
        return None
    if case.live_pod_entries():
        in_vain = case.claim.metadata.deleting and not case.left_to_pods
        return None if in_vain else Decision()
    limit = case.snapshot.rules.dead_reference_seconds
    ages = case.snapshot.memory.dead_age
    left = limit - min(ages.get(reference.uid, 0.0) for reference in references)
    return Decision(after=max(left, 1.0)) if left > 0 else None


def _wait(case: Case, reason: Reason, found: tuple[Blocker, ...]) -> Decision:
    """The record of an intent stays where only time stands against it: another controller, for
    which that time is over, may be deallocating now, and the finalizer goes by the record."""
    plan = plan_list(case, waiting_wishes(case))
    step = None
    if case.on_record and all(blocker.reason in _PASSES for blocker in found):
        step = _come_to(case)
    outlook = Outlook(case.consumers, plan, reason, step, found, fighting=case.fights)
    decision = write_list(case, plan)
    for blocker in (*found, *(stand.blocker for stand in case.stands)):
        after = blocker.after if blocker else None
        decision = replace(decision, after=sooner(decision.after, after))
    return _finish(case, outlook, decision)


def _release(case: Case, reason: Reason) -> Decision:
    """Nothing seen in the caches stands against it: put it on record, then step by step."""
    if (decision := bury_first(case)) is not None:
        return _finish(case, Outlook(case.consumers, None, reason), decision)
    name = _come_to(case)
    if not case.on_record:
        return _finish(case, Outlook(case.consumers, None, reason, name), Decision())
    step = next_step(case.snapshot, reason, case.own)
    outlook = Outlook(case.consumers, None, reason, name, step.blockers)
    after = step.after
    if step.blockers and after is None:
        after = step.blockers[0].after or CACHE_CATCHES_UP
    return _finish(case, outlook, Decision(needs=step.needs, write=step.write, after=after))


def _come_to(case: Case) -> ReleaseStep:
    """How far the release has come, whoever brought it there."""
    is_fenced = fenced(case.snapshot, case.own) and not any(map(is_pod, case.snapshot.references))
    return ReleaseStep.FENCED if is_fenced else ReleaseStep.INTENT


def _unallocated(case: Case) -> Decision:
    # another controller may have cleared the record of what this one was about to finish
    step = finalizer_step(case.snapshot, case.on_record or case.snapshot.memory.deallocated)
    if step.write is not None:
        return Decision(write=step.write)
    outlooks = [absent.ended_release(stand, Outlook(case.consumers)) for stand in case.stands]
    decision = tell(case.snapshot, case.stands, outlooks, Decision())
    if decision.write is None:
        decision = replace(decision, write=absent.tidy(case))
    return parting.let_reservations_go(case, decision)


def _finish(case: Case, outlook: Outlook, decision: Decision) -> Decision:
    outlooks = [
        outlook
        if stand.stand is Stand.LET_GO
        else replace(outlook, release=None, step=None, blockers=())
        for stand in case.stands
    ]
    told = tell(case.snapshot, case.stands, outlooks, decision)
    told = replace(told, releasing=outlook.release, blockers=outlook.blockers)
    return parting.let_reservations_go(case, told)
