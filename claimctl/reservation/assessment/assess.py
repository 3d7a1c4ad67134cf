"""Assess a claim: compute from a snapshot everything that a decision needs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace as replaced

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
from claimctl.reservation.facts.references import (
    is_pod_group,
    is_workload,
    same_name,
    uids_written_by,
)
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.reserved_for.consistency import consistent_list
from claimctl.reservation.users.blockers import blockers
from claimctl.reservation.users.withdrawal import hold_has_left
from claimctl.wire.claims import ResourceClaim


def assess(snapshot: Snapshot) -> Assessment:
    """Assess the claim; ``decide`` adds what to do."""
    consumers, claim = snapshot.consumers(), snapshot.claim
    if claim is None:
        absent = (
            RetentionDecision(held, Action.NONE, Reason.CLAIM_NOT_FOUND)
            for held in snapshot.reservations
        )
        return Assessment(snapshot, consumers, Phase.ABSENT, tuple(absent))
    # 1. Does each reservation hold the claim, release it, or ask for nothing?
    groups = own_groups(snapshot)
    retentions = tuple(
        decide_retention(snapshot, held, consumers, groups) for held in snapshot.reservations
    )
    if any(retention.action is Action.HOLD for retention in retentions):
        retentions = tuple(map(_stays, retentions))
    # 2. Which entries of the list are claimctl's, and why is the claim released, if it is?
    found = Assessment(
        snapshot,
        consumers,
        Phase.UNALLOCATED,
        retentions,
        own=_own(snapshot, claim, retentions) | groups,
        groups=groups,
        reason=_release_reason(retentions),
    )
    if not snapshot.allocated:
        return found
    # 3. What blocks its release, and which list should it have?
    found = replace(found, steps_aside=holds_step_aside(found))
    if found.reason is None:
        plan = consistent_list(snapshot, consumers, holds_while_held(found))
        return replace(found, plan=plan, phase=Phase.KEPT)
    to_group = hold_has_left(snapshot)
    if not to_group:
        found = replace(found, blockers=blockers(snapshot, found.reason, consumers, found.own))
    found = replace(found, plan=consistent_list(snapshot, consumers, holds_while_waiting(found)))
    if to_group:
        return replace(found, phase=Phase.LEFT_TO_GROUP)
    # 4. In which phase is it?
    if _is_left_to_kcm(found):
        return replace(found, phase=Phase.LEFT_TO_KCM)
    return replace(found, phase=Phase.BLOCKED if found.blockers else Phase.RELEASING)


def _stays(retention: RetentionDecision) -> RetentionDecision:
    """Hold instead of giving up unreachable devices: another reservation holds the claim."""
    if retention.reason is Reason.REALLOCATED:
        return replaced(retention, action=Action.HOLD, reason=Reason.HELD)
    return retention


def _own(
    snapshot: Snapshot, claim: ResourceClaim, retentions: Iterable[RetentionDecision]
) -> frozenset[str]:
    uids = set(uids_written_by(claim))
    created_for = claim.spec.reserved_for
    for retention in retentions:
        recorded = retention.held.reservation.status.reserved_for
        uids |= {reference.uid for reference in (retention.reference, recorded) if reference}
        if created_for and retention.reference and same_name(created_for, retention.reference):
            uids.add(created_for.uid)
    listed = (ref for ref in snapshot.no_pods if is_workload(ref) and not is_pod_group(ref))
    return frozenset(ref.uid for ref in listed if ref.uid in uids)


def _release_reason(retentions: tuple[RetentionDecision, ...]) -> Reason | None:
    """Why the claim is released; None if a reservation holds it or none releases it.

    If the devices are given up for waiting pods, that reason comes first.
    """
    if any(retention.action is Action.HOLD for retention in retentions):
        return None
    reasons = [each.reason for each in retentions if each.action is Action.RELEASE]
    given_up = (Reason.REALLOCATED, Reason.HOLD_YIELDED)
    return next(iter(sorted(reasons, key=lambda reason: reason not in given_up)), None)


def _is_left_to_kcm(found: Assessment) -> bool:
    """Whether to let kube-controller-manager (KCM) remove the pods of the list and deallocate.

    KCM deallocates when it removes the last entry, so the list must have only pods. These cases are
    excluded: KCM has not removed dead pods in time; or the list has only pending pods, and claimctl
    listed some of them, or the claim is being deleted. KCM does not remove pending pods.
    """
    references = found.snapshot.references
    if not references or found.snapshot.no_pods:
        return False
    if found.live_pod_entries():
        return found.lists_bound_pods or not (found.claim.metadata.deleting or found.ahead)
    return kcm_time_left(found) > 0


def kcm_time_left(found: Assessment) -> float:
    """Seconds that KCM still has to remove the dead pods of the list."""
    ages, limit = found.snapshot.memory.dead_age, found.snapshot.rules.dead_reference_seconds
    return limit - min(ages.get(reference.uid, 0.0) for reference in found.snapshot.references)
