"""The conditions of a ClaimReservation: Ready, Reserved, Consistent, Released.

Messages have no text that changes by time alone, so that a settled cluster has no writes.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from claimctl.reservation.assessment.assess import Assessment, Phase
from claimctl.reservation.assessment.retention import Action, RetentionDecision
from claimctl.reservation.facts.decision import Decision
from claimctl.reservation.facts.reasons import ConditionType, Reason
from claimctl.reservation.facts.references import LIMIT, NEAR_LIMIT, describe
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.status.sharing import disagreement, why_one_by_one
from claimctl.reservation.users.blockers import names_of
from claimctl.reservation.users.ghosts import MOST
from claimctl.text import listed
from claimctl.wire.claims import UNCHANGEABLE
from claimctl.wire.meta import Condition, find_condition, renewed
from claimctl.wire.placement import selects
from claimctl.wire.reservations import ClaimReservationSpec, ForceDeletedPod

_ADVICE = {
    Reason.CLAIM_NOT_FOUND: "ResourceClaim {claim} does not exist; create it or name a template",
    Reason.TEMPLATE_NOT_FOUND: "ResourceClaimTemplate {template} does not exist; create it",
    Reason.NOT_ALLOCATED: (
        "ResourceClaim {claim} is not allocated; the scheduler allocates it for the next pod that "
        "uses it"
    ),
    Reason.PENDING: "the reference is about to be written",
    Reason.WORKLOAD_NOT_FOUND: (
        "{workload} does not exist; create it, or delete the ClaimReservation"
    ),
    Reason.WORKLOAD_ENDED: "{workload} will create no more pods",
    Reason.ORDINAL_ENDED: (
        "no new pod of {workload} will use ResourceClaim {claim}: its ordinal has ended, or the "
        "pod template asks for another claim"
    ),
    Reason.STICKY_NAME_TAKEN: (
        "ResourceClaim {claim} was there before, and claimctl did not make it; delete it, and "
        "claimctl makes one from ResourceClaimTemplate {template}"
    ),
    Reason.WORKLOAD_KIND_UNSUPPORTED: "claimctl does not know the kind of {workload}",
    Reason.CLAIM_NOT_NAMED_BY_POD_TEMPLATE: (
        "the pod template of {workload} does not name ResourceClaim {claim} by resourceClaimName"
    ),
    Reason.CLAIM_NOT_NAMED_BY_POD: "no pod of {workload} has named ResourceClaim {claim} yet",
    Reason.CLAIM_NOT_CREATED_FOR_WORKLOAD: (
        "ResourceClaim {claim} was created without spec.reservedFor, so its pods stay listed one "
        "by one; delete it and let claimctl create it: set spec.resourceClaimTemplateName"
    ),
    Reason.ALREADY_RESERVED_FOR: "ResourceClaim {claim} was created for another workload",
    Reason.WORKLOAD_RECREATED: (
        "ResourceClaim {claim} was created for an earlier incarnation of {workload}; recreate it"
    ),
    Reason.UNCHANGEABLE: f"ResourceClaim {{claim}} cannot be held: {UNCHANGEABLE}",
    Reason.HOLD_YIELDED: "the list is full and a pod waits, so the hold gave up its place",
    Reason.HELD_BETWEEN_PODS: (
        "its device is for one pod at a time, so the hold stands in the list only while the last "
        "pod leaves"
    ),
    Reason.DRIVER_REFUSES_HOLD: (
        "a pod did not start beside the hold, so the hold stands in the list only while the last "
        "pod leaves"
    ),
    Reason.FROZEN: (
        "not held: frozen for a downgrade or an upgrade, so do not scale {workload} to 0 now; "
        "`claimctl downgrade status` says the next step"
    ),
    Reason.CLAIM_DELETED: "ResourceClaim {claim} is being deleted",
    Reason.FULL: f"all {LIMIT} places of status.reservedFor are taken",
    Reason.RELEASING: "ResourceClaim {claim} is being released",
    Reason.IDLE: "{workload} wanted no pods for idleTimeoutSeconds",
    Reason.REALLOCATED: "no pod could use the devices where they are, so they were given up",
    Reason.UNUSED_TOO_LONG: "no pod has used the claim for as long as this cluster allows",
    Reason.WITHDRAWN: "the ClaimReservation was deleted",
    Reason.RELEASE_REQUESTED: "a user asked for the release",
    Reason.HELD: "the claim is held",
    Reason.CONSISTENT: "status.reservedFor is as it should be",
    Reason.FIGHTING_WRITER: "another client reverts the writes of claimctl; claimctl pauses",
    Reason.NEARLY_FULL: f"status.reservedFor has at most {LIMIT} entries",
}

PROBLEMS = frozenset(
    {
        Reason.CLAIM_NOT_FOUND,
        Reason.TEMPLATE_NOT_FOUND,
        Reason.TEMPLATE_INVALID,
        Reason.WORKLOAD_NOT_FOUND,
        Reason.WORKLOAD_KIND_UNSUPPORTED,
        Reason.WORKLOAD_STATE_UNKNOWN,
        Reason.CLAIM_NOT_NAMED_BY_POD_TEMPLATE,
        Reason.CLAIM_NOT_CREATED_FOR_WORKLOAD,
        Reason.ALREADY_RESERVED_FOR,
        Reason.STICKY_NAME_TAKEN,
        Reason.WORKLOAD_RECREATED,
        Reason.UNCHANGEABLE,
        Reason.HOLD_YIELDED,
        Reason.DEVICE_TAINTED,
        Reason.DEVICE_GONE,
        Reason.FULL,
        Reason.FROZEN,
        Reason.UNREADABLE,
    }
)
"""The reasons of Reserved=False that make Ready false, too."""

LONGEST_MESSAGE = 1024
_NAMED = 3
"""The most blockers that a message names."""
_WORD = re.compile("[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
"""What the API server accepts as a reason. Another version of claimctl may have written another."""
_REASONS = frozenset(map(str, Reason))
_UNDER_WAY = (Reason.RELEASING, Reason.SETTLING)
"""The reasons of Released=False while nothing blocks the release."""


def conditions(
    facts: Assessment,
    decision: Decision,
    retention: RetentionDecision,
    ghosts: tuple[ForceDeletedPod, ...],
) -> tuple[Condition, ...]:
    """All four conditions. A condition's time changes only when its status changes.

    Args:
        ghosts: the ghosts in the status.
    """
    reserved = _reserved_state(facts, retention)
    consistent = _consistent_state(facts, retention, ghosts)
    released = _released_state(facts, decision, retention)
    # Ready is a summary of the others
    ready = _condition(ConditionType.READY, True, Reason.READY, reserved.message)
    blocker = retention.blocker
    if blocker is not None and blocker.reason is Reason.WORKLOAD_STATE_UNKNOWN:
        ready = _condition(ConditionType.READY, False, blocker.reason, blocker.message)
    elif reserved.status == "False" and reserved.reason in PROBLEMS:
        ready = _condition(ConditionType.READY, False, reserved.reason, reserved.message)
    elif consistent.status == "False":
        ready = _condition(ConditionType.READY, False, consistent.reason, consistent.message)
    reservation, made = retention.held.reservation, []
    for state in (ready, reserved, consistent, released):
        condition = replace(
            state,
            reason=state.reason if _WORD.fullmatch(state.reason) else Reason.CANNOT_TELL,
            message=shorten(state.message or f"{state.type} is {state.status} ({state.reason})"),
            observed_generation=reservation.metadata.generation,
        )
        made.append(renewed(condition, reservation.status.conditions, facts.snapshot.now))
    return tuple(made)


def _condition(type_: ConditionType, holds: bool, reason: str, message: str = "") -> Condition:
    """A condition without its time. Another version of claimctl may have written the reason."""
    status = "True" if holds else "False"
    return Condition(type=type_, status=status, reason=reason, message=message)


def shorten(message: str) -> str:
    """The message, cut to the length that the CRD's schema allows."""
    return message if len(message) <= LONGEST_MESSAGE else f"{message[: LONGEST_MESSAGE - 3]}..."


