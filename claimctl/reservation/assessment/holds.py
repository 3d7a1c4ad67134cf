"""Which holds the list of a claim should have; when one waits, or steps aside.

A hold is the entry of a workload. It keeps the claim allocated while no pod does. Three functions
answer for the three situations: may the holds stay at all (``holds_step_aside``), what belongs in
the list of a claim that is held (``holds_while_held``), and what belongs there while a release
waits (``holds_while_waiting``). ``reserved_for.consistency`` makes the list from the answer.
"""

from __future__ import annotations

from claimctl.reservation.assessment.assessment import Assessment
from claimctl.reservation.assessment.retention import Action, RetentionDecision
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import LIMIT
from claimctl.reservation.reserved_for.consistency import DesiredHolds
from claimctl.reservation.reserved_for.listing_ahead import GivenUp, entries_to_give_up
from claimctl.reservation.users.binding import (
    is_open,
    left_listed,
    longest_binding_left,
    removable,
)
from claimctl.reservation.users.waiting import evicts
from claimctl.reservation.users.withdrawal import hold_has_left
from claimctl.wire.claims import Reference


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
    given_up = entries_to_give_up(snapshot) if snapshot.consumers.stuck else GivenUp()
    gone = frozenset(drop & facts.own - keep.keys())
    return DesiredHolds(keep, gone, facts.own, owners, given_up)


def _old_incarnations(facts: Assessment, reference: Reference) -> set[str]:
    """UIDs of listed references with the same name and another UID: those objects are gone."""
    return {
        entry.uid
        for entry in facts.snapshot.no_pods
        if entry.key == reference.key and entry.uid != reference.uid
    }


def holds_step_aside(facts: Assessment) -> Reason | None:
    """Why all holds have to leave the list although the claim is held; None if they may stay.

    - A pending pod finds no room in the list. The holds come back when there is room for all of
      them, or no pod waits.
    - Kube-controller-manager evicts the pods because of a device's taint, and a hold would bring
      each new pod to the same device.

    A bound pod in the list keeps the claim allocated meanwhile. The holds of a claim that is being
    deleted stay, because the API accepts no new entries there.
    """
    snapshot, pods = facts.snapshot, facts.snapshot.consumers
    listed, claim = snapshot.listed_uids, snapshot.claim
    if snapshot.shared or claim is None or claim.metadata.deleting:
        return None
    if listed.isdisjoint(pods.bound):
        return None
    if snapshot.may_evict and evicts(snapshot):
        return Reason.DEVICE_TAINTED
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
    - A withdrawn hold goes as soon as a listed pod is bound, where pods are listed one by one. The
      pods keep their entries, and kube-controller-manager (KCM) deallocates with the last one.
      With KCM up to 1.33, the hold stays until the pods are gone.
    - Before that, the entries go that claimctl listed ahead, and the hold stays for the binding
      time. Two such entries alone would keep the scheduler from freeing the claim for their pods.
    - A hold goes if nothing but pods that a scheduler listed is in the way. The scheduler frees a
      claim that lists only the pod for which it finds no node. Of several such pods, claimctl takes
      the entries out beside the hold.
    - If garbage collection deleted the reservation after its workload, the hold waits for the pods,
      because KCM knows no ghosts.
    """
    snapshot, drop, keep = facts.snapshot, set[str](), dict[str, Reference]()
    by_fence = snapshot.needs_fence
    handed_over = not by_fence and facts.left_to_pods
    only_listed = all(blocker.reason is Reason.PODS_LISTED for blocker in facts.blockers)
    left_over = left_listed(snapshot, snapshot.consumers)
    yields = not by_fence and bool(facts.blockers) and only_listed and not left_over
    leaving = yields or (handed_over and any(map(_is_withdrawn, facts.retentions)))
    left = longest_binding_left(snapshot) if leaving else 0.0
    given_up = GivenUp(snapshot.consumers.ahead, left or None) if leaving else GivenUp()
    lost = _has_lost_its_hold(facts)
    for retention in facts.retentions:
        if retention.reference is None or retention.action is not Action.RELEASE:
            continue
        leaves = yields or (handed_over and _is_withdrawn(retention))
        if facts.steps_aside or (leaves and given_up == GivenUp()):
            drop |= {retention.reference.uid} | _old_incarnations(facts, retention.reference)
        elif retention.is_listed:
            keep[retention.reference.uid] = retention.reference
        elif (hold := retention.recorded) and (lost or hold.uid in snapshot.listed_uids):
            # the incarnation that held the claim
            keep[hold.uid] = hold
        elif left_over:
            # nothing of claimctl held it yet
            keep[retention.reference.uid] = retention.reference
    drop &= facts.own - keep.keys()
    return DesiredHolds(keep, frozenset(drop), facts.own, given_up=given_up)


def _is_withdrawn(retention: RetentionDecision) -> bool:
    return retention.reason is Reason.WITHDRAWN and retention.held.withdrawn


def _has_lost_its_hold(facts: Assessment) -> bool:
    """Whether the list of a claim that is to be released needs a hold, and has none.

    - A pod is bound on a fenced claim, or on one whose group has left the list. Without a hold, the
      scheduler may deallocate such a claim for an unschedulable pod (PostFilter). The recorded
      release does not matter: it was cleared when the pending pod was first seen.
    - The list has entries that only claimctl removes. It does so only beside a hold.
    """
    snapshot = facts.snapshot
    if facts.own - facts.groups or hold_has_left(snapshot):
        return False
    shares = snapshot.shares_by_group or snapshot.needs_fence
    return bool(removable(snapshot, snapshot.consumers)) or (
        shares and bool(snapshot.consumers.bound)
    )
