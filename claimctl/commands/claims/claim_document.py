"""The document of ``claimctl explain CLAIM``.

A new field is filled in by ``explanation_of``, and printed by ``explain_text.claim_lines``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import field
from msgspec.structs import replace

from claimctl.cli.documents import (
    Document,
    Names,
    Part,
    ReasonText,
    ReasonToWait,
    by_names,
    says,
    utc,
)
from claimctl.commands.claims.advice import UNREADABLE, advice
from claimctl.commands.claims.claim_list import ClaimSummary, summary_of
from claimctl.commands.claims.controller_health import Trouble
from claimctl.commands.claims.election import ControllerState
from claimctl.commands.claims.explanation import Explanation, effect_of
from claimctl.commands.claims.ordinals import fate
from claimctl.commands.claims.release_waits import until
from claimctl.commands.claims.rule_answers import RuleExpression, deciding
from claimctl.reservation.assessment.retention import Action, RetentionDecision
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import is_pod_group
from claimctl.wire.claims import Reference
from claimctl.wire.reservations import WorkloadRef
from claimctl.wire.unreadable import Unreadable


class ConditionSummary(Part, frozen=True):
    type: str
    status: str
    reason: str
    message: str


class ReservationDecision(Part, frozen=True):
    name: str
    workload_ref: WorkloadRef
    retention_policy: str
    action: Annotated[Action, says("what the ClaimReservation asks for")]
    reason: str
    message: str
    after_seconds: float | None
    effect: Annotated[str, says("what it does with the claim now, in words")]
    ordinal: Annotated[int | None, says("of the workload, whose sticky claim it is")]
    member: Annotated[int | None, says("the pod's index in its group, where workloads have groups")]
    ordinal_fate: Annotated[str, says("whose sticky claim it is, and what becomes of it, in words")]
    phase: Annotated[str, says("whether the workload wants pods")]
    rule: Annotated[str, says("whose rule says whether the workload is idle or has ended")]
    expressions: tuple[RuleExpression, ...]
    conditions: tuple[ConditionSummary, ...]


class TimedBlocker(ReasonToWait, frozen=True):
    until: Annotated[
        str | None, says("when time will have ended it, by the controller's clock")
    ] = None


class ReleaseState(Part, frozen=True):
    watched_since: Annotated[
        str | None, says("when the controller began to lead, if it counts from then at the latest")
    ]
    under_way: Annotated[Reason | None, says("the reason of a release that has begun")]
    possible: bool
    blockers: tuple[TimedBlocker, ...]


class OrphanState(Part, frozen=True):
    cause: str = field(name="reason")
    message: str
    blockers: tuple[ReasonText, ...]


class UnreadableEntry(Part, frozen=True):
    object: Annotated[str, says("which object, in words")]
    kind: str
    namespace: str
    name: str
    message: str


class ControllerSigns(ControllerState, frozen=True):
    degraded: bool
    troubles: tuple[Trouble, ...]


class ListedWorkload(Part, frozen=True):
    resource: str
    name: str
    whose: Literal["claimctl's", "for its pods", "not claimctl's"]


class ClaimExplanation(Document, frozen=True, kw_only=True):
    """``claimctl explain CLAIM``. Of a claim that cannot be read there is ``unreadable`` alone."""

    claim: ClaimSummary | None = None
    listed_ahead: Annotated[
        Names, says("pending pods that claimctl listed before the scheduler")
    ] = ()
    listed_workloads: tuple[ListedWorkload, ...] = ()
    reservations: tuple[ReservationDecision, ...] = ()
    release: ReleaseState | None = None
    asked: Annotated[Names, says("workloads whose annotation asks for a hold")] = ()
    device_notes: Annotated[
        Names,
        says("what drivers report about its devices, what is missing of them, and what is wrong"),
    ] = ()
    uncreated: Annotated[
        Names, says("what workloads that hold it report about pods they cannot create")
    ] = ()
    orphan: OrphanState | None = None
    unreadable: tuple[UnreadableEntry, ...]
    left_alone: bool = True
    controller: ControllerSigns | None = None
    advice: Names


def explanation_of(explanation: Explanation, now: datetime) -> ClaimExplanation:
    orphan, election = explanation.orphan, explanation.election
    return ClaimExplanation(
        claim=summary_of(explanation.view, now),
        listed_ahead=explanation.view.listed_ahead,
        listed_workloads=tuple(
            ListedWorkload(resource=it.resource, name=it.name, whose=_whose(it, explanation))
            for it in explanation.view.workloads
        ),
        reservations=tuple(
            _decision(explanation, retention) for retention in explanation.assessment.retentions
        ),
        release=ReleaseState(
            watched_since=utc(explanation.watched_since),
            under_way=explanation.release,
            possible=explanation.releasable,
            blockers=tuple(
                replace(by_names(it, TimedBlocker), until=utc(until(explanation, it)))
                for it in explanation.obstacles
            ),
        ),
        asked=tuple(asker.line for asker in explanation.asking),
        device_notes=explanation.notes,
        uncreated=tuple(explanation.uncreated.values()),
        orphan=by_names(orphan, OrphanState) if orphan is not None else None,
        unreadable=tuple(map(_unreadable, explanation.unreadable)),
        left_alone=explanation.left_alone,
        controller=ControllerSigns(
            state=election.state,
            message=election.message,
            degraded=bool(explanation.troubles),
            troubles=explanation.troubles,
        )
        if election is not None
        else None,
        advice=tuple(advice(explanation)),
    )


def unreadable_of(claim: Unreadable) -> ClaimExplanation:
    """What is known about a claim that cannot be read."""
    return ClaimExplanation(unreadable=(_unreadable(claim),), advice=(UNREADABLE,))


def _unreadable(unread: Unreadable) -> UnreadableEntry:
    return UnreadableEntry(
        object=str(unread),
        kind=unread.resource.kind,
        namespace=unread.namespace,
        name=unread.name,
        message=unread.problem,
    )


def _whose(
    entry: Reference, explanation: Explanation
) -> Literal["claimctl's", "for its pods", "not claimctl's"]:
    if entry.uid in explanation.assessment.own:
        return "claimctl's"
    return "for its pods" if is_pod_group(entry) else "not claimctl's"


def _decision(explanation: Explanation, retention: RetentionDecision) -> ReservationDecision:
    reservation, workload = retention.held.reservation, retention.held.workload
    blocker, sticky = retention.blocker, reservation.spec.sticky
    return ReservationDecision(
        name=reservation.metadata.name,
        workload_ref=reservation.spec.workload_ref,
        retention_policy=reservation.spec.retention_policy,
        action=retention.action,
        reason=str(blocker.reason if blocker else retention.reason),
        message=blocker.message if blocker else "",
        after_seconds=blocker.after if blocker else None,
        effect=effect_of(explanation, retention),
        ordinal=sticky.ordinal if sticky is not None else None,
        member=sticky.member if sticky is not None else None,
        ordinal_fate=fate(retention.held),
        phase=workload.phase,
        rule=workload.rule.origin if workload.rule else "",
        expressions=deciding(workload),
        conditions=by_names(reservation.status.conditions, tuple[ConditionSummary, ...]),
    )
