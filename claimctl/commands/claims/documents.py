"""The documents of ``claimctl get``, ``explain`` and ``release``."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal, TypeVar

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
from claimctl.commands.claims.advice import UNREADABLE, advice, workload_advice
from claimctl.commands.claims.claim_view import ClaimView
from claimctl.commands.claims.controller_health import State, Trouble
from claimctl.commands.claims.explain_text import until
from claimctl.commands.claims.explanation import Explanation
from claimctl.commands.claims.pod_explanation import WorkloadFindings
from claimctl.commands.claims.pod_view import PodFindings, RivalClaim
from claimctl.commands.claims.rule_answers import RuleExpression, deciding
from claimctl.reservation.assessment.retention import Action, RetentionDecision
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import LIMIT
from claimctl.wire.claims import Reference
from claimctl.wire.reservations import WorkloadRef
from claimctl.wire.unreadable import Unreadable


class ListCounts(Part, frozen=True):
    """How many entries the claim's list (status.reservedFor) has, by kind."""

    pods: int
    finished_pods: int
    pods_listed_ahead: int
    workloads: tuple[Reference, ...]
    limit: int


class ConsumerCounts(Part, frozen=True):
    """How many pods use the claim, listed or not."""

    bound: int
    pending: int


class IdleDevices(Part, frozen=True):
    """Devices that a workload holds while no pod uses them."""

    since: str | None
    until: Annotated[str, says("a time, or what has to happen before")]
    waiting_pods: Annotated[
        Names | None,
        says("namespace/name of pods that wait for devices of the same classes; only with --idle"),
    ]


class ClaimSummary(Part, frozen=True):
    namespace: str
    name: str
    uid: str
    state: Literal["Pending", "Held", "InUse", "Allocated", "Releasing", "Deleting"]
    devices: Annotated[Names, says("pool/device")]
    nodes: Names
    references: ListCounts
    consumers: ConsumerCounts
    reservations: Annotated[Names, says("names of ClaimReservations")]
    retention_policies: Names
    release_asked: Annotated[bool, says("whether a release is asked for, and waits")]
    frozen_for: Annotated[
        Literal["downgrade", "upgrade"] | None,
        says("why no workload holds it now: when its last pod ends, its devices are lost"),
    ]
    idle: IdleDevices | None
    creation_timestamp: str | None
    age_seconds: int | None


def summary_of(view: ClaimView, now: datetime) -> ClaimSummary:
    consumers = view.consumers
    created = view.claim.metadata.creation_timestamp
    return ClaimSummary(
        namespace=view.namespace,
        name=view.name,
        uid=view.claim.metadata.uid,
        state=view.state,  # type: ignore[arg-type]  # one of the six words
        devices=view.devices,
        nodes=view.nodes,
        references=ListCounts(
            pods=len(view.listed_pods),
            finished_pods=len(view.tombstones),
            pods_listed_ahead=len(view.listed_ahead),
            workloads=view.workloads,
            limit=LIMIT,
        ),
        consumers=ConsumerCounts(bound=len(consumers.bound), pending=len(consumers.pending)),
        reservations=tuple(reservation.metadata.name for reservation in view.reservations),
        retention_policies=tuple(
            reservation.spec.retention_policy for reservation in view.reservations
        ),
        release_asked=view.release_asked,
        frozen_for=view.frozen_for or None,  # type: ignore[arg-type]  # one of the two words
        idle=IdleDevices(since=utc(view.idle_since), until=end_of(view), waiting_pods=view.waiting)
        if view.is_idle
        else None,
        creation_timestamp=utc(created),
        age_seconds=int((now - created).total_seconds()) if created else None,
    )


def end_of(view: ClaimView) -> str:
    """Until when the devices of an idle claim are held: a time, or what has to happen before."""
    end = view.held_until()
    return end if isinstance(end, str) else f"{utc(end)}"


class ClaimList(Document, frozen=True):
    """``claimctl get``"""

    items: tuple[ClaimSummary, ...]


def list_of(shown: Iterable[ClaimView], now: datetime) -> ClaimList:
    return ClaimList(items=tuple(summary_of(view, now) for view in shown))


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
    rule: Annotated[str, says("whose rule says whether the workload is idle or has ended")]
    expressions: tuple[RuleExpression, ...]
    conditions: tuple[ConditionSummary, ...]


class TimedBlocker(ReasonToWait, frozen=True):
    until: Annotated[
        str | None, says("when time will have ended it, by the controller's clock")
    ] = None


class ReleaseState(Part, frozen=True):
    under_way: Annotated[Reason | None, says("the reason of a release that has begun")]
    possible: bool
    blockers: tuple[TimedBlocker, ...]


class OrphanState(Part, frozen=True):
    cause: str = field(name="reason")
    message: str
    blockers: tuple[ReasonText, ...]


class UnreadableEntry(Part, frozen=True):
    kind: str
    namespace: str
    name: str
    message: str


class ControllerSigns(Part, frozen=True):
    state: State
    message: str
    degraded: bool
    troubles: tuple[Trouble, ...]


