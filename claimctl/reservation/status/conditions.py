"""The conditions of a ClaimReservation: Ready, Reserved, Consistent, Released.

Messages have no text that changes by time alone, so that a settled cluster has no writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from claimctl.reservation.assessment.assessment import Assessment, Phase
from claimctl.reservation.assessment.retention import Action, RetentionDecision
from claimctl.reservation.facts.dialects import DIALECTS
from claimctl.reservation.facts.membership import why_one_by_one
from claimctl.reservation.facts.pods import Consumers
from claimctl.reservation.facts.reasons import ConditionType, Reason
from claimctl.reservation.facts.references import LIMIT, NEAR_LIMIT
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.status.version_skew import disagreement
from claimctl.reservation.users.blockers import describe
from claimctl.reservation.users.ghosts import MOST
from claimctl.text import listed
from claimctl.wire.meta import Condition, find_condition
from claimctl.wire.placement import selects
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ForceDeletedPod

_ADVICE = {
    Reason.CLAIM_NOT_FOUND: "the ResourceClaim does not exist; create it or name a template",
    Reason.TEMPLATE_NOT_FOUND: "the ResourceClaimTemplate does not exist; create it",
    Reason.NOT_ALLOCATED: (
        "the claim is not allocated; the scheduler allocates it for the next pod that uses it"
    ),
    Reason.PENDING: "the reference is about to be written",
    Reason.WORKLOAD_NOT_FOUND: "the workload of workloadRef does not exist",
    Reason.WORKLOAD_ENDED: "the workload will create no more pods",
    Reason.WORKLOAD_KIND_UNSUPPORTED: "workloadRef must be a Deployment, StatefulSet or Job",
    Reason.CLAIM_NOT_NAMED_BY_POD_TEMPLATE: (
        "the workload's pod template does not name the claim by resourceClaimName"
    ),
    Reason.CLAIM_NOT_CREATED_FOR_WORKLOAD: (
        "the claim was created without spec.reservedFor, so its pods stay listed one by one; "
        "delete it and let claimctl create it: set spec.resourceClaimTemplateName"
    ),
    Reason.ALREADY_RESERVED_FOR: "the claim was created for another workload",
    Reason.WORKLOAD_RECREATED: (
        "the claim was created for an earlier incarnation of the workload; recreate it"
    ),
    Reason.HOLD_YIELDED: "the list is full and a pod waits, so the hold gave up its place",
    Reason.DEVICE_TAINTED: (
        "a taint of the device evicts its pods (NoExecute), so the claim is not held; the next pod "
        "gets another device"
    ),
    Reason.FROZEN: "a DowngradePlan asks to add no workload references",
    Reason.CLAIM_DELETED: "the claim is being deleted",
    Reason.FULL: f"all {LIMIT} places of status.reservedFor are taken",
    Reason.RELEASING: "the claim is being released",
    Reason.IDLE: "the workload wanted no pods for idleTimeoutSeconds",
    Reason.REALLOCATED: "no pod could use the devices where they are, so they were given up",
    Reason.WITHDRAWN: "the ClaimReservation was deleted",
    Reason.RELEASE_REQUESTED: "a user asked for the release",
    Reason.HELD: "the claim is held",
    Reason.CONSISTENT: "status.reservedFor is as it should be",
    Reason.FIGHTING_WRITER: "another client reverts the writes of claimctl; claimctl pauses",
    Reason.NEARLY_FULL: f"status.reservedFor has at most {LIMIT} entries",
}

_PROBLEMS = frozenset(
    {
        Reason.CLAIM_NOT_FOUND,
        Reason.TEMPLATE_NOT_FOUND,
        Reason.TEMPLATE_INVALID,
        Reason.WORKLOAD_NOT_FOUND,
        Reason.WORKLOAD_KIND_UNSUPPORTED,
        Reason.CLAIM_NOT_NAMED_BY_POD_TEMPLATE,
        Reason.CLAIM_NOT_CREATED_FOR_WORKLOAD,
        Reason.ALREADY_RESERVED_FOR,
        Reason.WORKLOAD_RECREATED,
        Reason.HOLD_YIELDED,
        Reason.DEVICE_TAINTED,
        Reason.FULL,
        Reason.UNREADABLE,
    }
)


@dataclass(frozen=True, slots=True)
class Finding:
    """A condition without its times and generation."""

    type: ConditionType
    holds: bool
    reason: str
    """A ``Reason``, or a reason that another version of claimctl wrote."""
    message: str = ""


def conditions(
    found: Assessment, retention: RetentionDecision, ghosts: tuple[ForceDeletedPod, ...]
) -> tuple[Condition, ...]:
    """All four conditions. A condition's time changes only when its status changes.

    Args:
        ghosts: the ghosts in the status.
    """
    reserved = _reserved(found, retention)
    consistent = _consistent(found, retention, ghosts)
    released = _released(found, retention)
    old = retention.held.reservation.status.conditions
    generation = retention.held.reservation.metadata.generation
    return tuple(
        _dated(finding, old, generation, found.snapshot.now.replace(microsecond=0))
        for finding in (_ready(reserved, consistent), reserved, consistent, released)
    )


def _dated(finding: Finding, old: Iterable[Condition], generation: int, now: datetime) -> Condition:
    status = "True" if finding.holds else "False"
    before = find_condition(old, finding.type)
    unchanged = before is not None and before.status == status
    return Condition(
        type=finding.type,
        status=status,
        reason=finding.reason if _WORD.fullmatch(finding.reason) else Reason.CANNOT_TELL,
        message=shortened(finding.message or f"{finding.type} is {status} ({finding.reason})"),
        observed_generation=generation,
        last_transition_time=before.last_transition_time if before and unchanged else now,
    )


LONGEST_MESSAGE = 1024
_WORD = re.compile("[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
"""What the API server accepts as a reason. Another version of claimctl may have written another."""


def shortened(message: str) -> str:
    """The message, cut to the length that the CRD's schema allows."""
    return message if len(message) <= LONGEST_MESSAGE else f"{message[: LONGEST_MESSAGE - 3]}..."


