"""Decide whether a claim is an orphan, what blocks freeing it, and which write comes next.

``judge`` is a pure function of one claim that was read live. It applies the rules of a release
(``release.protocol.next_step``) in their most careful form:

- The dialect of the cluster is unknown, so every scheduler gets the settle time.
- No process watched the claim before, so a pod may have vanished just before the first scan. Times
  in the objects do not help: managedFields do not record who removed an entry from a list, or when.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from claimctl.commands.orphans import ahead
from claimctl.commands.orphans.model import (
    NOT_READ,
    Cause,
    Orphan,
    OwnerState,
    ScannedClaim,
    WatchTimes,
)
from claimctl.downgrade.expansion import listed_ahead
from claimctl.reservation.facts.decision import Blocker, RemoveClaimFinalizer, WriteList
from claimctl.reservation.facts.dialects import PodGroupDialect
from claimctl.reservation.facts.memory import Memory, Openings
from claimctl.reservation.facts.pods import Consumers
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import (
    describe,
    guard,
    is_pod,
    is_pod_group,
    is_tombstone,
    is_workload,
    uids_written_by,
)
from claimctl.reservation.facts.snapshot import Evidence, Rules, Snapshot
from claimctl.reservation.release.protocol import next_step
from claimctl.reservation.users.blockers import against_release, users
from claimctl.text import counted, listed
from claimctl.wire.claims import CLAIM_FINALIZER, Reference, ResourceClaim
from claimctl.wire.reservations import RELEASE_ANNOTATION
from claimctl.wire.resources import CLAIMRESERVATIONS


def references_to_read(scanned: ScannedClaim) -> tuple[Reference, ...]:
    """The references whose objects have to be read live before the claim can be judged.

    A reserved or unallocated claim has none; a claim in use has only claimctl's own references.
    """
    if scanned.reserved or scanned.claim.status.allocation is None:
        return ()
    holders = _holders(scanned.claim)
    if not _users(scanned):
        return holders
    own = own_holds(scanned.claim)
    return tuple(holder for holder in holders if holder.uid in own)


def judge(scanned: ScannedClaim, times: WatchTimes) -> Orphan | None:
    """Why the claim is an orphan and what comes next; None if the claim is no orphan."""
    if scanned.reserved:
        return None
    if scanned.claim.status.allocation is None:
        return _finalizer(scanned.claim, times)
    entries, using = _Entries.of(scanned), _users(scanned)
    if (left := _judge_listed_ahead(scanned, entries, times, in_use=bool(using))) is not None:
        return left
    cause = _cause(scanned, entries, in_use=bool(using))
    if cause is None:
        return None
    orphan = Orphan(cause, _message(cause, entries, scanned.claim))
    blockers = (*using, *_holders_left(scanned, entries))
    if blockers:
        return replace(orphan, blockers=blockers)
    return _next(orphan, scanned, entries, times)


def _judge_listed_ahead(
    scanned: ScannedClaim, entries: _Entries, times: WatchTimes, *, in_use: bool
) -> Orphan | None:
    """Judge a claim with entries that claimctl listed ahead, or with the guard in their place.

    The guard of a claim that nobody uses goes with the claim's deallocation. Nothing can be added
    to a claim that is being deleted, and schedulers begin to schedule no pod with it.
    """
    claim, held = scanned.claim, bool(entries.orphaned)
    wanted = own_holds(claim) - {entry.uid for entry in entries.orphaned}
    pods = Consumers.of(scanned.live.pods)
    left = ahead.left_behind(claim, pods) if not wanted else ()
    cause = Cause.ORPHANED_HOLD if held else Cause.LISTED_AHEAD
    orphan = Orphan(cause, _message(cause, entries, claim) if held else ahead.complaint(left))
    if left and not claim.metadata.deleting:
        write = ahead.take_out(claim, left, held=held)
    elif entries.guards and (in_use or entries.held or entries.unknown):
        write = ahead.take_out(claim, (), held=True)
    else:
        return None
    wait = _settling(times)
    if not left and wait is None:
        closed = replace(times, version_age=max(times.version_age, times.closed_age))
        wait = ahead.still_binding(snapshot_of(scanned, closed))
    return replace(orphan, wait=wait) if wait is not None else replace(orphan, write=write)


@dataclass(frozen=True, slots=True)
class _Entries:
    """The claim's list, sorted by what each entry means."""

    pods: tuple[Reference, ...] = ()
    tombstones: tuple[Reference, ...] = ()
    guards: tuple[Reference, ...] = ()
    orphaned: tuple[Reference, ...] = ()
    """Claimctl's own references without a reservation."""
    unproven: tuple[Reference, ...] = ()
    """References of which only managedFields say that claimctl wrote them."""
    dangling: tuple[Reference, ...] = ()
    held: tuple[Reference, ...] = ()
    unknown: tuple[Reference, ...] = ()

    @classmethod
    def of(cls, scanned: ScannedClaim) -> _Entries:
        listed, own = scanned.claim.status.reserved_for, own_holds(scanned.claim)
        holders: dict[str, list[Reference]] = {}
        for holder in _holders(scanned.claim):
            state = scanned.answers.get(holder.uid, NOT_READ).state
            kind = _kind(state, own=holder.uid in own, believing=scanned.believing)
            holders.setdefault(kind, []).append(holder)
        return cls(
            pods=tuple(filter(is_pod, listed)),
            tombstones=tuple(filter(is_tombstone, listed)),
            guards=tuple(entry for entry in listed if entry == guard(scanned.claim)),
            **{name: tuple(references) for name, references in holders.items()},
        )


