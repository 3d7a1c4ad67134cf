"""Assess a claim: compute from a snapshot all facts of a decision, each once.

The answers depend on each other in one direction: what each reservation asks for, which entries
are claimctl's, what blocks a release, which list the claim should have, and from all of that the
claim's phase. Nothing here says what to write; ``decide`` does.

A hold is the entry of a workload. It keeps the claim allocated while no pod does. Three functions
answer for the three situations: may the holds stay at all (``holds_step_aside``), what belongs in
the list of a claim that is held (``holds_while_held``), and what belongs there while a release
waits (``holds_while_waiting``). ``reserved_for.consistency`` makes the list from the answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from claimctl.reservation.assessment.retention import Action, RetentionDecision, decide_retention
from claimctl.reservation.facts.decision import Blocker
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import (
    LIMIT,
    is_pod,
    is_pod_group,
    is_tombstone,
    is_workload,
)
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.reserved_for.consistency import DesiredHolds, ListPlan, consistent_list
from claimctl.reservation.reserved_for.late import may_stand
from claimctl.reservation.reserved_for.listing_ahead import (
    NOTHING_GIVEN_UP,
    GivenUp,
    entries_to_give_up,
)
from claimctl.reservation.users.blockers import blockers, is_open, longest_binding_left
from claimctl.reservation.users.withdrawal import hold_has_left, is_left_to_group
from claimctl.wire.claims import CLAIM_FINALIZER, Reference, ResourceClaim


class Phase(StrEnum):
    """The phase of a claim; it decides what ``decide`` does."""

    ABSENT = "Absent"
    UNALLOCATED = "Unallocated"
    KEPT = "Kept"
    """The claim is allocated and not released: a reservation holds it, or none asks for it."""
    LEFT_TO_KCM = "LeftToKCM"
    """The claim is released, and its list has only pods: kube-controller-manager (KCM) deallocates
    when it removes the last one."""
    LEFT_TO_GROUP = "LeftToGroup"
    """The reservations are withdrawn, and the hold has left the claim to a PodGroup."""
    BLOCKED = "Blocked"
    """The claim should be released, and there are blockers."""
    RELEASING = "Releasing"
    """The claim should be released, and the caches show no blocker."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """The facts about a claim. ``decide``, statuses and ``claimctl explain`` read them."""

    snapshot: Snapshot
    phase: Phase
    retentions: tuple[RetentionDecision, ...] = ()
    held: bool = False
    """Whether any reservation holds the claim."""
    own: frozenset[str] = frozenset()
    """UIDs of the listed references that are claimctl's own, or PodGroups of its workloads."""
    groups: frozenset[str] = frozenset()
    """The UIDs in ``own`` that are PodGroups."""
    reason: Reason | None = None
    """Why the claim is released; None if a reservation holds it or none releases it."""
    releasing: Reason | None = None
    """The same, but None if the release is left to KCM or to a PodGroup."""
    steps_aside: Reason | None = None
    """Why claimctl removes all holds from an allocated claim; None if they may stay."""
    plan: ListPlan | None = None
    """The list that the claim should have; None if the claim is not allocated."""
    blockers: tuple[Blocker, ...] = ()
    """The blockers of the release, from the caches."""
    on_record: bool = False
    """Whether a reservation's status records the release of this claim (by its UID)."""
    left_to_group: bool = False
    """Whether withdrawn reservations leave the claim to a listed PodGroup without our finalizer."""
    hold_has_left: bool = False
    """Whether they leave it to a listed PodGroup, and the list has no hold of theirs any more."""
    finalizer_left: bool = False
    """Whether a claim whose deallocation is on record still has the scheduler's finalizer."""

    def is_held_for(self, retention: RetentionDecision) -> bool:
        """Whether the claim is held for the reservation: by the list, or late by the allocation."""
        late = self.snapshot.late is not None and self.steps_aside in (None, self.snapshot.late)
        by_allocation = late and self.plan is not None and retention.action is Action.HOLD
        return retention.is_listed or (by_allocation and retention.reference is not None)

    def is_kept_for_others(self, retention: RetentionDecision) -> bool:
        """Whether the hold of the reservation is over, and another one holds the claim."""
        return self.held and retention.action is Action.RELEASE and not self.is_held_for(retention)

    @property
    def claim(self) -> ResourceClaim:
        """The claim. It exists in every phase but ``ABSENT``."""
        assert self.snapshot.claim is not None
        return self.snapshot.claim

    @property
    def lists_bound_pods(self) -> bool:
        """Whether the list has a bound pod.

        Only KCM removes the entry of a bound pod. The scheduler may remove the entry of a pod that
        is not bound (Unreserve); no component deallocates the claim after that.
        """
        bound = self.snapshot.consumers.bound
        return any(is_pod(entry) and entry.uid in bound for entry in self.snapshot.references)

    @property
    def left_to_pods(self) -> bool:
        """Whether KCM will remove the last pod of the list, and thereby deallocate.

        KCM up to 1.33 never looks at a claim again whose last pod ends while KCM does not run, or
        while another client's entry is in the list. So claimctl takes no hold out to leave a
        claim to it.
        """
        return self.lists_bound_pods and self.snapshot.rules.kcm_looks_at_claims

    @property
    def live_pod_entries(self) -> list[Reference]:
        """The entries of pods that use the claim, or may start to use it."""
        alive = self.snapshot.consumers.alive
        return [entry for entry in self.snapshot.references if is_pod(entry) and entry.uid in alive]

    @property
    def kcm_time_left(self) -> float:
        """Seconds that KCM still has to remove the dead pods of the list."""
        ages, limit = self.snapshot.memory.dead_age, self.snapshot.rules.dead_reference_seconds
        return limit - min(ages.get(entry.uid, 0.0) for entry in self.snapshot.references)


