"""Assess a claim: compute from a snapshot everything that a decision needs.

The answers depend on each other in one direction: what each reservation asks for, which entries
are claimctl's, what blocks a release, which list the claim should have, and from all of that the
claim's phase. Nothing here says what to do; ``decide`` does.
"""

from __future__ import annotations

from dataclasses import replace as replace_decision

from msgspec.structs import replace

from claimctl.reservation.assessment.assessment import Assessment, Phase
from claimctl.reservation.assessment.holds import (
    holds_step_aside,
    holds_while_held,
    holds_while_waiting,
)
from claimctl.reservation.assessment.retention import Action, RetentionDecision, decide_retention
from claimctl.reservation.facts.membership import own_groups
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import is_pod_group, is_workload
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.reserved_for.consistency import consistent_list
from claimctl.reservation.users.binding import removable
from claimctl.reservation.users.blockers import blockers
from claimctl.reservation.users.withdrawal import hold_has_left
from claimctl.wire.claims import CLAIM_FINALIZER


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
    groups = own_groups(snapshot) if snapshot.group_listed else frozenset()
    retentions = tuple(decide_retention(snapshot, held, groups) for held in snapshot.reservations)
    is_held = any(retention.action is Action.HOLD for retention in retentions)
    if is_held:
        # no devices are given up for waiting pods while another reservation holds the claim
        retentions = tuple(
            replace_decision(retention, action=Action.HOLD, reason=Reason.HELD)
            if retention.reason is Reason.REALLOCATED
            else retention
            for retention in retentions
        )
    # 2. Why is the claim released, if it is? Devices that are given up for waiting pods come first.
    reasons = [
        retention.reason
        for retention in retentions
        if retention.action is Action.RELEASE and not is_held
    ]
    given_up = (Reason.REALLOCATED, Reason.HOLD_YIELDED)
    reason = next(iter(sorted(reasons, key=lambda reason: reason not in given_up)), None)
    records = [held.reservation.status.release for held in snapshot.reservations]
    on_record = any(record and record.claim_uid == claim.metadata.uid for record in records)
    facts = Assessment(
        snapshot,
        Phase.UNALLOCATED,
        retentions,
        held=is_held,
        own=_own_entries(snapshot, retentions) | groups,
        groups=groups,
        reason=reason,
        on_record=on_record,
    )
    if not snapshot.allocated:
        has_finalizer = CLAIM_FINALIZER in claim.metadata.finalizers
        return replace(facts, finalizer_left=on_record and has_finalizer)
    # 3. What blocks its release, and which list should it have?
    facts = replace(facts, steps_aside=holds_step_aside(facts))
    if reason is None:
        plan = consistent_list(snapshot, holds_while_held(facts))
        return replace(facts, plan=plan, phase=Phase.KEPT)
    to_group = hold_has_left(snapshot)
    if not to_group:
        facts = replace(facts, blockers=tuple(blockers(snapshot, reason, facts.own)))
    facts = replace(facts, plan=consistent_list(snapshot, holds_while_waiting(facts)))
    # 4. In which phase is it?
    if to_group:
        return replace(facts, phase=Phase.LEFT_TO_GROUP)
    if _is_left_to_kcm(facts):
        return replace(facts, phase=Phase.LEFT_TO_KCM)
    phase = Phase.BLOCKED if facts.blockers else Phase.RELEASING
    return replace(facts, phase=phase, releasing=reason)


def _own_entries(snapshot: Snapshot, retentions: tuple[RetentionDecision, ...]) -> frozenset[str]:
    """UIDs of the listed workloads that claimctl wrote, or that a status records."""
    uids = set(snapshot.written_uids)
    created_for = snapshot.claim.spec.reserved_for if snapshot.claim is not None else None
    for retention in retentions:
        recorded = retention.held.reservation.status.reserved_for
        uids |= {reference.uid for reference in (retention.reference, recorded) if reference}
        if created_for and retention.reference and created_for.key == retention.reference.key:
            uids |= {created_for.uid}
    listed = (ref for ref in snapshot.no_pods if is_workload(ref) and not is_pod_group(ref))
    return frozenset(ref.uid for ref in listed if ref.uid in uids)


def _is_left_to_kcm(facts: Assessment) -> bool:
    """Whether to let kube-controller-manager (KCM) remove the pods of the list and deallocate.

    KCM deallocates when it removes the last entry, so the list must have only pods. These cases are
    excluded: KCM has not removed dead pods in time; or the list has only pending pods, and only
    claimctl removes some of them, or the claim is being deleted. KCM does not remove pending pods.
    """
    snapshot = facts.snapshot
    if not snapshot.references or snapshot.no_pods:
        return False
    if facts.live_pod_entries:
        ours = removable(snapshot, snapshot.consumers)
        return facts.lists_bound_pods or not (facts.claim.metadata.deleting or ours)
    return facts.kcm_time_left > 0
