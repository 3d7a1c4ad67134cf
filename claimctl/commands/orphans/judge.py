"""Decide whether a claim is an orphan, and what forbids freeing it.

``judge`` is a pure function of one claim that was read live. ``_Entries`` sorts the claim's list,
and ``_judge_allocated`` asks the questions. ``_left_behind`` comes first: it finds claimctl's own
entries, beside which others may keep the claim. ``_cause`` has the causes of all other claims, in
their order: a new cause gets a case there, and its text in ``_message``. What blocks freeing a
claim is said by ``_users_left`` for pods and by ``_holders_left`` for other objects.

Nothing here is about time: how long a release waits is decided by the controller that makes it (see
``adoption``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from claimctl.commands.orphans.adoption import cause_of
from claimctl.commands.orphans.model import (
    NOT_READ,
    Cause,
    Orphan,
    OwnerState,
    ScannedClaim,
)
from claimctl.downgrade.expansion import left_ahead
from claimctl.reservation.facts.decision import Blocker
from claimctl.reservation.facts.dialects import PodGroupDialect
from claimctl.reservation.facts.pods import Consumers
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import (
    describe,
    is_pod,
    is_pod_group,
    is_tombstone,
    is_workload,
    listed_ahead,
    uids_written_by,
)
from claimctl.reservation.facts.snapshot import Rules, Snapshot
from claimctl.reservation.users.blockers import against_release, users
from claimctl.text import counted, listed
from claimctl.wire.claims import CLAIM_FINALIZER, Reference, ResourceClaim
from claimctl.wire.pods import Pod
from claimctl.wire.resources import CLAIMRESERVATIONS

_RULES = Rules(dialect=PodGroupDialect.name)


def references_to_read(scanned: ScannedClaim) -> tuple[Reference, ...]:
    """The references whose objects have to be read live before the claim can be judged.

    A reserved or unallocated claim has none; a claim in use has only claimctl's own references.
    """
    if scanned.reserved or scanned.claim.status.allocation is None:
        return ()
    holders = _holders(scanned)
    if not _users_left(scanned):
        return holders
    own = own_holds(scanned.claim)
    return tuple(holder for holder in holders if holder.uid in own)


def judge(scanned: ScannedClaim) -> Orphan | None:
    """Why the claim is an orphan and what forbids freeing it; None if the claim is no orphan."""
    if scanned.reserved:
        return None
    if scanned.claim.status.allocation is not None:
        return _judge_allocated(scanned)
    return _judge_unallocated(scanned.claim) if not scanned.adoptions else None


def judge_begun(scanned: ScannedClaim) -> Orphan | None:
    """Like ``judge``, for a run that goes on: a claim that a run has adopted is an orphan until the
    controller is done with it, also if a pod uses it by now."""
    orphan = judge(scanned)
    if orphan is None and scanned.adoptions and not scanned.reserved:
        return Orphan(cause_of(scanned.adoptions[0]), "an earlier run has begun to free it")
    return orphan


def _judge_unallocated(claim: ResourceClaim) -> Orphan | None:
    """Judge a claim that is not allocated but may still have the delete-protection finalizer.

    A scheduler adds the finalizer before it allocates. So claimctl removes it only from a claim
    whose release is on record.
    """
    meta = claim.metadata
    if CLAIM_FINALIZER not in meta.finalizers or claim.status.reserved_for or not meta.deleting:
        return None
    text = "nothing shows that claimctl deallocated it; kube-controller-manager has to remove it"
    blockers = (Blocker(Reason.FOREIGN_FINALIZER, text),)
    message = "deleted, not allocated, but still with the finalizer"
    return Orphan(Cause.FINALIZER_LEFT, message, blockers)


def _judge_allocated(scanned: ScannedClaim) -> Orphan | None:
    """Judge an allocated claim: which entries go, why it is an orphan, and what blocks that."""
    claim, entries = scanned.claim, _Entries.of(scanned)
    # 1. Has claimctl left entries in the list?
    if (left_behind := _left_behind(scanned, entries)) is not None:
        return left_behind
    # 2. Is it an orphan for another cause?
    users_left = _users_left(scanned)
    present = _cause(scanned, entries, in_use=bool(users_left))
    if present is None:
        return None
    # 3. What blocks freeing it?
    blockers = (*users_left, *_holders_left(scanned, entries))
    return Orphan(present, _message(present, entries, claim), blockers, entries.releasable)


def _left_behind(scanned: ScannedClaim, entries: _Entries) -> Orphan | None:
    """The orphan whose list has entries that claimctl left; None if there are none.

    ``Orphan.entries`` has the holders that nobody answers for. The pods that claimctl listed ahead
    are not among them: the controller takes those out beside the hold of the adoption. Other pods
    and other holders keep their entries, and the claim stays allocated for them: so nothing blocks
    this.
    """
    claim, left = scanned.claim, _pods_left_behind(scanned, entries)
    if claim.metadata.deleting or not (left or entries.guards):
        return None
    cause = Cause.ORPHANED_HOLD if entries.orphaned else Cause.LISTED_AHEAD
    message = _message(cause, entries, claim) if entries.orphaned else _complaint(left)
    return Orphan(cause, message, entries=entries.releasable)


def _pods_left_behind(scanned: ScannedClaim, entries: _Entries) -> tuple[Pod, ...]:
    """The pending pods that claimctl listed ahead, and left in a list without its hold.

    A controller takes such entries out before its hold leaves the claim. They stay behind if the
    hold is taken out by others, or if nobody answers for it any more. Two of them keep the claim
    allocated, also on a node that no pod can use: the scheduler frees a claim for an unschedulable
    pod only if the claim lists nobody else (PostFilter), and kube-controller-manager (KCM) removes
    no pending pod.
    """
    claim = scanned.claim
    if own_holds(claim) - {entry.uid for entry in (*entries.orphaned, *entries.guards)}:
        return ()
    pending = Consumers.of(scanned.live.pods).pending
    left = (pending[uid] for uid in left_ahead(claim, pending))
    return tuple(sorted(left, key=lambda pod: pod.metadata.name))


def _complaint(left: tuple[Pod, ...]) -> str:
    """What is wrong with a claim that lists pods ahead without a hold, as one line."""
    if not left:
        return "guarded by an earlier run that took waiting pods out of its list"
    pods = counted(len(left), "waiting pod")
    names = listed([pod.metadata.name for pod in left])
    return (
        f"lists {pods} for claimctl, which does not hold the claim any more: {names}; their "
        "entries may keep the devices where no pod can use them"
    )


@dataclass(frozen=True, slots=True)
class _Entries:
    """The claim's list, sorted by what each entry means."""

    pods: tuple[Reference, ...]
    tombstones: tuple[Reference, ...]
    guards: tuple[Reference, ...]
    """Entries of the ClaimReservations that adopt the claim: they keep it allocated for a while."""
    orphaned: list[Reference] = field(default_factory=list)
    """claimctl's own references without a reservation."""
    dangling: list[Reference] = field(default_factory=list)
    """References of others to objects that are gone."""
    unproven: list[Reference] = field(default_factory=list)
    """References of which only managedFields say that claimctl wrote them. Their objects exist."""
    unknown: list[Reference] = field(default_factory=list)
    """References of others to objects that may exist or not."""
    held: list[Reference] = field(default_factory=list)
    """All other references to objects that exist."""

    @property
    def releasable(self) -> tuple[Reference, ...]:
        """The entries that nobody answers for, but those of pods and tombstones."""
        return (*self.orphaned, *self.dangling)

    @classmethod
    def of(cls, scanned: ScannedClaim) -> _Entries:
        listed, guards = scanned.claim.status.reserved_for, _guards(scanned)
        entries = cls(
            pods=tuple(filter(is_pod, listed)),
            tombstones=tuple(filter(is_tombstone, listed)),
            guards=tuple(entry for entry in listed if entry.uid in guards),
        )
        own = own_holds(scanned.claim)
        for holder in _holders(scanned):
            state = scanned.answers.get(holder.uid, NOT_READ).state
            entries._place_of(state, holder.uid in own, scanned.believing).append(holder)
        return entries

    def _place_of(self, state: OwnerState, own: bool, believing: bool) -> list[Reference]:
        """Where a reference belongs that is no pod, no tombstone and no guard.

        Args:
            state: of the object that it names.
            own: whether claimctl wrote the reference, as the metadata of the claim tells.
        """
        if state in (OwnerState.GONE, OwnerState.REPLACED):
            return self.orphaned if own else self.dangling
        if own and state not in (OwnerState.RESERVING, OwnerState.UNKNOWN):
            return self.orphaned if believing else self.unproven
        if state in (OwnerState.UNKNOWN_KIND, OwnerState.UNKNOWN):
            return self.unknown
        return self.held