def assess(snapshot: Snapshot) -> Assessment:
    """Assess the claim; ``decide`` adds what to do."""
    claim = snapshot.claim
    if claim is None:
        retentions = tuple(
            RetentionDecision(held, Action.NONE, Reason.CLAIM_NOT_FOUND)
            for held in snapshot.reservations
        )
        return Assessment(snapshot, Phase.ABSENT, retentions)
    # 1. Does each reservation hold the claim, release it, or ask for nothing?
    groups = snapshot.own_groups
    retentions = tuple(decide_retention(snapshot, held, groups) for held in snapshot.reservations)
    is_held = any(retention.action is Action.HOLD for retention in retentions)
    if is_held:
        # no devices are given up for waiting pods while another reservation holds the claim
        retentions = tuple(
            replace(retention, action=Action.HOLD, reason=Reason.HELD)
            if retention.reason is Reason.REALLOCATED
            else retention
            for retention in retentions
        )
    # 2. Which listed workloads are claimctl's own?
    own = groups | own_holds(snapshot)
    # 3. Why is the claim released, if it is? Devices that are given up for waiting pods come first.
    reasons = [
        retention.reason
        for retention in retentions
        if retention.action is Action.RELEASE and not is_held
    ]
    for_waiting_pods = (Reason.REALLOCATED, Reason.HOLD_YIELDED)
    reason = min(reasons, key=lambda reason: reason not in for_waiting_pods, default=None)
    records = [held.reservation.status.release for held in snapshot.reservations]
    on_record = any(record and record.claim_uid == claim.metadata.uid for record in records)
    facts = Assessment(
        snapshot,
        Phase.UNALLOCATED,
        retentions,
        held=is_held,
        own=own,
        groups=groups,
        reason=reason,
        on_record=on_record,
    )
    if not snapshot.allocated:
        has_finalizer = CLAIM_FINALIZER in claim.metadata.finalizers
        return replace(facts, finalizer_left=on_record and has_finalizer)
    # 4. What blocks its release, and which list should it have?
    facts = replace(facts, steps_aside=holds_step_aside(facts))
    if reason is None:
        plan = consistent_list(snapshot, holds_while_held(facts))
        return replace(facts, plan=plan, phase=Phase.KEPT)
    to_group, left = is_left_to_group(snapshot), hold_has_left(snapshot)
    facts = replace(facts, left_to_group=to_group, hold_has_left=left)
    if not facts.hold_has_left:
        facts = replace(facts, blockers=tuple(blockers(snapshot, reason, facts.own)))
    facts = replace(facts, plan=consistent_list(snapshot, holds_while_waiting(facts)))
    # 5. In which phase is it?
    if facts.hold_has_left:
        return replace(facts, phase=Phase.LEFT_TO_GROUP)
    if _is_left_to_kcm(facts):
        return replace(facts, phase=Phase.LEFT_TO_KCM)
    phase = Phase.BLOCKED if facts.blockers else Phase.RELEASING
    return replace(facts, phase=phase, releasing=reason)