def _sentence(reason: str, spec: ClaimReservationSpec) -> str:
    """The reason as a sentence that names the objects of the reservation; '' for a reason that
    another version of claimctl has written."""
    if reason not in _REASONS:
        return ""
    return _ADVICE.get(Reason(reason), "").format(
        claim=spec.resource_claim_name,
        template=spec.resource_claim_template_name,
        workload=f"{spec.workload_ref.kind} {spec.workload_ref.name}",
    )


def _reserved_state(facts: Assessment, retention: RetentionDecision) -> Condition:
    snapshot = facts.snapshot
    reason = _why_not_reserved(facts, retention)
    if reason is None:
        assert retention.reference is not None
        reason, message = Reason.RESERVED, f"held for {describe(retention.reference)}"
        # in this dialect, the pods could share the claim by a PodGroup
        may_share = snapshot.dialect.groups and retention.action is Action.HOLD
        if snapshot.late is not None:
            reason, message = snapshot.late, f"{message}; {_ADVICE[snapshot.late]}"
        elif may_share and (why := why_one_by_one(snapshot, retention.held)) is not None:
            reason, message = why[0], f"{message}; {why[1]}"
        if snapshot.loss is not None and not snapshot.loss.after:
            message = f"{message}; {snapshot.loss.message}"
        if retention.held.above:
            message = f"{message}; {retention.held.above}"
        return _condition(ConditionType.RESERVED, True, reason, message)
    message = _sentence(reason, retention.held.reservation.spec)
    if reason is Reason.TEMPLATE_INVALID:
        message = snapshot.template_refused
    elif reason in (Reason.UNREADABLE, Reason.WORKLOAD_STATE_UNKNOWN):
        message = retention.held.workload.problem
    elif reason is Reason.OTHER_HOLDERS:
        message = _kept_for_others(facts, retention)
    elif snapshot.loss is not None and reason is snapshot.loss.reason:
        message = f"the claim is not held beside its pods: {snapshot.loss.message}"
    return _condition(ConditionType.RESERVED, False, reason, message)


