"""Decide what to do about one claim: from a snapshot to at most one write, in numbered steps.

The order of the writes matters. A reservation gets its finalizer before claimctl holds anything
for it. The intent of a release is recorded before the claim is changed. The claim is written
before statuses that only report.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from claimctl.reservation.assessment.assess import assess, kcm_time_left
from claimctl.reservation.assessment.assessment import Assessment, Phase
from claimctl.reservation.assessment.holds import lacks_tombstones, write_list
from claimctl.reservation.assessment.retention import Action, begun
from claimctl.reservation.facts.decision import (
    ClearReleaseRequest,
    ConfirmWorkload,
    Decision,
    ListReservations,
    Need,
    Precaution,
    ReadClaim,
    SetFinalizer,
    Write,
    WriteList,
)
from claimctl.reservation.facts.reasons import Reason, ReleaseStep
from claimctl.reservation.facts.references import (
    WORKLOAD_RESOURCES,
    same_name,
    unanswered,
    workload_reference,
)
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.reservation.facts.unreadable import about_claim
from claimctl.reservation.facts.workloads import WorkloadPhase
from claimctl.reservation.release import claim_lifecycle as lifecycle
from claimctl.reservation.release import finalizers
from claimctl.reservation.release.handing_over import leave_to_group
from claimctl.reservation.release.protocol import (
    fenced,
    finalizer_step,
    leave_to_others,
    next_step,
)
from claimctl.reservation.status.desired import leave_alone, with_statuses
from claimctl.reservation.status.version_skew import look_again
from claimctl.reservation.users.waiting import asks_to_reallocate
from claimctl.wire.reservations import FINALIZER, REALLOCATE_ANNOTATION

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
"""Blockers that another controller may not see: each controller measures their time by itself, or
only this version of claimctl cannot read an object."""


def decide(snapshot: Snapshot) -> Decision:
    """Decide what to do about one claim now. Equal snapshots give equal decisions."""
    # 1. Leave the claim alone when something about it cannot be read.
    if unread := about_claim(snapshot.unreadable):
        return leave_alone(snapshot, unread)
    # 2. Put the reservations in order, before anything is held for them.
    if (write := _reservation_first(snapshot)) is not None:
        return Decision(write=write)
    # 3. Ask for live reads of workloads for which the caches may be outdated.
    if needs := tuple(_unseen(snapshot)):
        return Decision(needs=needs)
    # 4. Assess: who holds the claim, why it is released, which list it should have, what blocks.
    found = assess(snapshot)
    # 5. Do what the claim's phase asks for: at most one write, or a question that comes before it.
    found = _PHASES[found.phase](found)
    if not found.needs and (ended := _ended_request(found)) is not None:
        found = replace(found, write=ended)
    if found.decided and not snapshot.allocated:
        return found.decision()
    # 6. Compute the reservations' statuses; write one if there is no other write.
    found = with_statuses(found)
    # 7. Tidy up: a claim without allocation, then deleted reservations that hold nothing.
    if found.phase is Phase.UNALLOCATED and not found.decided:
        found = replace(found, write=lifecycle.tidy(found))
    return finalizers.remove_reservation_finalizers(found).decision()


def reads_before(snapshot: Snapshot, write: Write | None) -> tuple[Precaution, ...]:
    """The live reads that the write needs first; none if they have been done.

    - Before the finalizer of a reservation is removed, the claim is read. Another controller may
      have added a hold that our cache does not show, and no controller would release a hold
      without a reservation.
    - Before a write of the list, the reservations are listed if the list has a hold that belongs to
      no reservation in our cache: our cache may not show the reservation yet.
    """
    evidence = snapshot.evidence
    if isinstance(write, SetFinalizer) and not write.present:
        return (ReadClaim(write),) if evidence.claim_read_for is None else ()
    if isinstance(write, WriteList):
        known = [held.reservation for held in snapshot.reservations]
        in_doubt = snapshot.claim is not None and unanswered(snapshot.claim, known)
        return (ListReservations(),) if in_doubt and evidence.held_for_another is None else ()
    return ()


def serves(asked: Write, write: Write | None) -> bool:
    """Whether a claim that was read live for the write ``asked`` may also be used for ``write``.

    This is so if both are list writes, since the list may have to be different now. Any other
    write must be the same; else the controller waits until the watch shows the claim.
    """
    return isinstance(write, WriteList) if isinstance(asked, WriteList) else write == asked


def _reservation_first(snapshot: Snapshot) -> Write | None:
    for held in snapshot.reservations:
        meta = held.reservation.metadata
        if not meta.deleting and FINALIZER not in meta.finalizers:
            return SetFinalizer(held.reservation, present=True)
        if held.requests_met:
            return ClearReleaseRequest(held.reservation, held.requests_met[0])
    return None


def _ended_request(found: Assessment) -> ClearReleaseRequest | None:
    """The end of a request to give the devices up: that was done, or a pod came meanwhile.

    It ends before the recorded release does. Otherwise a controller that starts between the two
    could take it for a request to give up the next allocation, too.
    """
    snapshot = found.snapshot
    for retention in found.retentions:
        held, stops = retention.held, found.step is None or retention.action is not Action.RELEASE
        failed = stops and begun(snapshot, held, Reason.REALLOCATED)
        if (failed or not snapshot.allocated) and asks_to_reallocate(snapshot.claim, held):
            return ClearReleaseRequest(held.reservation, REALLOCATE_ANNOTATION)
    return None


def _unseen(snapshot: Snapshot) -> Iterable[Need]:
    for held in snapshot.reservations:
        ref = held.reservation.spec.workload_ref
        if (ref.api_group, ref.kind) not in WORKLOAD_RESOURCES:
            continue
        if held.workload.phase is WorkloadPhase.UNSEEN or _may_be_outdated(snapshot, held):
            yield ConfirmWorkload(workload_reference(ref, ""))


def _may_be_outdated(snapshot: Snapshot, held: Held) -> bool:
    """Whether the claim names another incarnation of the workload than the cache shows.

    The claim may name an earlier incarnation, or one that the cache does not show yet.
    """
    if snapshot.claim is None or not held.workload.exists or held.workload.confirmed:
        return False
    seen = workload_reference(held.reservation.spec.workload_ref, held.workload.uid)
    created_for = snapshot.claim.spec.reserved_for
    known = (*snapshot.no_pods, *((created_for,) if created_for else ()))
    return any(same_name(each, seen) and each.uid != seen.uid for each in known)


def _end(found: Assessment) -> Assessment:
    """Remove the finalizer from a claim that claimctl deallocated.

    The recorded release shows that. Another controller may have cleared the record after this
    process deallocated; then this process's memory shows it.
    """
    step = finalizer_step(found.snapshot, on_record=found.on_record)
    found = replace(found, write=step.write)
    return found.sooner(step.blockers[0].after if step.blockers else None)


def _keep(found: Assessment) -> Assessment:
    """Keep the list of a claim in order that is not released."""
    if not _group_unrecorded(found):
        found = write_list(found)
    for retention in found.retentions:
        found = found.sooner(retention.blocker.after if retention.blocker else None)
    return found.sooner(look_again(found.snapshot, found.consumers))


def _group_unrecorded(found: Assessment) -> bool:
    """Whether a status has to record the name of the workload's PodGroup before the hold is added.

    After the workload is gone, only this record shows which workload the PodGroup belongs to.
    """
    return any(
        retention.action is Action.HOLD
        and retention.reference is not None
        and not found.listed(retention.reference)
        and retention.held.workload.pod_group != retention.held.reservation.status.pod_group_name
        for retention in found.retentions
        if retention.held.workload.pod_group
    )


def _leave_to_kcm(found: Assessment) -> Assessment:
    """Decide again when KCM should be done. If listed pods are alive, wait for their events."""
    return found if found.live_pod_entries() else found.sooner(max(kcm_time_left(found), 1.0))


def _wait(found: Assessment) -> Assessment:
    """Keep the list in order while something blocks the release.

    Keep the recorded intent while only time blocks the release. For another controller that time
    may be over: it may be deallocating now, and needs the record to remove the finalizer.
    """
    if found.on_record and all(blocker.reason in _PASSES for blocker in found.blockers):
        found = replace(found, step=_current_step(found))
    by_others_alone = all(each.reason is Reason.UNKNOWN_REFERENCES for each in found.blockers)
    if found.reason is not None and by_others_alone:
        step = leave_to_others(found.snapshot, found.reason, found.own)
        if step.needs or step.write is not None:
            return replace(found, needs=step.needs, write=step.write)
    step = leave_to_group(found.snapshot, found.own)
    if step.needs or (step.write is not None and not found.fights):
        return replace(found, needs=step.needs, write=step.write)
    found = write_list(found)
    retained = (each.blocker for each in found.retentions)
    for blocker in (*found.blockers, *step.blockers, *retained):
        found = found.sooner(blocker.after if blocker else None)
    return found


def _release(found: Assessment) -> Assessment:
    """Release a claim for which the caches show no blocker: record the intent, then the steps."""
    if lacks_tombstones(found):
        return write_list(found)
    found = replace(found, step=_current_step(found))
    if not found.on_record:
        return found
    assert found.reason is not None
    step = next_step(found.snapshot, found.reason, found.own)
    found = replace(found, needs=step.needs, write=step.write, blockers=step.blockers)
    return found.sooner(step.blockers[0].after or CACHE_CATCHES_UP if step.blockers else None)


def _current_step(found: Assessment) -> ReleaseStep:
    """The step of the release that the claim's list shows."""
    snapshot = found.snapshot
    is_fenced = fenced(snapshot, found.own) and snapshot.no_pods == snapshot.references
    return ReleaseStep.FENCED if is_fenced else ReleaseStep.INTENT


_PHASES = {
    Phase.ABSENT: lifecycle.make,
    Phase.UNALLOCATED: _end,
    Phase.KEPT: _keep,
    Phase.LEFT_TO_KCM: _leave_to_kcm,
    Phase.LEFT_TO_GROUP: write_list,
    Phase.BLOCKED: _wait,
    Phase.RELEASING: _release,
}