def _told(reason: str) -> str:
    """The reason as a sentence. Another version of claimctl may have written one unknown here."""
    known = Reason(reason) if reason in _REASONS else None
    return _ADVICE.get(known, "") if known is not None else ""


_REASONS = frozenset(map(str, Reason))


def _ready(reserved: Finding, consistent: Finding) -> Finding:
    if not reserved.holds and reserved.reason in _PROBLEMS:
        return Finding(ConditionType.READY, False, reserved.reason, reserved.message)
    if not consistent.holds:
        return Finding(ConditionType.READY, False, consistent.reason, consistent.message)
    return Finding(ConditionType.READY, True, Reason.READY, reserved.message)


def _reserved(found: Assessment, retention: RetentionDecision) -> Finding:
    reason = _why_not_reserved(found, retention)
    if reason is None:
        assert retention.reference is not None
        message = f"held for {describe(retention.reference)}"
        reason, advice = _sharing(found.snapshot, retention)
        return Finding(ConditionType.RESERVED, True, reason, message + advice)
    if reason is Reason.TEMPLATE_INVALID:
        return Finding(ConditionType.RESERVED, False, reason, found.snapshot.template_refused)
    if reason is Reason.UNREADABLE:
        return Finding(ConditionType.RESERVED, False, reason, retention.held.workload.problem)
    return Finding(ConditionType.RESERVED, False, reason, _told(reason))


def _sharing(snapshot: Snapshot, retention: RetentionDecision) -> tuple[Reason, str]:
    """The reason and an advice if the pods could share the claim by a PodGroup and do not."""
    found = None
    if DIALECTS[snapshot.rules.dialect].groups and retention.action is Action.HOLD:
        found = why_one_by_one(snapshot, retention.held)
    if found is None:
        return Reason.RESERVED, ""
    return found[0], f"; {found[1]}"