def own_holds(snapshot: Snapshot) -> frozenset[str]:
    """UIDs of the listed workload references that claimctl may take out.

    - The status of a reservation records the reference. Users of a namespace cannot write it.
    - A reservation names the object, and claimctl knows what has become of that: the reference is
      the one that the reservation adds (a controller may die before the status records it), or the
      object is gone.

    managedFields prove nothing: every user who may update the claim may write them.
    """
    recorded, named = set(), set()
    for held in snapshot.reservations:
        if (reference := held.reservation.status.reserved_for) is not None:
            recorded.add(reference.uid)
        if held.resource and held.workload.known:
            named.add(held.reference_to_any.key)
    return frozenset(
        entry.uid
        for entry in snapshot.non_pods
        if is_workload(entry)
        and not is_pod_group(entry)
        and (entry.uid in recorded or entry.key in named)
    )


def _is_left_to_kcm(facts: Assessment) -> bool:
    """Whether to let kube-controller-manager (KCM) remove the pods of the list and deallocate.

    KCM deallocates when it removes the last entry, so the list must have only pods. Then it depends
    on the pods whose entries are listed:

    - All are gone or done: KCM removes them, and has some time for it.
    - One is bound: KCM deallocates when the last one ends, unless entries are left that claimctl
      wrote. They do not matter to a claim that is being deleted: no pod is bound with it any more.
    - The living ones are pending. KCM removes no pending pod, so a scheduler has to bind them, or
      to take their entries out (Unreserve). It does neither for a claim that is being deleted, and
      it takes out none of the entries that only claimctl removes.
    """
    snapshot = facts.snapshot
    if not snapshot.references or snapshot.non_pods:
        return False
    if not facts.live_pod_entries:
        return facts.kcm_time_left > 0
    deleting = facts.claim.metadata.deleting
    if facts.lists_bound_pods:
        return deleting or not (snapshot.consumers.ahead or snapshot.ahead_unseen)
    return not (deleting or snapshot.consumers.removable)


def holds_while_held(facts: Assessment) -> DesiredHolds:
    """The holds while a reservation holds the claim: holds stay or are added, released ones go."""
    snapshot, claim = facts.snapshot, facts.snapshot.claim
    keep: dict[str, Reference] = {}
    drop: set[str] = set()
    owners: dict[str, frozenset[str]] = {}
    for retention in facts.retentions:
        reference = retention.reference
        if claim is None or reference is None or retention.action is Action.NONE:
            continue
        if retention.action is Action.RELEASE or facts.steps_aside:
            drop |= {reference.uid} | _old_incarnations(facts, reference)
        elif retention.is_listed or not snapshot.dialect.refuses(claim, reference):
            keep[reference.uid] = reference
            owners[reference.uid] = retention.held.workload.pod_owners
            drop |= _old_incarnations(facts, reference)
    given_up = entries_to_give_up(snapshot) if snapshot.consumers.stuck else NOTHING_GIVEN_UP
    gone = frozenset(drop & facts.own - keep.keys())
    ours = bool(gone) or any(map(is_tombstone, snapshot.non_pods))
    # a late hold takes tombstones and dead pods along; a list with nothing of claimctl's stays
    late = facts.steps_aside is not None and facts.steps_aside is snapshot.late
    return DesiredHolds(keep, gone, facts.own, owners, given_up, late_hold_leaves=ours and late)


def _old_incarnations(facts: Assessment, reference: Reference) -> set[str]:
    """UIDs of listed references with the same name and another UID: those objects are gone."""
    return {
        entry.uid
        for entry in facts.snapshot.non_pods
        if entry.key == reference.key and entry.uid != reference.uid
    }


def holds_step_aside(facts: Assessment) -> Reason | None:
    """May the holds stand in the list now? None if so, else why they leave an allocated claim.

    - A device is gone or broken, and a hold would bring each new pod to it. The last pod takes it
      along.
    - The driver, or the scheduler, wants the list for a pod alone (``reserved_for.late``).
    - A pending pod finds no room in the list. The holds come back when there is room, or no pod
      waits.

    A bound pod in the list keeps the claim allocated meanwhile, or, for a late hold, the allocation
    itself. The holds of a claim that is being deleted stay, because the API accepts no new entries
    there; but a bound pod that is to start alone needs none.
    """
    snapshot, pods = facts.snapshot, facts.snapshot.consumers
    listed = snapshot.listed_uids
    if snapshot.shared:
        return None
    in_use = not listed.isdisjoint(pods.bound)
    loss = snapshot.loss
    if in_use and loss is not None and loss.after == 0 and not snapshot.deleting:
        return loss.reason
    late = snapshot.late if in_use or not snapshot.deleting else None
    released = facts.reason is not None
    if late is not None and not may_stand(snapshot, facts.own, released=released):
        return late
    if not in_use or snapshot.deleting:
        return None
    wanted = {
        retention.reference.uid
        for retention in facts.retentions
        if retention.action is Action.HOLD and retention.reference is not None
    }
    holds = (facts.own | wanted) - facts.groups
    if not holds or len(listed | holds) < LIMIT:
        return None
    waits = any(not is_open(snapshot, pod) for pod in pods.pending.values())
    return Reason.HOLD_YIELDED if waits else None


