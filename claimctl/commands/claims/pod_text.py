"""``claimctl explain`` of pods and workloads: text, and documents for programs."""

from __future__ import annotations

from collections.abc import Iterator

from claimctl.commands.claims.advice import workload_advice
from claimctl.commands.claims.explanation import Explanation, describe_retention, rule_lines
from claimctl.commands.claims.pod_explanation import WorkloadFindings
from claimctl.commands.claims.pod_view import PodFindings
from claimctl.reservation.facts.workloads import WorkloadPhase
from claimctl.text import counted, fact

MOST_RIVALS = 10


def pod_lines(findings: PodFindings) -> list[str]:
    meta = findings.pod.metadata
    node = findings.pod.spec.node_name
    state = f"{findings.state}{f' on {node}' if node else ''}"
    # without the ReplicaSet that a Deployment has made
    owners = [it for it in findings.owners[:-1] if not it.startswith("replicaset/")]
    owner = f", of {' of '.join((*owners, findings.owners[-1]))}" if findings.owners else ""
    uses = [_claim(use.explanation) if use.explanation else use.problem for use in findings.uses]
    nothing = "Nothing is wrong."
    if findings.state == "Waiting" and not findings.rivals:
        nothing = f"See the scheduler's words: kubectl -n {meta.namespace} describe pod {meta.name}"
    return [
        fact("Pod", f"{meta.namespace}/{meta.name}{owner}"),
        fact("State", state),
        *(f"  {reason}: {message}" for reason, message in findings.reasons()),
        "Claims:",
        *(f"  {use}" for use in uses or ["it names no claim"]),
        *_rivals(findings),
        "What to do:",
        *(f"  {line}" for line in findings.advice() or (nothing,)),
    ]


def _claim(explanation: Explanation) -> str:
    view = explanation.view
    devices = ", ".join(view.devices) or "no devices"
    holders = view.holders or "nobody"
    return f"{view.name}: {view.state}, {devices}, listed: {holders} ({view.places})"


def _rivals(findings: PodFindings) -> Iterator[str]:
    if not findings.rivals:
        return
    yield "Devices of the same classes are with:"
    for rival in findings.rivals[:MOST_RIVALS]:
        idle = ", idle" if rival.idle else ""
        what = f"{', '.join(rival.devices)}, {rival.holders or 'nobody'}{idle}"
        yield f"  claim {rival.namespace}/{rival.name}: {what}"
    if len(findings.rivals) > MOST_RIVALS:
        yield f"  and {len(findings.rivals) - MOST_RIVALS} more claims"


def workload_lines(findings: WorkloadFindings) -> list[str]:
    pods = findings.consumers
    wants = "it has ended" if findings.state.ended else counted(findings.state.wants, "pod")
    rule = findings.state.rule
    if rule and not findings.state.wants and findings.state.phase == WorkloadPhase.ACTIVE:
        wants = "pods, and its rule does not say how many"
    starting = sum(pod.status.phase == "Pending" for pod in pods.bound.values())
    there = [
        f"{len(pods.bound) - starting} running",
        *([f"{starting} starting"] if starting else []),
        f"{len(pods.pending)} waiting for a node",
    ]
    return [
        fact(findings.ref.kind, f"{findings.namespace}/{findings.ref.name}"),
        fact("Wants", f"{wants}; {', '.join(there)}"),
        *([fact("Rule", f"{findings.state.phase}, by {rule.origin}")] if rule else []),
        *(f"  {line}" for line in rule_lines(findings.state)),
        "Held for it:",
        *(f"  {line}" for line in _reservation_lines(findings)),
        "Claims:",
        *(f"  {_claim(claim)}" for claim in findings.claims),
        *(["  its pods name no existing claim"] if not findings.claims else []),
        *(f"  claim {name} does not exist" for name in findings.missing),
        *_waiting(findings),
        "What to do:",
        *(f"  {line}" for line in workload_advice(findings)),
    ]


def _reservation_lines(findings: WorkloadFindings) -> Iterator[str]:
    named = {reservation.metadata.name for reservation in findings.reservations}
    shown = False
    for explanation in findings.claims:
        for retention in explanation.assessment.retentions:
            name = retention.held.reservation.metadata.name
            if name in named:
                shown = True
                policy = retention.held.reservation.spec.retention_policy
                does = describe_retention(explanation, retention)
                yield f"claim {explanation.view.name} by ClaimReservation {name} ({policy}): {does}"
    yield from (problem.note for problem in findings.problems)
    if not shown and not findings.problems and findings.annotation is not None:
        asks = f"claimctl.io/reserve: {findings.annotation!r}"
        yield f"{asks} asks for a hold, and there is no ClaimReservation yet"
    elif not shown and not findings.problems:
        yield "nothing: it has no annotation claimctl.io/reserve, and no ClaimReservation names it"


def _waiting(findings: WorkloadFindings) -> Iterator[str]:
    if not findings.waiting:
        return
    yield "Pods that do not run:"
    for pod in findings.waiting:
        reasons = "; ".join(f"{reason}: {text}" for reason, text in pod.reasons())
        yield f"  {pod.pod.metadata.name}: {reasons or pod.state}"
    if any(pod.rivals for pod in findings.waiting):
        yield from _rivals(max(findings.waiting, key=lambda pod: len(pod.rivals)))
