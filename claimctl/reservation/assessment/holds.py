"""Decide which holds the list of a claim should have, and write the desired list."""

from __future__ import annotations

from math import inf

from msgspec.structs import replace

from claimctl.reservation.assessment.assessment import Assessment
from claimctl.reservation.assessment.retention import Action, RetentionDecision
from claimctl.reservation.facts.decision import ConfirmPods, ListLivePods, WriteList
from claimctl.reservation.facts.dialects import DIALECTS
from claimctl.reservation.facts.membership import needing_tombstones
from claimctl.reservation.facts.pods import Consumers
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import (
    LIMIT,
    is_pod,
    is_tombstone,
    only_tombstones,
    pod_reference,
    same_name,
)
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.facts.workloads import group_of
from claimctl.reservation.reserved_for.consistency import DesiredHolds
from claimctl.reservation.reserved_for.listing_ahead import (
    GivenUp,
    entries_to_give_up,
    scheduler_busy_left,
)
from claimctl.reservation.users.binding import (
    begins_with_fence,
    closed_age,
    is_open,
    longest_binding_left,
    may_share_by_group,
    schedulers_list_pods,
)
from claimctl.reservation.users.waiting import evicts
from claimctl.reservation.users.withdrawal import hold_has_left
from claimctl.wire.claims import Reference
from claimctl.wire.pods import Pod

FIGHT_REST = 300.0
"""Seconds to wait before claimctl writes a list again that another client keeps undoing."""


def holds_while_held(found: Assessment) -> DesiredHolds:
    """The holds while a reservation holds the claim: holds stay or are added, released ones go."""
    keep: dict[str, Reference] = {}
    drop: set[str] = set()
    owners: dict[str, frozenset[str]] = {}
    for retention in found.retentions:
        reference = retention.reference
        if reference is None or retention.action is Action.NONE:
            continue
        if retention.action is Action.RELEASE or found.steps_aside:
            drop |= {reference.uid} | _old_incarnations(found, reference)
        elif found.listed(reference) or not _refused(found, reference):
            keep[reference.uid] = reference
            owners[reference.uid] = retention.held.workload.pod_owners
            drop |= _old_incarnations(found, reference)
    given_up = entries_to_give_up(found.snapshot, found.consumers)
    return DesiredHolds(
        keep, frozenset(drop & found.own - keep.keys()), found.own, owners, given_up
    )


def _refused(found: Assessment, reference: Reference) -> bool:
    return DIALECTS[found.snapshot.rules.dialect].refuses(found.claim, reference) is not None


def _old_incarnations(found: Assessment, reference: Reference) -> set[str]:
    """UIDs of listed references with the same name and another UID: those objects are gone."""
    return {
        listed.uid
        for listed in found.snapshot.no_pods
        if same_name(listed, reference) and listed.uid != reference.uid
    }


def holds_step_aside(found: Assessment) -> Reason | None:
    """Why all holds have to leave the list although the claim is held; None if they may stay.

    - A pending pod finds no room in the list. The holds come back when there is room for all of
      them, or no pod waits.
    - Kube-controller-manager evicts the pods because of a device's taint, and a hold would bring
      each new pod to the same device.

    A bound pod in the list keeps the claim allocated meanwhile. The holds of a claim that is being
    deleted stay, because the API accepts no new entries there.
    """
    listed = found.snapshot.listed_uids
    kept = any(uid in listed for uid in found.consumers.bound)
    if found.snapshot.shared or found.claim.metadata.deleting or not kept:
        return None
    if evicts(found.snapshot):
        return Reason.DEVICE_TAINTED
    holds = _holds(found)
    if not holds or len(listed | holds) < LIMIT:
        return None
    waits = any(not is_open(found.snapshot, pod) for pod in found.consumers.pending.values())
    return Reason.HOLD_YIELDED if waits else None


def _holds(found: Assessment) -> frozenset[str]:
    """UIDs of claimctl's holds: those in the list, and those that should be there."""
    wanted = {
        retention.reference.uid
        for retention in found.retentions
        if retention.action is Action.HOLD and retention.reference is not None
    }
    return (found.own | wanted) - found.groups


def holds_while_waiting(found: Assessment) -> DesiredHolds:
    """The holds while a release waits.

    - A hold stays until the consumers have gone, or until it has to make room for a pod.
    - If the list has lost its hold, and needs one, the hold is added again (``_to_put_back``).
    - A withdrawn hold goes as soon as a listed pod is bound, where pods are listed one by one. The
      pods keep their entries, and kube-controller-manager (KCM) deallocates with the last one.
      With KCM up to 1.33, the hold stays until the pods are gone.
    - Before that, the entries go that claimctl listed ahead, and the hold stays for the binding
      time. Two such entries alone would keep the scheduler from freeing the claim for their pods.
    - A hold goes if nothing but pods that a scheduler listed is in the way. The scheduler frees a
      claim that lists only the pod for which it finds no node.
    - If garbage collection deleted the reservation after its workload, the hold waits for the pods,
      because KCM knows no ghosts.
    """
    drop: set[str] = set()
    keep: dict[str, Reference] = {}
    handed_over = not begins_with_fence(found.snapshot) and found.left_to_pods
    yields = _only_schedulers_block(found)
    leaving = yields or (handed_over and any(map(_is_withdrawn, found.retentions)))
    left = longest_binding_left(found.snapshot) if leaving else 0.0
    given_up = GivenUp(found.ahead, left or None) if leaving else GivenUp()
    for retention in found.retentions:
        if retention.reference is None or retention.action is not Action.RELEASE:
            continue
        leaves = yields or (handed_over and _is_withdrawn(retention))
        if found.steps_aside or (leaves and given_up == GivenUp()):
            drop |= {retention.reference.uid} | _old_incarnations(found, retention.reference)
        elif found.listed(retention.reference):
            keep[retention.reference.uid] = retention.reference
        elif (taken_out := _to_put_back(found, retention)) is not None:
            keep[taken_out.uid] = taken_out
    drop &= found.own - keep.keys()
    return DesiredHolds(keep, frozenset(drop), found.own, given_up=given_up)