def _kind(state: OwnerState, *, own: bool, believing: bool) -> str:
    """The field of ``_Entries`` that a workload reference belongs to."""
    if state in (OwnerState.GONE, OwnerState.REPLACED):
        return "orphaned" if own else "dangling"
    if own and state not in (OwnerState.RESERVING, OwnerState.UNKNOWN):
        return "orphaned" if believing else "unproven"
    return "unknown" if state in (OwnerState.UNKNOWN_KIND, OwnerState.UNKNOWN) else "held"


def _holders(claim: ResourceClaim) -> tuple[Reference, ...]:
    """The entries that are no pod, no tombstone and no guard."""
    own_guard = guard(claim)
    return tuple(
        entry for entry in claim.status.reserved_for if is_workload(entry) and entry != own_guard
    )


def unproven_holds(scanned: ScannedClaim) -> tuple[Reference, ...]:
    """The workload references of which only managedFields say that claimctl wrote them.

    Their objects exist. Every user who may update the claim may write its managedFields.
    """
    return () if scanned.reserved else _Entries.of(scanned).unproven


def own_holds(claim: ResourceClaim) -> frozenset[str]:
    """UIDs of the workload references that claimctl wrote, or for which it made the claim, as the
    metadata of the claim tells."""
    listed = frozenset(holder.uid for holder in _holders(claim) if not is_pod_group(holder))
    if not listed:
        return listed
    uids, maker = set(uids_written_by(claim)), claim.metadata.controller()
    made_here = maker is not None and maker.kind == CLAIMRESERVATIONS.kind
    if made_here and claim.spec.reserved_for is not None:
        uids.add(claim.spec.reserved_for.uid)
    return listed & uids


def _cause(scanned: ScannedClaim, entries: _Entries, *, in_use: bool) -> Cause | None:
    """The first cause that applies. A claim in use is an orphan only by claimctl's own hold."""
    if entries.orphaned or entries.unproven:
        return Cause.ORPHANED_HOLD
    if in_use:
        return None
    deleting = scanned.claim.metadata.deleting
    if entries.dangling and (not deleting or entries.held or entries.unknown):
        return Cause.DANGLING_REFERENCE
    if entries.held:
        return None
    if entries.unknown:
        return Cause.UNKNOWN_REFERENCE
    if deleting:
        return Cause.DELETED_BUT_ALLOCATED
    if entries.guards:
        return Cause.LISTED_AHEAD
    if entries.tombstones:
        return Cause.ORPHANED_TOMBSTONES
    return Cause.DEAD_PODS if entries.pods else Cause.ALLOCATED_TO_NOBODY


