"""The documents of ``claimctl explain pod/NAME``, and of ``explain`` of a workload."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from claimctl.cli.documents import Document, Names, Part, ReasonText, says, utc
from claimctl.commands.claims.advice import workload_advice
from claimctl.commands.claims.documents import ConsumerCounts
from claimctl.commands.claims.explanation import Explanation, effect_of
from claimctl.commands.claims.pod_advice import next_steps
from claimctl.commands.claims.pod_explanation import WorkloadFindings
from claimctl.commands.claims.pod_view import ClaimUse, PodFindings, RivalClaim
from claimctl.commands.claims.release_waits import waits_for
from claimctl.commands.claims.rule_answers import RuleExpression, deciding
from claimctl.wire.reservations import WorkloadRef


class ShortClaim(Part, frozen=True):
    name: str
    state: str
    devices: Names
    holders: Annotated[str, says("the workloads that its list has, and how many pods")]
    entries: Annotated[int, says("how many entries its list has")]
    notes: Annotated[Names, says("what keeps pods from it, and what is not known of that")]


def short_of(explanation: Explanation) -> ShortClaim:
    view = explanation.view
    return ShortClaim(
        name=view.name,
        state=view.state,
        devices=view.devices,
        holders=view.holders,
        entries=len(view.claim.status.reserved_for),
        notes=(
            *(f"its release waits: {text}" for text in waits_for(explanation)),
            *map(str, explanation.matters),
            *explanation.unknown,
            *explanation.uncreated.values(),
        ),
    )


class UsedClaim(Part, frozen=True):
    entry: Annotated[str, says("the name in the pod's spec.resourceClaims")]
    name: Annotated[str | None, says("null while a generated claim is not made")]
    state: str | None
    devices: Names
    holders: str
    entries: int
    problem: str | None


class ExplainedPod(Part, frozen=True):
    namespace: str
    name: str
    workload: Annotated[str | None, says("kind/name")]
    owners: Annotated[Names, says("kind/name, the nearest first; the last one is its workload")]
    state: Literal["Waiting", "Starting", "Running", "Ending", "Succeeded", "Failed"]
    since: Annotated[str | None, says("since when it waits, if it does")]
    node: str | None
    reasons: tuple[ReasonText, ...]
    claims: tuple[UsedClaim, ...]
    rivals: tuple[RivalClaim, ...]
    advice: Names


class PodExplanation(ExplainedPod, Document, frozen=True):
    """``claimctl explain pod/NAME``"""


def _used(use: ClaimUse) -> UsedClaim:
    known = short_of(use.explanation) if use.explanation else None
    return UsedClaim(
        entry=use.entry,
        name=use.claim or None,
        state=known.state if known else None,
        devices=known.devices if known else (),
        holders=known.holders if known else "",
        entries=known.entries if known else 0,
        problem=use.problem or None,
    )


P = TypeVar("P", bound=ExplainedPod)


def pod_of(pod: PodFindings, model: type[P]) -> P:
    meta = pod.pod.metadata
    return model(
        namespace=meta.namespace,
        name=meta.name,
        workload=pod.owners[-1] if pod.owners else None,
        owners=pod.owners,
        state=pod.state,  # type: ignore[arg-type]  # one of the six words
        since=utc(pod.since),
        node=pod.pod.spec.node_name or None,
        reasons=tuple(ReasonText(reason=word, message=text) for word, text in pod.reasons()),
        claims=tuple(_used(use) for use in pod.uses),
        rivals=pod.rivals,
        advice=next_steps(pod),
    )


class WorkloadHold(Part, frozen=True):
    """What a ClaimReservation of the workload does with a claim."""

    claim: str
    reservation: str
    retention_policy: str
    effect: str


class WorkloadExplanation(Document, frozen=True):
    """``claimctl explain deployment/NAME``, and of other workloads"""

    namespace: str
    workload_ref: WorkloadRef
    phase: str
    ended: Annotated[bool, says("whether it and what it made will make no more pods")]
    rule: Annotated[str, says("whose rule says whether the workload is idle or has ended")]
    expressions: tuple[RuleExpression, ...]
    wants: int
    pods: ConsumerCounts
    starting: Annotated[int, says("how many of the bound pods do not run yet")]
    annotation: Annotated[str | None, says("the value of claimctl.io/reserve")]
    above: Annotated[str, says("what an object above the workload has to do with the annotation")]
    annotation_counts: Annotated[bool, says("false if that object alone decides")]
    problems: tuple[ReasonText, ...]
    sticky: Annotated[
        str | None, says("the value of claimctl.io/sticky in the metadata of its pod template")
    ]
    outdated_ordinals: Annotated[
        tuple[int, ...], says("ordinals whose claim the pod template does not ask for now")
    ]
    reservations: Names
    holds: tuple[WorkloadHold, ...]
    claims: tuple[ShortClaim, ...]
    more_claims: Annotated[int, says("how many claims of its pods are not shown")]
    missing_claims: Names
    waiting: tuple[ExplainedPod, ...]
    advice: Names


def workload_of(workload: WorkloadFindings) -> WorkloadExplanation:
    consumers, state = workload.consumers, workload.state
    named = tuple(reservation.metadata.name for reservation in workload.reservations)
    return WorkloadExplanation(
        namespace=workload.namespace,
        workload_ref=workload.ref,
        phase=state.phase,
        ended=state.ended,
        rule=state.rule.origin if state.rule else "",
        expressions=deciding(state),
        wants=state.wants,
        pods=ConsumerCounts(bound=len(consumers.bound), pending=len(consumers.pending)),
        starting=sum(pod.status.phase == "Pending" for pod in consumers.bound.values()),
        annotation=workload.annotation,
        above=workload.above,
        annotation_counts=workload.counts,
        problems=tuple(
            ReasonText(reason=problem.reason, message=problem.note) for problem in workload.problems
        ),
        sticky=workload.sticky,
        outdated_ordinals=workload.outdated,
        reservations=named,
        holds=tuple(
            WorkloadHold(
                claim=claim.view.name,
                reservation=retention.held.name,
                retention_policy=retention.held.reservation.spec.retention_policy,
                effect=effect_of(claim, retention),
            )
            for claim in workload.claims
            for retention in claim.assessment.retentions
            if retention.held.name in named
        ),
        claims=tuple(map(short_of, workload.claims)),
        more_claims=workload.more_claims,
        missing_claims=workload.missing,
        waiting=tuple(pod_of(pod, ExplainedPod) for pod in workload.waiting),
        advice=tuple(workload_advice(workload)),
    )
