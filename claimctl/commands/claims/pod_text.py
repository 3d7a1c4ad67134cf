"""``claimctl explain`` of pods and workloads: text, and documents for programs."""

from __future__ import annotations

from collections.abc import Iterator

from claimctl.commands.claims.advice import workload_advice
from claimctl.commands.claims.explanation import Explanation, describe_retention
from claimctl.commands.claims.pod_explanation import WorkloadFindings
from claimctl.commands.claims.pod_view import ClaimUse, PodFindings, holders
from claimctl.text import counted, fact

MOST_RIVALS = 10
_API = "cli.claimctl.io/v1alpha1"


def pod_lines(found: PodFindings) -> list[str]:

    meta = found.pod.metadata
    node = found.pod.spec.node_name
    state = f"{found.state}{f' on {node}' if node else ''}"
    return [
        fact("Pod", f"{meta.namespace}/{meta.name}{f', of {found.owner}' if found.owner else ''}"),
        fact("State", state),
        *(f"  {reason}: {message}" for reason, message in found.reasons()),
        "Claims:",
        *([f"  {_use(use)}" for use in found.uses] or ["  it names no claim"]),
        *_rivals(found),
        "What to do:",
        *(f"  {line}" for line in found.advice() or (_nothing(found),)),
    ]


def _use(use: ClaimUse) -> str:
    if use.explanation is None:
        return use.problem
    return _claim(use.explanation)


def _claim(explanation: Explanation) -> str:

    view = explanation.view
    devices = ", ".join(view.devices) or "no devices"
    return f"{view.name}: {view.state}, {devices}, listed: {holders(view)} ({view.places})"


def _rivals(found: PodFindings) -> Iterator[str]:

    if not found.rivals:
        return
    yield "Devices of the same classes are with:"
    for rival in found.rivals[:MOST_RIVALS]:
        idle = ", idle" if rival.idle else ""
        devices = ", ".join(rival.view.devices)
        yield f"  claim {rival.name}: {devices}, {holders(rival.view)}{idle}"
    if len(found.rivals) > MOST_RIVALS:
        yield f"  and {len(found.rivals) - MOST_RIVALS} more claims"


def _nothing(found: PodFindings) -> str:
    if found.state == "Waiting" and not found.rivals:
        return f"See the scheduler's words: kubectl -n {found.pod.metadata.namespace} describe pod"
    return "Nothing is wrong."


def workload_lines(found: WorkloadFindings) -> list[str]:

    pods = found.consumers
    wants = "it has ended" if found.state.ended else counted(found.state.wants, "pod")
    starting = sum(pod.status.phase == "Pending" for pod in pods.bound.values())
    there = [
        f"{len(pods.bound) - starting} running",
        *([f"{starting} starting"] if starting else []),
        f"{len(pods.pending)} waiting for a node",
    ]
    return [
        fact(found.ref.kind, f"{found.namespace}/{found.ref.name}"),
        fact("Wants", f"{wants}; {', '.join(there)}"),
        "Held for it:",
        *(f"  {line}" for line in _reserved(found)),
        "Claims:",
        *([f"  {_claim(each)}" for each in found.claims] or ["  its pods name no existing claim"]),
        *(f"  claim {name} does not exist" for name in found.missing),
        *_waiting(found),
        "What to do:",
        *(f"  {line}" for line in workload_advice(found)),
    ]


def _reserved(found: WorkloadFindings) -> Iterator[str]:

    named = {one.metadata.name for one in found.reservations}
    shown = False
    for explanation in found.claims:
        for retention in explanation.assessment.retentions:
            name = retention.held.reservation.metadata.name
            if name in named:
                shown = True
                policy = retention.held.reservation.spec.retention_policy
                does = describe_retention(explanation, retention)
                yield f"claim {explanation.view.name} by ClaimReservation {name} ({policy}): {does}"
    yield from (problem.note for problem in found.problems)
    if not shown and not found.problems and found.annotation is not None:
        asks = f"claimctl.io/reserve: {found.annotation!r}"
        yield f"{asks} asks for a hold, and there is no ClaimReservation yet"
    elif not shown and not found.problems:
        yield "nothing: it has no annotation claimctl.io/reserve, and no ClaimReservation names it"


def _waiting(found: WorkloadFindings) -> Iterator[str]:
    if not found.waiting:
        return
    yield "Pods that do not run:"
    for pod in found.waiting:
        reasons = "; ".join(f"{each}: {text}" for each, text in pod.reasons())
        yield f"  {pod.pod.metadata.name}: {reasons or pod.state}"
    if any(pod.rivals for pod in found.waiting):
        yield from _rivals(max(found.waiting, key=lambda pod: len(pod.rivals)))
