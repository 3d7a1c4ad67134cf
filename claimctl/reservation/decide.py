"""Decide what to do about one claim: from a snapshot to at most one write, in numbered steps.

The order of the writes matters. A reservation gets its finalizer before claimctl holds anything
for it. The intent of a release is recorded before the claim is changed. The claim is written
before statuses that only report.
"""

from __future__ import annotations

from math import inf

from claimctl.reservation.assessment.assess import Assessment, Phase, assess
from claimctl.reservation.assessment.outdated import outdated_workloads
from claimctl.reservation.assessment.retention import Action, has_begun
from claimctl.reservation.facts.decision import (
    ChangeReservation,
    ClearReleaseRequest,
    ConfirmPods,
    CreateReservation,
    Decision,
    ListLivePods,
    ReadClaim,
    RemoveClaimFinalizer,
    SetFinalizer,
    Step,
    Write,
    WriteList,
)
from claimctl.reservation.facts.reasons import Reason, ReleaseStep
from claimctl.reservation.facts.references import is_pod, is_tombstone
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.release import objects
from claimctl.reservation.release.protocol import (
    finalizer_step,
    is_fenced,
    leave_to_others,
    next_step,
)
from claimctl.reservation.reserved_for.listing_ahead import scheduler_busy_left
from claimctl.reservation.status.desired import decide_statuses, leave_alone
from claimctl.reservation.status.sharing import look_again
from claimctl.reservation.users.blockers import closed_age, longest_binding_left
from claimctl.reservation.users.withdrawal import remove_hold_beside_group
from claimctl.wire.claims import Reference
from claimctl.wire.reservations import FINALIZER, REALLOCATE_ANNOTATION, ClaimReservation

CACHE_CATCHES_UP = 0.5
"""Seconds to wait when a live LIST shows what the caches do not show yet."""
FIGHT_REST = 300.0
"""Seconds to wait before claimctl writes a list again that another client keeps undoing."""
_CLAIM_WRITES = (WriteList, RemoveClaimFinalizer)
_PASSES = frozenset(
    {Reason.HISTORY_UNKNOWN, Reason.FORCE_DELETED_PODS, Reason.PODS_MAY_BE_BOUND, Reason.UNREADABLE}
)
"""Blockers that another controller may not see: each controller measures their time by itself, or
only this version of claimctl cannot read an object."""


def decide(snapshot: Snapshot) -> Decision:
    """Decide what to do about one claim now. Equal snapshots give equal decisions."""
    # 1. Leave the claim alone when something about it cannot be read.
    if snapshot.unreadable_parts:
        return leave_alone(snapshot)
    # 2. Put the reservations in order, before anything is held for them.
    for held in snapshot.reservations:
        meta = held.reservation.metadata
        if not meta.deleting and FINALIZER not in meta.finalizers:
            return Decision(write=SetFinalizer(held.reservation, present=True))
        wanted = held.wanted
        if wanted is not None and not meta.deleting and differs(held.reservation, wanted):
            return Decision(write=ChangeReservation(held.reservation, wanted))
        if held.requests_met:
            return Decision(write=ClearReleaseRequest(held.reservation, held.requests_met[0]))
    if snapshot.to_create is not None and snapshot.rules.makes_reservations:
        return Decision(write=CreateReservation(snapshot.to_create))
    if (gone := objects.goes_with_reservation(snapshot)) is not None:
        return Decision(write=gone)
    # 3. Ask for live reads of workloads for which the caches may be outdated.
    if needs := tuple(outdated_workloads(snapshot)):
        return Decision(needs=needs)
    # 4. Assess: who holds the claim, why it is released, which list it should have, what blocks.
    facts = assess(snapshot)
    decision = Decision(releasing=facts.releasing)
    decision.blockers = facts.blockers if facts.releasing is not None else ()
    if snapshot.loss is not None:
        decision.waits.append(snapshot.loss.after or None)
    # 5. Do what the claim's phase asks for: at most one write, or a question that comes before it.
    match facts.phase:
        case Phase.ABSENT:
            objects.handle_absent(facts, decision)
        case Phase.UNALLOCATED:
            # the recorded release shows that claimctl deallocated. If another controller has
            # cleared the record since, this process's memory shows it
            step = finalizer_step(snapshot, on_record=facts.on_record)
            decision.needs, decision.write = step.needs, step.write
            decision.waits += (blocker.after for blocker in step.blockers)
        case Phase.KEPT:
            if snapshot.dialect.groups:
                decision.waits.append(look_again(snapshot))
            # a status has to record the name of the workload's PodGroup before the hold is added.
            # After the workload is gone, only this record shows which workload the group belongs to
            if all(
                retention.is_listed
                or retention.reference is None
                or retention.action is not Action.HOLD
                or retention.held.workload.pod_group
                in ("", retention.held.reservation.status.pod_group_name)
                for retention in facts.retentions
            ):
                write_list(facts, decision)
            decision.waits += (r.blocker.after for r in facts.retentions if r.blocker)
            decision.waits.append(snapshot.memory.suspicion_left)
        case Phase.LEFT_TO_KCM if not facts.live_pod_entries:
            # KCM should be done by then. If listed pods are alive, their events come
            decision.waits.append(max(facts.kcm_time_left, 1.0))
        case Phase.LEFT_TO_GROUP:
            write_list(facts, decision)
        case Phase.BLOCKED:
            _keep_while_blocked(facts, decision)
        case Phase.RELEASING if _lacks_tombstones(facts):
            write_list(facts, decision)
        case Phase.RELEASING:
            # the intent is recorded first, by a status
            decision.step = _current_step(facts)
            if facts.on_record and facts.reason is not None:
                step = next_step(snapshot, facts.reason, facts.own)
                decision.needs, decision.write = step.needs, step.write
                decision.blockers = step.blockers
                for blocker in step.blockers[:1]:
                    decision.waits.append(blocker.after or CACHE_CATCHES_UP)
    if not decision.needs and (ended := _ended_request(facts, decision)) is not None:
        decision.write = ended
    if (left := snapshot.memory.unchangeable_left) and isinstance(decision.write, _CLAIM_WRITES):
        decision.write = None
        decision.waits.append(left)
    if decision.decided and not snapshot.allocated:
        return decision
    # 6. Compute the reservations' statuses; write one if there is no other write.
    decide_statuses(facts, decision)
    # 7. Tidy up: a claim without allocation, then deleted reservations that hold nothing.
    if facts.phase is Phase.UNALLOCATED and not decision.decided:
        objects.tidy(facts, decision)
    if not decision.decided and any(h.reservation.metadata.deleting for h in snapshot.reservations):
        objects.remove_reservation_finalizers(facts, decision)
    return decision