def _why_not_reserved(facts: Assessment, retention: RetentionDecision) -> Reason | None:
    snapshot = facts.snapshot
    if snapshot.claim is None:
        if retention.held.reservation.metadata.deleting:
            return Reason.WITHDRAWN
        missing = snapshot.template_missing
        reason = Reason.TEMPLATE_NOT_FOUND if missing else Reason.CLAIM_NOT_FOUND
        return Reason.TEMPLATE_INVALID if snapshot.template_refused else reason
    if facts.is_held_for(retention):
        return None
    if retention.action is Action.NONE or retention.reason is Reason.WORKLOAD_RECREATED:
        return retention.reason
    if snapshot.claim.metadata.deleting:
        return Reason.CLAIM_DELETED
    if snapshot.memory.unchangeable_left > 0:
        return Reason.UNCHANGEABLE
    if not snapshot.allocated:
        ended = retention.held.workload.ended
        return Reason.WORKLOAD_ENDED if ended else Reason.NOT_ALLOCATED
    return _why_not_listed(facts, retention)


def _why_not_listed(facts: Assessment, retention: RetentionDecision) -> Reason:
    """Why the list of an allocated claim has no hold of the reservation."""
    if facts.is_kept_for_others(retention):
        return Reason.OTHER_HOLDERS
    if facts.steps_aside is not None:
        return facts.steps_aside
    if retention.action is Action.RELEASE:
        return Reason.RELEASING
    if facts.snapshot.frozen:
        return Reason.FROZEN
    return Reason.FULL if facts.plan and facts.plan.full else Reason.PENDING


def _consistent_state(
    facts: Assessment, retention: RetentionDecision, ghosts: tuple[ForceDeletedPod, ...]
) -> Condition:
    snapshot = facts.snapshot
    reason, message = _inconsistency(facts)
    if reason is not None:
        return _condition(ConditionType.CONSISTENT, False, reason, message)
    reason, message = Reason.CONSISTENT, _ADVICE[Reason.CONSISTENT]
    # with ``MOST`` ghosts the list counts as full, because another controller may know of more
    nodes = len(snapshot.consumers.nodes()) > MOST
    full = {"nodes": nodes, "vanished pods": len(ghosts) >= MOST}
    if len(snapshot.references) >= NEAR_LIMIT:
        reason = Reason.NEARLY_FULL
        message = f"{_ADVICE[reason]}; {_ways_out(snapshot)}"
    elif snapshot.dialect.groups and (skew := disagreement(snapshot)) is not None:
        reason, message = skew
    elif wants_more_than_places(snapshot, retention):
        reason = Reason.MORE_PODS_THAN_PLACES
        ref, wants = retention.held.reservation.spec.workload_ref, retention.held.workload.wants
        text = f"{ref.kind} {ref.name} wants {wants} pods, and {LIMIT - 1} can be listed"
        message = f"{text} beside the hold; {_ways_out(snapshot)}"
    elif any(full.values()):
        reason = Reason.STATUS_SHORTENED
        left_out = " and ".join(what for what, is_full in full.items() if is_full)
        message = f"the status lists {MOST} {left_out}, which is its limit; all of them count"
    return _condition(ConditionType.CONSISTENT, True, reason, message)


def _inconsistency(facts: Assessment) -> tuple[Reason | None, str]:
    snapshot, listed_uids = facts.snapshot, facts.snapshot.listed_uids
    if stranded := _describe_stranded(snapshot):
        return Reason.STRANDED_POD, stranded
    if snapshot.fights and facts.phase in (Phase.KEPT, Phase.BLOCKED):
        return Reason.FIGHTING_WRITER, _ADVICE[Reason.FIGHTING_WRITER]
    if facts.plan and facts.plan.unknown:
        names = listed(map(describe, facts.plan.unknown))
        return Reason.UNKNOWN_REFERENCES, f"left as they are: {names}"
    if len(listed_uids) >= LIMIT and not snapshot.consumers.alive.keys() <= listed_uids:
        text = f"{_ADVICE[Reason.FULL]} and pods wait for one; {_ways_out(snapshot)}"
        return Reason.FULL, text
    return None, ""


