"""What a user can do about a claim: one line for each matter, with the command to run."""

from __future__ import annotations

from collections.abc import Iterator

from claimctl.commands.claims import controller_health
from claimctl.commands.claims.explanation import Explanation
from claimctl.commands.claims.pod_explanation import WorkloadFindings
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import LIMIT
from claimctl.reservation.facts.workloads import WorkloadPhase
from claimctl.wire.reservations import WorkloadRef

UNREADABLE = (
    "Correct or delete the object that cannot be read; if a newer version wrote it, upgrade "
    "claimctl."
)
_ABOUT_THE_HOLD = {
    Reason.CLAIM_NOT_CREATED_FOR_WORKLOAD: (
        "Recreate the claim from a ResourceClaimTemplate (spec.resourceClaimTemplateName of the "
        "ClaimReservation)."
    ),
    Reason.ALREADY_RESERVED_FOR: "Give the second workload a claim of its own.",
    Reason.CLAIM_NOT_NAMED_BY_POD_TEMPLATE: (
        "Name the claim in spec.template.spec.resourceClaims[].resourceClaimName of the workload."
    ),
    Reason.WORKLOAD_NOT_FOUND: "Create the workload, or correct workloadRef in a new reservation.",
    Reason.WORKLOAD_KIND_UNSUPPORTED: "Reserve for a Deployment, a StatefulSet or a Job.",
    Reason.STRANDED_POD: "Delete the pod that was bound without the claim's devices.",
    Reason.UNREADABLE: UNREADABLE,
    Reason.HOLD_YIELDED: f"Keep fewer than {LIMIT} pods on the claim.",
}
"""Advice that holds whether the claim is allocated or not."""
_ABOUT_THE_RELEASE = {
    Reason.FORCE_DELETED_PODS: (
        "Make sure that the node no longer runs the pod; the grace ends by itself."
    ),
    Reason.PODS_MAY_BE_BOUND: "Wait: it ends by itself. Or delete the pods that are named.",
    Reason.HISTORY_UNKNOWN: "Wait: the grace ends by itself.",
    Reason.UNKNOWN_REFERENCES: "Ask the owner of that reference to remove it; claimctl never does.",
}
_REASONS = frozenset(Reason)


def advice(explanation: Explanation) -> tuple[str, ...]:
    """What an administrator can do. Advice about the controller comes first."""
    about_controller = controller_health.advice(explanation.troubles)
    known = tuple(dict.fromkeys(_advice(explanation)))
    if known:
        return (*about_controller, *known)
    if about_controller and explanation.assessment.retentions:
        return about_controller
    return (*about_controller, plain(explanation))


def _advice(explanation: Explanation) -> Iterator[str]:
    if not explanation.assessment.retentions and not explanation.left_alone:
        return
    reasons = list(_reasons(explanation))
    if explanation.view.claim.status.allocation is not None:
        yield from _to_end_use(explanation, reasons)
        yield from (_ABOUT_THE_RELEASE[each] for each in reasons if each in _ABOUT_THE_RELEASE)
        yield from _to_release(explanation, reasons)
    yield from (_ABOUT_THE_HOLD[each] for each in reasons if each in _ABOUT_THE_HOLD)


def _reasons(explanation: Explanation) -> Iterator[Reason]:
    yield from (blocker.reason for blocker in explanation.obstacles)
    yield from (Reason.UNREADABLE for _ in explanation.unreadable)
    for retention in explanation.assessment.retentions:
        yield retention.blocker.reason if retention.blocker else retention.reason
        conditions = retention.held.reservation.status.conditions
        yield from (Reason(one.reason) for one in conditions if one.reason in _REASONS)


def _to_end_use(explanation: Explanation, reasons: list[Reason]) -> Iterator[str]:
    """How to end the pods that use the claim: at their workloads, else one by one."""
    if Reason.CONSUMERS_LEFT not in reasons and Reason.WORKLOAD_WANTS_PODS not in reasons:
        return
    namespace, active = explanation.view.namespace, False
    for retention in explanation.assessment.retentions:
        if retention.held.workload.phase is WorkloadPhase.ACTIVE:
            active = True
            yield to_stop(namespace, retention.held.reservation.spec.workload_ref)
    if not active:
        using = explanation.view.consumers
        everyone = (*using.bound.values(), *using.pending.values())
        pods = " ".join(sorted(pod.metadata.name for pod in everyone))
        yield f"Wait for its pods, or delete them: kubectl -n {namespace} delete pod {pods}"


def to_stop(namespace: str, ref: WorkloadRef) -> str:
    """How a user makes a workload want no pods."""
    kubectl = f"kubectl -n {namespace}"
    if ref.kind == "Job":
        patch = """'{"spec":{"suspend":true}}'"""
        return f"Suspend the Job, or delete it: {kubectl} patch job/{ref.name} -p {patch}"
    name = f"{ref.kind.lower()}/{ref.name}"
    return f"Scale the workload to 0, or delete it: {kubectl} scale {name} --replicas=0"


def _to_release(explanation: Explanation, reasons: list[Reason]) -> Iterator[str]:
    command = to_release(explanation)
    if Reason.IDLE_TIMEOUT in reasons:
        yield f"Wait, or release it now: {command}"
    if Reason.RETENTION in reasons:
        yield f"Release it, or change retentionPolicy: {command}"


def to_release(explanation: Explanation) -> str:
    return f"claimctl release {explanation.view.name} -n {explanation.view.namespace}"


def plain(explanation: Explanation) -> str:
    """The advice if no reason has one."""
    view = explanation.view
    if explanation.orphan is not None:
        return f"See what would be done, without a write: claimctl orphans -n {view.namespace}"
    if explanation.asked:
        return "See whether claimctl is installed and runs: claimctl doctor"
    if view.claim.status.allocation is None:
        return "Nothing: the claim holds no device."
    if explanation.release is not None:
        return "Nothing: its release is under way."
    if explanation.releasable:
        return f"Free its devices now: {to_release(explanation)}"
    if view.workloads:
        return (
            "No ClaimReservation names it: the writer of the workload's reference has to remove it."
        )
    if view.listed_pods:
        return "No workload holds it: the cluster frees its devices when the last pod is gone."
    return "Nothing holds it: delete the claim to free its devices, or start a pod that uses it."


def workload_advice(found: WorkloadFindings) -> list[str]:
    """What to do about the workload's pods and its annotation, each line once."""
    lines = [line for pod in found.waiting for line in pod.advice()]
    lines += [f"Create claim {name} in namespace {found.namespace}." for name in found.missing]
    if found.annotation is not None and not found.reservations and not found.problems:
        lines.append("See whether claimctl is installed and runs: claimctl doctor")
    if found.annotation is None and not found.reservations and found.claims:
        command = f"kubectl -n {found.namespace} annotate {found.name} 'claimctl.io/reserve=*'"
        lines.append(f"Keep its claims reserved while it has no pods: {command}")
    return list(dict.fromkeys(lines)) or ["Nothing."]