def _why_not_reserved(found: Assessment, retention: RetentionDecision) -> Reason | None:
    if found.snapshot.claim is None:
        return _why_no_claim(found.snapshot)
    if found.listed(retention.reference):
        return None
    if retention.action is Action.NONE or retention.reason is Reason.WORKLOAD_RECREATED:
        return retention.reason
    if found.claim.metadata.deleting:
        return Reason.CLAIM_DELETED
    if not found.snapshot.allocated:
        ended = retention.held.workload.ended
        return Reason.WORKLOAD_ENDED if ended else Reason.NOT_ALLOCATED
    return _why_not_listed(found, retention)


def _why_no_claim(snapshot: Snapshot) -> Reason:
    if snapshot.template_refused:
        return Reason.TEMPLATE_INVALID
    return Reason.TEMPLATE_NOT_FOUND if snapshot.template_missing else Reason.CLAIM_NOT_FOUND


def _why_not_listed(found: Assessment, retention: RetentionDecision) -> Reason:
    if found.steps_aside is not None:
        return found.steps_aside
    if retention.action is Action.RELEASE:
        return Reason.RELEASING
    if found.snapshot.frozen:
        return Reason.FROZEN
    return Reason.FULL if found.plan and found.plan.full else Reason.PENDING


def _consistent(
    found: Assessment, retention: RetentionDecision, ghosts: tuple[ForceDeletedPod, ...]
) -> Finding:
    snapshot = found.snapshot
    reason, message = _inconsistency(found)
    if reason is not None:
        return Finding(ConditionType.CONSISTENT, False, reason, message)
    if len(snapshot.references) >= NEAR_LIMIT:
        advice = f"{_ADVICE[Reason.NEARLY_FULL]}; {_ways_out(snapshot)}"
        return Finding(ConditionType.CONSISTENT, True, Reason.NEARLY_FULL, advice)
    if (report := disagreement(snapshot, found.consumers)) is not None:
        return Finding(ConditionType.CONSISTENT, True, *report)
    if wants_more_than_places(snapshot, retention):
        ref, wants = retention.held.reservation.spec.workload_ref, retention.held.workload.wants
        text = f"{ref.kind} {ref.name} wants {wants} pods, and {LIMIT - 1} can be listed"
        message = f"{text} beside the hold; {_ways_out(snapshot)}"
        return Finding(ConditionType.CONSISTENT, True, Reason.MORE_PODS_THAN_PLACES, message)
    if left_out := _left_out(found, ghosts):
        message = f"the status lists {MOST} {left_out}, which is its limit; all of them count"
        return Finding(ConditionType.CONSISTENT, True, Reason.STATUS_SHORTENED, message)
    text = _ADVICE[Reason.CONSISTENT]
    return Finding(ConditionType.CONSISTENT, True, Reason.CONSISTENT, text)


def _left_out(found: Assessment, ghosts: tuple[ForceDeletedPod, ...]) -> str:
    """Names of the lists in the status that are full, or ''.

    With ``MOST`` ghosts the list counts as full, because another controller may know of more.
    """
    full = {"nodes": len(found.consumers.nodes()) > MOST, "vanished pods": len(ghosts) >= MOST}
    return " and ".join(what for what, is_full in full.items() if is_full)


def _inconsistency(found: Assessment) -> tuple[Reason | None, str]:
    if stranded := _stranded(found.snapshot, found.consumers):
        return Reason.STRANDED_POD, stranded
    if found.fights and found.phase in (Phase.KEPT, Phase.BLOCKED):
        return Reason.FIGHTING_WRITER, _ADVICE[Reason.FIGHTING_WRITER]
    if found.plan and found.plan.unknown:
        names = listed(map(describe, found.plan.unknown))
        return Reason.UNKNOWN_REFERENCES, f"left as they are: {names}"
    if _pods_wait_for_a_place(found):
        text = f"{_ADVICE[Reason.FULL]} and pods wait for one; {_ways_out(found.snapshot)}"
        return Reason.FULL, text
    return None, ""