def _describe_stranded(snapshot: Snapshot) -> str:
    """A message about bound pods whose claim is not allocated, or allocated for another node."""
    bound = list(snapshot.consumers.bound.values())
    if snapshot.claim is None or not bound:
        return ""
    allocation = snapshot.claim.status.allocation
    if allocation is None:
        return f"bound, but the claim is not allocated; only deleting them helps: {names_of(bound)}"
    if allocation.node_selector is None:
        return ""
    nodes = {name: snapshot.nodes.get(name) for name in snapshot.consumers.nodes()}
    wrong = {n for n, node in nodes.items() if node and not selects(allocation.node_selector, node)}
    elsewhere = [pod for pod in bound if pod.spec.node_name in wrong]
    if not elsewhere:
        return ""
    text = "on a node for which the claim is not allocated; only deleting them helps"
    return f"{text}: {names_of(elsewhere)}"


def wants_more_than_places(snapshot: Snapshot, retention: RetentionDecision) -> bool:
    """Whether a workload with a hold wants more pods than the list has room for."""
    if retention.action is not Action.HOLD or retention.held.workload.wants < LIMIT:
        return False
    if snapshot.shared or snapshot.group_listed:
        return False
    return not snapshot.dialect.groups or why_one_by_one(snapshot, retention.held) is not None


def _ways_out(snapshot: Snapshot) -> str:
    """Advice: how any number of pods could share the claim."""
    if snapshot.dialect.groups:
        return "pods that name a PodGroup in spec.schedulingGroup share one place"
    return (
        "any number of pods share one place in mode podgroup (Kubernetes 1.36 with the feature "
        "gates GenericWorkload and DRAWorkloadResourceClaims) and in native (KEP-5194)"
    )


def _released_state(
    facts: Assessment, decision: Decision, retention: RetentionDecision
) -> Condition:
    reservation, allocated = retention.held.reservation, facts.snapshot.allocated
    status, spec = reservation.status, reservation.spec
    if status.release is not None and not allocated:
        # another version of claimctl may have begun the release, for a reason unknown here
        text = f"released: {_sentence(status.release.reason, spec) or status.release.reason}"
        return _condition(ConditionType.RELEASED, True, status.release.reason, text)
    before = find_condition(status.conditions, ConditionType.RELEASED)
    if before is not None and before.status == "True" and not allocated:
        return _condition(ConditionType.RELEASED, True, before.reason, before.message)
    if facts.releasing is not None and retention.action is Action.RELEASE:
        return _releasing_state(decision, before)
    if facts.is_kept_for_others(retention):
        text = _kept_for_others(facts, retention)
        return _condition(ConditionType.RELEASED, False, Reason.OTHER_HOLDERS, text)
    reason = Reason.HELD if facts.is_held_for(retention) else retention.reason
    if retention.blocker is not None and retention.blocker.reason is Reason.PODS_PINNED:
        reason = Reason.PODS_PINNED  # the one hold that somebody has to hear of
    text = retention.blocker.message if retention.blocker else _sentence(reason, spec)
    return _condition(ConditionType.RELEASED, False, reason, text)


def _kept_for_others(facts: Assessment, retention: RetentionDecision) -> str:
    """Why the hold of the reservation is over, and for which workloads the claim stays."""
    holding = (other for other in facts.retentions if other.action is Action.HOLD)
    refs = (other.held.reservation.spec.workload_ref for other in holding)
    names = listed(sorted(f"{ref.kind} {ref.name}" for ref in refs))
    spec, blocker = retention.held.reservation.spec, retention.blocker
    why = _sentence(retention.reason, spec) or str(retention.reason)
    text = f"this hold is over: {why}; ResourceClaim {spec.resource_claim_name} stays for {names}"
    return text if blocker is None else f"{text}; {blocker.message}"


def _releasing_state(decision: Decision, before: Condition | None) -> Condition:
    """The condition Released of a release that waits.

    What blocks only this controller (``Blocker.private``) is reported if nothing else does. It does
    not replace the message of another controller that is further: two controllers must not
    overwrite each other.
    """
    public = [blocker for blocker in decision.blockers if not blocker.private]
    blocked_alone = bool(decision.blockers) and not public and decision.step is not None
    if blocked_alone and before is not None and before.reason in _UNDER_WAY:
        return _condition(ConditionType.RELEASED, False, before.reason, before.message)
    shown = public or decision.blockers
    reasons = "; ".join(blocker.message for blocker in shown[:_NAMED])
    reasons += f"; and {len(shown) - _NAMED} more" if len(shown) > _NAMED else ""
    return _condition(
        ConditionType.RELEASED,
        False,
        shown[0].reason if shown else Reason.RELEASING,
        f"to be released ({decision.releasing}){': ' + reasons if reasons else ''}",
    )