def _holders(scanned: ScannedClaim) -> tuple[Reference, ...]:
    """The entries that are no pod, no tombstone and no guard."""
    guards = _guards(scanned)
    entries = scanned.claim.status.reserved_for
    return tuple(entry for entry in entries if is_workload(entry) and entry.uid not in guards)


def _guards(scanned: ScannedClaim) -> frozenset[str]:
    """UIDs of the guards: of ClaimReservations that adopt the claim and record themselves."""
    return frozenset(adoption.metadata.uid for adoption in scanned.adoptions)


def unproven_holds(scanned: ScannedClaim) -> tuple[Reference, ...]:
    """The workload references of which only managedFields say that claimctl wrote them.

    Their objects exist. Every user who may update the claim may write its managedFields.
    """
    return () if scanned.reserved else tuple(_Entries.of(scanned).unproven)


def orphaned_holds(scanned: ScannedClaim) -> tuple[Reference, ...]:
    """claimctl's own holds that nobody answers for, also beside pods that use the claim."""
    return () if scanned.reserved else tuple(_Entries.of(scanned).orphaned)


def own_holds(claim: ResourceClaim) -> frozenset[str]:
    """UIDs of the workload references that claimctl wrote, or for which it made the claim, as the
    metadata of the claim tells."""
    listed = frozenset(
        entry.uid
        for entry in claim.status.reserved_for
        if is_workload(entry) and not is_pod_group(entry)
    )
    if not listed:
        return listed
    uids, maker = set(uids_written_by(claim)), claim.metadata.controller()
    made_here = maker is not None and maker.kind == CLAIMRESERVATIONS.kind
    if made_here and claim.spec.reserved_for is not None:
        uids.add(claim.spec.reserved_for.uid)
    return listed & uids