def _is_withdrawn(retention: RetentionDecision) -> bool:
    return retention.reason is Reason.WITHDRAWN and retention.held.withdrawn


def _only_schedulers_block(found: Assessment) -> bool:
    """Whether only pods that a scheduler listed, and that are not bound, block the release."""
    listed = bool(found.blockers) and all(
        blocker.reason is Reason.PODS_LISTED for blocker in found.blockers
    )
    return listed and not begins_with_fence(found.snapshot)


def _to_put_back(found: Assessment, retention: RetentionDecision) -> Reference | None:
    """The hold to add again, of the incarnation that held the claim; None if none is needed.

    - A pod is bound on a fenced claim, or on one whose group has left the list. Without a hold, the
      scheduler may deallocate such a claim for an unschedulable pod (PostFilter). The recorded
      release does not matter: it was cleared when the pending pod was first seen.
    - The list has pods that claimctl listed ahead. Their entries can be taken out only beside a
      hold.
    """
    shares = may_share_by_group(found.snapshot) or begins_with_fence(found.snapshot)
    needed = (shares and bool(found.consumers.bound)) or bool(found.ahead)
    lost = needed and not found.own - found.groups
    return retention.recorded if lost and not hold_has_left(found.snapshot) else None


def lacks_tombstones(found: Assessment) -> bool:
    """Whether tombstones have to be written before the hold is released.

    KCM removes and adds a finished pod without a tombstone again and again. It does so faster than
    claimctl can list the pods, so each write of the release would conflict.
    """
    assert found.plan is not None
    planned = {each.uid for each in found.plan.reserved_for if is_tombstone(each)}
    planned -= {each.uid for each in found.snapshot.no_pods if is_tombstone(each)}
    finished = needing_tombstones(found.snapshot, found.consumers)
    moved = {pod.metadata.uid for pod in finished if _moved_by_kcm(found, pod)}
    return bool(planned & moved) and not found.fights


def _moved_by_kcm(found: Assessment, pod: Pod) -> bool:
    """Whether KCM changes the entry of a finished pod. It does not if the pod's group is gone."""
    if DIALECTS[found.snapshot.rules.dialect].groups and group_of(pod.spec):
        return found.listed(pod_reference(pod.metadata))
    return True


def _leaves_pods_alone(snapshot: Snapshot, left: tuple[Reference, ...]) -> bool:
    """Whether the hold leaves a list of pods while others may be bound that are not listed any
    more.

    KCM lists such a pod again. Until then, it would deallocate with the last listed pod.
    """
    if not schedulers_list_pods(snapshot) or not snapshot.no_pods or not all(map(is_pod, left)):
        return False
    consumers = snapshot.consumers()
    using = {**consumers.bound, **consumers.pending}
    unlisted = (pod for uid, pod in using.items() if uid not in snapshot.listed_uids)
    return any(closed_age(snapshot, pod) < inf for pod in unlisted)


def write_list(found: Assessment) -> Assessment:
    """Write the desired list if it differs from the present one.

    This never empties the list of an allocated claim: no component would deallocate that claim.
    """
    plan = found.plan
    assert plan is not None
    found = found.sooner(plan.look_again)
    if plan.confirm:
        return replace(found, needs=(ConfirmPods(plan.confirm),))
    if found.fights:
        # also if the list is in order now: nothing else tells that the fight is over
        return found.sooner(FIGHT_REST)
    if not plan.reserved_for or plan.reserved_for == found.snapshot.references:
        return found
    if (busy := scheduler_busy_left(found.snapshot, found.consumers)) > 0:
        return found.sooner(busy)
    if _leaves_pods_alone(found.snapshot, plan.reserved_for):
        live = found.snapshot.live(vanished=False)
        if live is None:
            asked = ListLivePods(found.claim.metadata.resource_version, vanished=False)
            return replace(found, needs=(asked,))
        if not Consumers.of(live.pods).bound.keys() <= found.snapshot.listed_uids:
            return found
    version, present = found.claim.metadata.resource_version, found.snapshot.references
    if found.snapshot.evidence.last_attempt or not only_tombstones(present, plan.reserved_for):
        present = ()
    return replace(found, write=WriteList(version, plan.reserved_for, present=present))