def differs(reservation: ClaimReservation, wanted: ClaimReservation) -> bool:
    """Whether the settings or the owner of a sticky claim's reservation have to change."""
    owners = reservation.metadata.owner_references, wanted.metadata.owner_references
    return reservation.spec != wanted.spec or owners[0] != owners[1]


def reads_before(snapshot: Snapshot, write: Write | None) -> tuple[ReadClaim, ...]:
    """The live reads that the write needs first; none if they have been done.

    Before the finalizer of a reservation is removed, the claim is read. Another controller may have
    added a hold that our cache does not show, and no controller would release a hold without a
    reservation.
    """
    if not isinstance(write, SetFinalizer) or write.present:
        return ()
    return (ReadClaim(write),) if snapshot.evidence.claim_read_for is None else ()


def serves(asked: Write, write: Write | None) -> bool:
    """Whether a claim that was read live for the write ``asked`` may also be used for ``write``.

    The list of a list write may have to be different now. Any other write must be the same; else
    the controller waits until the watch shows the claim.
    """
    return isinstance(write, WriteList) if isinstance(asked, WriteList) else write == asked


def write_list(facts: Assessment, decision: Decision) -> None:
    """Write the desired list if it differs. Only a late hold leaves an empty list behind when it
    goes: no component deallocates such a claim, so its reservation has to answer for it."""
    plan, snapshot, claim = facts.plan, facts.snapshot, facts.snapshot.claim
    assert plan is not None
    assert claim is not None
    version, present = claim.metadata.resource_version, snapshot.references
    decision.waits.append(plan.look_again)
    if plan.confirm:
        decision.needs = (ConfirmPods(plan.confirm),)
    elif snapshot.fights:
        # also if the list is in order now: nothing else tells that the fight is over
        decision.waits.append(FIGHT_REST)
    elif (plan.reserved_for or plan.may_be_empty) and plan.reserved_for != present:
        if (left := _pause_before(snapshot, plan.reserved_for)) > 0:
            decision.waits.append(left)
            return
        given_up = _given_up(snapshot, plan.reserved_for)
        if given_up or _leaves_pods_alone(snapshot, plan.reserved_for):
            live = snapshot.any_live
            if live is None:
                decision.needs = (ListLivePods(version, vanished=False),)
                return
            if not snapshot.table_of(live.pods).bound.keys() <= snapshot.listed_uids - given_up:
                return
        if snapshot.evidence.last_attempt or not adds_only_tombstones(present, plan.reserved_for):
            present = ()
        decision.write = WriteList(version, plan.reserved_for, present=present)


def _pause_before(snapshot: Snapshot, after: tuple[Reference, ...]) -> float:
    """Seconds for which the list stays as it is: a late hold leaves when no pod may be bound beside
    it any more, and any other list is left to a scheduler that is writing pods into it."""
    if snapshot.late is not None:
        leaves = not set(snapshot.non_pods) <= set(after)
        return longest_binding_left(snapshot) if leaves else 0.0
    return scheduler_busy_left(snapshot) if snapshot.consumers.pending else 0.0