def holds_while_waiting(facts: Assessment) -> DesiredHolds:
    """The holds while a release waits.

    - A hold stays until the consumers have gone, or until it has to make room for a pod.
    - If the list has lost its hold, and needs one, the hold is added again.
    - A hold leaves earlier for pods that are listed (``_leaves_to_pods``). Before it, the entries
      go that claimctl listed ahead, and the hold stays for the binding time. Two such entries alone
      would keep the scheduler from freeing the claim for their pods.
    - If garbage collection deleted the reservation after its workload, the hold waits for the pods,
      because KCM knows no ghosts.
    """
    snapshot, drop, keep = facts.snapshot, set[str](), dict[str, Reference]()
    given_up = NOTHING_GIVEN_UP
    if any(_leaves_to_pods(facts, retention) for retention in facts.retentions):
        left = longest_binding_left(snapshot)
        given_up = GivenUp(snapshot.consumers.ahead, left or None)
    lost = _has_lost_its_hold(facts)
    for retention in facts.retentions:
        if retention.reference is None or retention.action is not Action.RELEASE:
            continue
        # last of all: no entry listed ahead is left, and the binding time is over
        leaves = given_up == NOTHING_GIVEN_UP and _leaves_to_pods(facts, retention)
        if facts.steps_aside or leaves:
            drop |= {retention.reference.uid} | _old_incarnations(facts, retention.reference)
        elif retention.is_listed:
            keep[retention.reference.uid] = retention.reference
        elif (hold := retention.recorded) and (lost or hold.uid in snapshot.listed_uids):
            # the incarnation that held the claim
            keep[hold.uid] = hold
        elif snapshot.consumers.left_listed:
            # nothing of claimctl held it yet
            keep[retention.reference.uid] = retention.reference
    drop &= facts.own - keep.keys()
    return DesiredHolds(keep, frozenset(drop), facts.own, given_up=given_up)


def _leaves_to_pods(facts: Assessment, retention: RetentionDecision) -> bool:
    """Whether the hold leaves the claim to listed pods, where pods are listed one by one.

    - A withdrawn hold leaves as soon as a listed pod is bound: kube-controller-manager (KCM)
      deallocates with the last of them (``left_to_pods``). But it stays while the cache does not
      show a pod that claimctl listed: such a pod may be pending, and KCM removes no pending pod.
    - Every hold leaves if nothing but pods that a scheduler listed is in the way. The scheduler
      frees a claim that lists only the pod for which it finds no node. Of several such pods,
      claimctl takes the entries out beside the hold.
    """
    if facts.snapshot.needs_fence:
        return False
    if (
        retention.reason is Reason.WITHDRAWN
        and retention.held.withdrawn_by_user
        and facts.left_to_pods
    ):
        return not facts.snapshot.ahead_unseen
    only_listed = all(blocker.reason is Reason.PODS_LISTED for blocker in facts.blockers)
    return bool(facts.blockers) and only_listed and not facts.snapshot.consumers.left_listed


def _has_lost_its_hold(facts: Assessment) -> bool:
    """Whether the list of a claim that is to be released needs a hold, and has none.

    - A pod is bound on a fenced claim, or on one whose group has left the list. Without a hold, the
      scheduler may deallocate such a claim for an unschedulable pod (PostFilter). The recorded
      release does not matter: it was cleared when the pending pod was first seen.
    - The list has entries that only claimctl removes. It does so only beside a hold.
    """
    snapshot = facts.snapshot
    if facts.own - facts.groups or facts.hold_has_left:
        return False
    shares = snapshot.shares_by_group or snapshot.needs_fence
    return bool(snapshot.consumers.removable) or (shares and bool(snapshot.consumers.bound))
