"""The document of ``claimctl explain deployment/NAME``, and of other workloads."""

from __future__ import annotations

from typing import Annotated

from claimctl.cli.documents import Document, Names, Part, ReasonText, says
from claimctl.commands.claims.claim_list import ConsumerCounts
from claimctl.commands.claims.explanation import effect_of
from claimctl.commands.claims.pod_document import ExplainedPod, ShortClaim, pod_of, short_of
from claimctl.commands.claims.rule_answers import RuleExpression, deciding
from claimctl.commands.claims.workload_advice import workload_advice
from claimctl.commands.claims.workload_explanation import WorkloadFindings
from claimctl.wire.reservations import WorkloadRef


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