def adds_only_tombstones(before: tuple[Reference, ...], after: tuple[Reference, ...]) -> bool:
    """Whether the lists differ by nothing but new tombstones.

    Such a write holds as long as the list is the same, whatever version the claim has by then: a
    finished pod stays finished, and the API server adds no entry to a claim that is deleted or not
    allocated. It matters beside kube-controller-manager, which removes and adds the entry of a
    finished pod up to a hundred times a second: the version is nearly always a new one, and the
    list is one of two.
    """
    old = {entry.uid: entry for entry in before}
    changed = [entry for entry in after if old.get(entry.uid) != entry]
    kept = old.keys() <= {entry.uid for entry in after}
    return bool(before) and kept and bool(changed) and all(map(is_tombstone, changed))


def _given_up(snapshot: Snapshot, left: tuple[Reference, ...]) -> frozenset[str]:
    """The pods listed ahead that lose their entries and may be bound meanwhile, by their UIDs: the
    cache may be late, and a pod that runs keeps its entry."""
    if not snapshot.lists_each_pod:
        return frozenset()
    return snapshot.consumers.ahead - {entry.uid for entry in left}


def _leaves_pods_alone(snapshot: Snapshot, left: tuple[Reference, ...]) -> bool:
    """Whether the hold leaves a list of pods while others may be bound that are not listed any
    more: until KCM lists such a pod again, it would deallocate with the last listed one."""
    if not snapshot.lists_each_pod or not snapshot.non_pods or not all(map(is_pod, left)):
        return False
    alive = snapshot.consumers.alive.items()
    unlisted = (pod for uid, pod in alive if uid not in snapshot.listed_uids)
    return any(closed_age(snapshot, pod) < inf for pod in unlisted)


def _lacks_tombstones(facts: Assessment) -> bool:
    """Whether tombstones have to be written before the hold is released.

    KCM removes and adds a finished pod without a tombstone, unless the pod's group is gone, faster
    than claimctl can list the pods: each write of the release would conflict.
    """
    snapshot, pods = facts.snapshot, facts.snapshot.consumers
    if facts.plan is None or snapshot.fights or not pods.finished:
        return False
    planned = {entry.uid for entry in facts.plan.reserved_for if is_tombstone(entry)}
    planned -= {entry.uid for entry in snapshot.non_pods if is_tombstone(entry)}
    grouped = pods.groups if snapshot.dialect.groups else {}
    return any(
        uid in planned and (uid in snapshot.listed_uids or uid not in grouped)
        for uid in pods.tombstones
    )


def _keep_while_blocked(facts: Assessment, decision: Decision) -> None:
    """Keep the list in order while something blocks the release, and the recorded intent while only
    time does. For another controller that time may be over: it may be deallocating now, and needs
    the record to remove the finalizer."""
    snapshot, reasons = facts.snapshot, {blocker.reason for blocker in facts.blockers}
    if facts.on_record and reasons <= _PASSES:
        decision.step = _current_step(facts)
    step = Step()
    if facts.reason is not None and reasons == {Reason.UNKNOWN_REFERENCES}:
        step = leave_to_others(snapshot, facts.reason, facts.own)
    if not step.acts:
        step = remove_hold_beside_group(snapshot, facts.own) if facts.left_to_group else Step()
        if snapshot.fights and step.write is not None:
            step = Step(blockers=step.blockers)
    if step.acts:
        decision.needs, decision.write = step.needs, step.write
        return
    write_list(facts, decision)
    retained = [retention.blocker for retention in facts.retentions if retention.blocker]
    blockers = (*facts.blockers, *step.blockers, *retained)
    decision.waits += (blocker.after for blocker in blockers)


def _current_step(facts: Assessment) -> ReleaseStep:
    """The step of the release that the claim's list shows."""
    snapshot = facts.snapshot
    only_others = snapshot.non_pods == snapshot.references
    return (
        ReleaseStep.FENCED if only_others and is_fenced(snapshot, facts.own) else ReleaseStep.INTENT
    )


def _ended_request(facts: Assessment, decision: Decision) -> ClearReleaseRequest | None:
    """The end of a request to give the devices up: that was done, or a pod came meanwhile.

    It ends before the recorded release does: a controller that starts between the two must not give
    up the next allocation, too.
    """
    snapshot = facts.snapshot
    for retention in facts.retentions:
        held, releases = retention.held, retention.action is Action.RELEASE
        stops = decision.step is None or not releases
        failed = stops and has_begun(snapshot, held, Reason.REALLOCATED)
        if (failed or not snapshot.allocated) and held.name in snapshot.asked_to_reallocate:
            return ClearReleaseRequest(held.reservation, REALLOCATE_ANNOTATION)
    return None