def _stranded(snapshot: Snapshot, consumers: Consumers) -> str:
    """A message about bound pods whose claim is not allocated, or allocated for another node."""
    bound = list(consumers.bound.values())
    if snapshot.claim is None or not bound:
        return ""
    allocation = snapshot.claim.status.allocation
    if allocation is None:
        return f"bound, but the claim is not allocated; only deleting them helps: {_names(bound)}"
    if allocation.node_selector is None:
        return ""
    nodes = {name: snapshot.nodes.get(name) for name in {pod.spec.node_name for pod in bound}}
    wrong = {n for n, node in nodes.items() if node and not selects(allocation.node_selector, node)}
    elsewhere = [pod for pod in bound if pod.spec.node_name in wrong]
    if not elsewhere:
        return ""
    text = "on a node for which the claim is not allocated; only deleting them helps"
    return f"{text}: {_names(elsewhere)}"


def _names(pods: Iterable[Pod]) -> str:
    return listed(sorted(pod.metadata.name for pod in pods))


def wants_more_than_places(snapshot: Snapshot, retention: RetentionDecision) -> bool:
    """Whether a workload with a hold wants more pods than the list has room for."""
    return (
        retention.action is Action.HOLD
        and not snapshot.shared
        and not snapshot.group_listed
        and retention.held.workload.wants > LIMIT - 1
        and not _in_a_group(snapshot, retention)
    )


def _in_a_group(snapshot: Snapshot, retention: RetentionDecision) -> bool:
    groups = DIALECTS[snapshot.rules.dialect].groups
    return groups and why_one_by_one(snapshot, retention.held) is None


def _ways_out(snapshot: Snapshot) -> str:
    """Advice: how any number of pods could share the claim."""
    if DIALECTS[snapshot.rules.dialect].groups:
        return "pods that name a PodGroup in spec.schedulingGroup share one place"
    return (
        "any number of pods share one place in dialect podgroup (Kubernetes 1.36 with the feature "
        "gates GenericWorkload and DRAWorkloadResourceClaims) and in native (KEP-5194)"
    )


def _pods_wait_for_a_place(found: Assessment) -> bool:
    listed = found.snapshot.listed_uids
    return len(listed) >= LIMIT and any(
        uid not in listed for uid in (*found.consumers.pending, *found.consumers.bound)
    )


def _releasing(found: Assessment, before: Condition | None) -> Finding:
    """The condition Released of a release that waits.

    Private blockers are reported only if there are no others. If another controller has reported
    progress beyond them, its message stays; else both controllers would overwrite each other.
    """
    public = [blocker for blocker in found.blockers if not blocker.private]
    if found.step is not None and not public and found.blockers and _is_further(before):
        assert before is not None
        return Finding(ConditionType.RELEASED, False, before.reason, before.message)
    shown = public or found.blockers
    reasons = "; ".join(blocker.message for blocker in shown[:_NAMED])
    reasons += f"; and {len(shown) - _NAMED} more" if len(shown) > _NAMED else ""
    return Finding(
        ConditionType.RELEASED,
        False,
        shown[0].reason if shown else Reason.RELEASING,
        f"to be released ({found.releasing}){': ' + reasons if reasons else ''}",
    )


_NAMED = 3
"""The most blockers that a message names."""


def _is_further(before: Condition | None) -> bool:
    """Whether the condition says that only steps of the release protocol are left."""
    return before is not None and before.reason in (Reason.RELEASING, Reason.SETTLING)


def _released(found: Assessment, retention: RetentionDecision) -> Finding:
    status, allocated = retention.held.reservation.status, found.snapshot.allocated
    if status.release is not None and not allocated:
        # another version of claimctl may have begun the release, for a reason unknown here
        text = f"released: {_told(status.release.reason) or status.release.reason}"
        return Finding(ConditionType.RELEASED, True, status.release.reason, text)
    before = find_condition(status.conditions, ConditionType.RELEASED)
    if before is not None and before.status == "True" and not allocated:
        return Finding(ConditionType.RELEASED, True, before.reason, before.message)
    if found.releasing is not None and retention.action is Action.RELEASE:
        return _releasing(found, before)
    reason = Reason.HELD if found.listed(retention.reference) else retention.reason
    text = retention.blocker.message if retention.blocker else _told(reason)
    return Finding(ConditionType.RELEASED, False, reason, text)