def _message(cause: Cause, entries: _Entries, claim: ResourceClaim) -> str:
    match cause:
        case Cause.ORPHANED_HOLD:
            holds = _names((*entries.orphaned, *entries.unproven))
            whose = "a hold that may be claimctl's" if entries.unproven else "claimctl's own hold"
            return f"{whose}, for {holds}, has no ClaimReservation"
        case Cause.DANGLING_REFERENCE:
            return f"held for objects that are gone: {_names(entries.dangling)}"
        case Cause.UNKNOWN_REFERENCE:
            return f"reserved for {_names(entries.unknown)}, and no pod uses it"
        case Cause.ORPHANED_TOMBSTONES:
            tombstones = counted(len(entries.tombstones), "tombstone")
            return f"reserved only for {tombstones} of finished pods"
        case Cause.LISTED_AHEAD:
            return ahead.complaint(())
        case Cause.DEAD_PODS:
            return f"reserved for pods that are gone or done: {_names(entries.pods)}"
    listed = claim.status.reserved_for
    whom = f"gone or done: {_names(listed)}" if listed else "nobody"
    if cause is Cause.DELETED_BUT_ALLOCATED:
        return f"deleted, still allocated and reserved for {whom}"
    return f"allocated and reserved for {whom}"


def _names(references: Iterable[Reference]) -> str:
    return listed(map(describe, references))


def _users(scanned: ScannedClaim) -> tuple[Blocker, ...]:
    """Blockers for the pods that use the claim or may start to use it at any moment.

    Pods that are not listed and that a scheduler may still bind are not included: ``_next`` makes
    the orphan wait for those.
    """
    pods = Consumers.of(scanned.live.pods)
    done = pods.finished.keys() | pods.dropped.keys()
    known = {pod.metadata.uid for pod in scanned.live.pods}
    listed = [
        entry
        for entry in scanned.claim.status.reserved_for
        if is_pod(entry) and entry.uid in scanned.live.uids and entry.uid not in done
    ]
    strangers = [entry for entry in listed if entry.uid not in known]
    using = users(snapshot_of(scanned), _reason(scanned.claim), pods)
    blockers = tuple(blocker for blocker in using if blocker.reason is not Reason.PODS_MAY_BE_BOUND)
    late = pods.pending.keys() - listed_ahead(scanned.claim, pods.pending)
    if waiting := [entry for entry in listed if entry.uid in late] if not blockers else []:
        text = f"listed, and not bound yet: {_names(waiting)}"
        blockers = (Blocker(Reason.CONSUMERS_LEFT, text),)
    if strangers:
        text = f"listed and existing, but not naming the claim: {_names(strangers)}"
        blockers = (*blockers, Blocker(Reason.CONSUMERS_LEFT, text))
    return (*blockers, *against_release(scanned.live.unreadable))


def _reason(claim: ResourceClaim) -> Reason:
    """The reason of the release.

    A claim that is being deleted takes only pods that it lists. A guarded claim is given up as it
    is, and the scheduler allocates it anew for the pods that wait.
    """
    if claim.metadata.deleting:
        return Reason.CLAIM_DELETED
    return Reason.REALLOCATED if ahead.is_guarded(claim) else Reason.RELEASE_REQUESTED


def _holders_left(scanned: ScannedClaim, entries: _Entries) -> Iterator[Blocker]:
    if entries.held:
        text = f"held by objects that exist: {_names(entries.held)}"
        if groups := [entry.name for entry in entries.held if is_pod_group(entry)]:
            place = scanned.claim.metadata.namespace
            delete = f"kubectl -n {place} delete podgroup {' '.join(groups)}"
            text = f"{text}; a PodGroup goes with its workload, or after its pods with: {delete}"
        yield Blocker(Reason.OTHER_HOLDERS, text)
    if entries.unproven:
        yield Blocker(Reason.UNKNOWN_REFERENCES, unproven_text(entries.unproven))
    for entry in entries.unknown:
        answer = scanned.answers.get(entry.uid, NOT_READ)
        if answer.state is OwnerState.UNKNOWN:
            text = f"it is unknown whether {describe(entry)} exists: {answer.note}"
            yield Blocker(Reason.CANNOT_TELL, text)
        else:
            text = f"no API of the cluster serves {describe(entry)}: its owner has to remove it"
            yield Blocker(Reason.UNKNOWN_REFERENCES, text)