class ClaimExplanation(Document, frozen=True, kw_only=True):
    """``claimctl explain CLAIM``. Of a claim that cannot be read there is ``unreadable`` alone."""

    claim: ClaimSummary | None = None
    reservations: tuple[ReservationDecision, ...] = ()
    release: ReleaseState | None = None
    asked: Annotated[Names, says("workloads whose annotation asks for a hold")] = ()
    device_notes: Annotated[
        Names,
        says("what drivers report about its devices, their taints, and what is missing of them"),
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
        reservations=tuple(map(_decision, explanation.assessment.retentions)),
        release=ReleaseState(
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
        kind=unread.resource.kind,
        namespace=unread.namespace,
        name=unread.name,
        message=unread.problem,
    )


def _decision(retention: RetentionDecision) -> ReservationDecision:
    reservation, workload = retention.held.reservation, retention.held.workload
    blocker = retention.blocker
    return ReservationDecision(
        name=reservation.metadata.name,
        workload_ref=reservation.spec.workload_ref,
        retention_policy=reservation.spec.retention_policy,
        action=retention.action,
        reason=str(blocker.reason if blocker else retention.reason),
        message=blocker.message if blocker else "",
        after_seconds=blocker.after if blocker else None,
        rule=workload.rule.origin if workload.rule else "",
        expressions=deciding(workload),
        conditions=by_names(reservation.status.conditions, tuple[ConditionSummary, ...]),
    )


class ReleaseRequest(Document, frozen=True, kw_only=True):
    """``claimctl release``"""

    dry_run: bool
    cancelled: Annotated[bool, says("whether the request was withdrawn")] = False
    namespace: str
    name: str
    uid: str
    reservations: Annotated[Names, says("names of the ClaimReservations that are asked")]
    blockers: Annotated[tuple[ReasonToWait, ...], says("what the release waits for")]
    troubles: Annotated[tuple[Trouble, ...], says("why no controller acts on it now")]


def request_of(
    explanation: Explanation, *, dry_run: bool, cancelled: bool = False
) -> ReleaseRequest:
    view = explanation.view
    return ReleaseRequest(
        dry_run=dry_run,
        cancelled=cancelled,
        namespace=view.namespace,
        name=view.name,
        uid=view.claim.metadata.uid,
        reservations=tuple(reservation.metadata.name for reservation in view.reservations),
        blockers=by_names(explanation.obstacles, tuple[ReasonToWait, ...]),
        troubles=explanation.troubles,
    )


class ReasonExplanation(Document, frozen=True, kw_only=False):
    """``claimctl explain reason/NAME``"""

    reason: str
    topic: str
    meaning: str
    remedy: str


class UsedClaim(Part, frozen=True):
    entry: Annotated[str, says("the name in the pod's spec.resourceClaims")]
    name: Annotated[str | None, says("null while a generated claim is not made")]
    state: str | None
    devices: Names
    problem: str | None


class ExplainedPod(Part, frozen=True):
    namespace: str
    name: str
    workload: Annotated[str | None, says("kind/name")]
    state: Literal["Waiting", "Starting", "Running", "Ending", "Succeeded", "Failed"]
    node: str | None
    reasons: tuple[ReasonText, ...]
    claims: tuple[UsedClaim, ...]
    rivals: tuple[RivalClaim, ...]
    advice: Names


class PodExplanation(ExplainedPod, Document, frozen=True):
    """``claimctl explain pod/NAME``"""


P = TypeVar("P", bound=ExplainedPod)


def pod_of(pod: PodFindings, model: type[P]) -> P:
    meta = pod.pod.metadata
    return model(
        namespace=meta.namespace,
        name=meta.name,
        workload=pod.owners[-1] if pod.owners else None,
        state=pod.state,  # type: ignore[arg-type]  # one of the six words
        node=pod.pod.spec.node_name or None,
        reasons=tuple(ReasonText(reason=word, message=text) for word, text in pod.reasons()),
        claims=tuple(
            UsedClaim(
                entry=use.entry,
                name=use.claim or None,
                state=use.explanation.view.state if use.explanation else None,
                devices=use.explanation.view.devices if use.explanation else (),
                problem=use.problem or None,
            )
            for use in pod.uses
        ),
        rivals=pod.rivals,
        advice=pod.advice(),
    )


class ShortClaim(Part, frozen=True):
    name: str
    state: str
    devices: Names


class WorkloadExplanation(Document, frozen=True):
    """``claimctl explain deployment/NAME``, and of other workloads"""

    namespace: str
    workload_ref: WorkloadRef
    phase: str
    expressions: tuple[RuleExpression, ...]
    wants: int
    pods: ConsumerCounts
    annotation: Annotated[str | None, says("the value of claimctl.io/reserve")]
    above: Annotated[str, says("what an object above the workload has to do with the annotation")]
    problems: tuple[ReasonText, ...]
    reservations: Names
    claims: tuple[ShortClaim, ...]
    missing_claims: Names
    waiting: tuple[ExplainedPod, ...]
    advice: Names


def workload_of(workload: WorkloadFindings) -> WorkloadExplanation:
    consumers = workload.consumers
    return WorkloadExplanation(
        namespace=workload.namespace,
        workload_ref=workload.ref,
        phase=workload.state.phase,
        expressions=deciding(workload.state),
        wants=workload.state.wants,
        pods=ConsumerCounts(bound=len(consumers.bound), pending=len(consumers.pending)),
        annotation=workload.annotation,
        above=workload.above,
        problems=tuple(
            ReasonText(reason=problem.reason, message=problem.note) for problem in workload.problems
        ),
        reservations=tuple(reservation.metadata.name for reservation in workload.reservations),
        claims=tuple(by_names(claim.view, ShortClaim) for claim in workload.claims),
        missing_claims=workload.missing,
        waiting=tuple(pod_of(pod, ExplainedPod) for pod in workload.waiting),
        advice=tuple(workload_advice(workload)),
    )
