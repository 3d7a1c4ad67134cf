"""What a user can do about a workload: one line for each matter, with the command to run. Pure."""

from __future__ import annotations

from claimctl.commands.claims.advice import SEE_WHETHER, claim_steps
from claimctl.commands.claims.ordinals import TO_PUT_IN_FORCE
from claimctl.commands.claims.pod_advice import WELL, pod_advice, to_create
from claimctl.commands.claims.workload_explanation import WorkloadFindings
from claimctl.reservation.facts.reasons import Reason


def workload_advice(findings: WorkloadFindings) -> list[str]:
    """What to do about the workload's pods and its annotation, each line once."""
    lines = [line for pod in findings.waiting for line in pod_advice(pod)]
    if any(it.reason == Reason.STICKY_NOT_IN_FORCE for it in findings.problems):
        lines.append(f"{TO_PUT_IN_FORCE} Delete the pods that are there.")
    ended = findings.state.ended
    lines += [to_create(findings.namespace, name) for name in findings.missing if not ended]
    for explanation in findings.claims:
        lines += [line for line in claim_steps(explanation) if line not in lines]
    asks = findings.annotation is not None and findings.counts and not ended
    if asks and not findings.reservations and not findings.problems:
        lines.append(SEE_WHETHER)
    if (
        findings.annotation is None
        and findings.sticky is None
        and findings.counts
        and not findings.reservations
        and findings.claims
    ):
        command = (
            f"kubectl -n {findings.namespace} annotate {findings.name} 'claimctl.io/reserve=*'"
        )
        lines.append(f"Keep its claims reserved while it has no pods: {command}")
    if findings.waiting and not lines:
        first = findings.waiting[0].pod.metadata
        place = f"claimctl explain pod/{first.name} -n {first.namespace}"
        lines.append(f"See what may be done for a pod that does not run: {place}")
    return list(dict.fromkeys(lines)) or [WELL]