def unproven_text(holds: Iterable[Reference]) -> str:
    """What an administrator should know of ``unproven_holds``."""
    return (
        f"managedFields alone call {_names(holds)} claimctl's, and every user who may update the "
        "claim may write them: if no other client holds it, add --believe-managed-fields"
    )


def _next(orphan: Orphan, scanned: ScannedClaim, entries: _Entries, times: WatchTimes) -> Orphan:
    """The orphan with its next write, or with what it waits for.

    No pod may have used the claim for the whole grace. This holds for a fence too, because other
    clients may deallocate the claim after it.
    """
    if (settling := _settling(times)) is not None:
        return replace(orphan, wait=settling)
    own = frozenset(entry.uid for entry in (*entries.orphaned, *entries.dangling, *entries.guards))
    step = next_step(snapshot_of(scanned, times), _reason(scanned.claim), own)
    if step.blockers and step.blockers[0].reason is Reason.PODS_MAY_BE_BOUND:
        return replace(orphan, wait=step.blockers[0])
    if step.blockers:
        return replace(orphan, blockers=step.blockers)
    left = times.grace_seconds - times.quiet_age
    if left > 0:
        text = "a pod that vanished before the first scan may still be running"
        return replace(orphan, wait=Blocker(Reason.HISTORY_UNKNOWN, text, left))
    assert isinstance(step.write, WriteList)
    return replace(orphan, write=step.write)


def snapshot_of(scanned: ScannedClaim, times: WatchTimes | None = None) -> Snapshot:
    """The claim as the snapshot of a release. Nobody asked whether devices have binding conditions,
    so they may have some."""
    claim, known = scanned.claim, times or WatchTimes()
    meta, age = claim.metadata, known.version_age
    live = replace(
        scanned.live, claim_version=meta.resource_version, settled=age >= known.settle_seconds
    )
    return Snapshot(
        now=scanned.now,
        namespace=meta.namespace,
        name=meta.name,
        claim=claim,
        pods=live.pods,
        claims=scanned.others,
        binding_conditions=True,
        # without history, in the dialect that always waits to settle
        rules=Rules(
            dialect=PodGroupDialect.name,
            settle_seconds=known.settle_seconds,
            binding_seconds=known.binding_seconds,
            slow_binding_seconds=known.slow_binding_seconds,
        ),
        evidence=Evidence(live=live),
        memory=Memory(
            version_age=age,
            deleting_age=age if meta.deleting else 0.0,
            openings=Openings(watched_age=age),
        ),
    )


def _finalizer(claim: ResourceClaim, times: WatchTimes) -> Orphan | None:
    """Judge a claim that is not allocated but may still have the delete-protection finalizer.

    A scheduler adds the finalizer before it allocates. So claimctl removes the finalizer only
    from a claim that claimctl deallocated, and only after the settle time.
    """
    meta = claim.metadata
    if CLAIM_FINALIZER not in meta.finalizers or claim.status.reserved_for:
        return None
    if meta.annotation(RELEASE_ANNOTATION) == meta.uid:
        text = "deallocated by an earlier run that did not remove the finalizer"
        orphan = Orphan(Cause.UNFINISHED_RELEASE, text)
        if (settling := _settling(times)) is not None:
            return replace(orphan, wait=settling)
        return replace(orphan, write=RemoveClaimFinalizer(meta.resource_version))
    if not meta.deleting:
        return None
    text = "nothing shows that claimctl deallocated it; kube-controller-manager has to remove it"
    blockers = (Blocker(Reason.FOREIGN_FINALIZER, text),)
    message = "deleted, not allocated, but still with the finalizer"
    return Orphan(Cause.FINALIZER_LEFT, message, blockers)


def _settling(times: WatchTimes) -> Blocker | None:
    left = times.settle_seconds - times.version_age
    text = "waiting until every scheduler sees this version of the claim"
    return Blocker(Reason.SETTLING, text, left) if left > 0 else None