def _cause(scanned: ScannedClaim, entries: _Entries, *, in_use: bool) -> Cause | None:
    """The first cause that applies; None if the claim is no orphan."""
    deleting = scanned.claim.metadata.deleting
    # 1. claimctl's own hold, which nobody answers for, makes an orphan also of a claim in use.
    if entries.orphaned or entries.unproven:
        return Cause.ORPHANED_HOLD
    if in_use:
        return None
    # 2. Objects that are gone. If nothing else keeps a claim that is being deleted, 4 says so.
    if entries.dangling and (not deleting or entries.held or entries.unknown):
        return Cause.DANGLING_REFERENCE
    # 3. Objects that exist, or may exist.
    if entries.held:
        return None
    if entries.unknown:
        return Cause.UNKNOWN_REFERENCE
    # 4. Nobody holds the claim, and no pod uses it.
    if deleting:
        return Cause.DELETED_BUT_ALLOCATED
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
        case Cause.DEAD_PODS:
            return f"reserved for pods that are gone or done: {_names(entries.pods)}"
    listed = claim.status.reserved_for
    whom = f"gone or done: {_names(listed)}" if listed else "nobody"
    if cause is Cause.DELETED_BUT_ALLOCATED:
        return f"deleted, still allocated and reserved for {whom}"
    return f"allocated and reserved for {whom}"


def _names(references: Iterable[Reference]) -> str:
    return listed(map(describe, references))


def _users_left(scanned: ScannedClaim) -> tuple[Blocker, ...]:
    """Blockers for the pods that use the claim or may start to use it at any moment.

    Pods that are not listed and that a scheduler may still bind are not included: the controller
    waits for those.
    """
    pods, deleting = Consumers.of(scanned.live.pods), scanned.claim.metadata.deleting
    # a claim that is being deleted takes only pods that it lists
    reason = Reason.CLAIM_DELETED if deleting else Reason.RELEASE_REQUESTED
    using = users(snapshot_of(scanned), reason, pods)
    blockers = [blocker for blocker in using if blocker.reason is not Reason.PODS_MAY_BE_BOUND]
    done = pods.finished.keys() | pods.dropped.keys()
    listed = [
        entry
        for entry in scanned.claim.status.reserved_for
        if is_pod(entry) and entry.uid in scanned.live.uids and entry.uid not in done
    ]
    listed_by_scheduler = pods.pending.keys() - listed_ahead(scanned.claim, pods.pending)
    waiting = [entry for entry in listed if entry.uid in listed_by_scheduler]
    if waiting and not blockers:
        text = f"listed, and not bound yet: {_names(waiting)}"
        blockers.append(Blocker(Reason.CONSUMERS_LEFT, text))
    known = {pod.metadata.uid for pod in scanned.live.pods}
    if strangers := [entry for entry in listed if entry.uid not in known]:
        text = f"listed and existing, but not naming the claim: {_names(strangers)}"
        blockers.append(Blocker(Reason.CONSUMERS_LEFT, text))
    return (*blockers, *against_release(scanned.live.unreadable))


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


def snapshot_of(scanned: ScannedClaim, rules: Rules = _RULES) -> Snapshot:
    """The claim as a snapshot.

    Args:
        rules: the default is the dialect whose pods may use a claim in every way.
    """
    meta = scanned.claim.metadata
    return Snapshot(
        now=scanned.now,
        namespace=meta.namespace,
        name=meta.name,
        claim=scanned.claim,
        pods=scanned.live.pods,
        binding_conditions=True,
        rules=rules,
    )
