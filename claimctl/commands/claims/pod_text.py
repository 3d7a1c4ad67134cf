"""``claimctl explain`` of pods and workloads: text, and documents for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from claimctl.commands.claims.explanation import Explanation, describe_retention
from claimctl.commands.claims.pod_explanation import WorkloadExplanation
from claimctl.commands.claims.pod_view import ClaimUse, PodExplanation, holders
from claimctl.text import counted, fact
from claimctl.wire.base import to_plain

MOST_RIVALS = 10
_API = "cli.claimctl.io/v1alpha1"


def pod_lines(found: PodExplanation) -> list[str]:

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


def _rivals(found: PodExplanation) -> Iterator[str]:

    if not found.rivals:
        return
    yield "Devices of the same classes are with:"
    for rival in found.rivals[:MOST_RIVALS]:
        idle = ", idle" if rival.idle else ""
        devices = ", ".join(rival.view.devices)
        yield f"  claim {rival.name}: {devices}, {holders(rival.view)}{idle}"
    if len(found.rivals) > MOST_RIVALS:
        yield f"  and {len(found.rivals) - MOST_RIVALS} more claims"


def _nothing(found: PodExplanation) -> str:
    if found.state == "Waiting" and not found.rivals:
        return f"See the scheduler's words: kubectl -n {found.pod.metadata.namespace} describe pod"
    return "Nothing."


def pod_document(found: PodExplanation) -> dict[str, Any]:
    return {"apiVersion": _API, "kind": "PodExplanation", **_pod(found)}


def _pod(found: PodExplanation) -> dict[str, Any]:
    meta = found.pod.metadata
    return {
        "namespace": meta.namespace,
        "name": meta.name,
        "workload": found.owner or None,
        "state": found.state,
        "node": found.pod.spec.node_name or None,
        "reasons": [{"reason": each, "message": text} for each, text in found.reasons()],
        "claims": [
            {
                "entry": use.entry,
                "name": use.claim or None,
                "state": use.explanation.view.state if use.explanation else None,
                "devices": list(use.explanation.view.devices) if use.explanation else [],
                "problem": use.problem or None,
            }
            for use in found.uses
        ],
        "rivals": [
            {
                "namespace": rival.view.namespace,
                "name": rival.view.name,
                "devices": list(rival.view.devices),
                "holders": rival.view.holders,
                "idle": rival.idle,
            }
            for rival in found.rivals
        ],
        "advice": list(found.advice()),
    }


def workload_lines(found: WorkloadExplanation) -> list[str]:

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


def _reserved(found: WorkloadExplanation) -> Iterator[str]:

    named = {one.metadata.name for one in found.reservations}
    shown = False
    for explanation in found.claims:
        for retention in explanation.assessment.retentions:
            name = retention.held.reservation.metadata.name
            if name in named:
                shown = True
                policy = retention.held.reservation.spec.retention_policy
                does = describe_retention(retention)
                yield f"claim {explanation.view.name} by ClaimReservation {name} ({policy}): {does}"
    yield from (problem.note for problem in found.problems)
    if not shown and not found.problems and found.annotation is not None:
        asks = f"claimctl.io/reserve: {found.annotation!r}"
        yield f"{asks} asks for a hold, and there is no ClaimReservation yet"
    elif not shown and not found.problems:
        yield "nothing: it has no annotation claimctl.io/reserve, and no ClaimReservation names it"


def _waiting(found: WorkloadExplanation) -> Iterator[str]:
    if not found.waiting:
        return
    yield "Pods that do not run:"
    for pod in found.waiting:
        reasons = "; ".join(f"{each}: {text}" for each, text in pod.reasons())
        yield f"  {pod.pod.metadata.name}: {reasons or pod.state}"
    if any(pod.rivals for pod in found.waiting):
        yield from _rivals(max(found.waiting, key=lambda pod: len(pod.rivals)))


def workload_advice(found: WorkloadExplanation) -> list[str]:
    """What to do about the workload's pods and its annotation, each line once."""
    lines = [line for pod in found.waiting for line in pod.advice()]
    lines += [f"Create claim {name} in namespace {found.namespace}." for name in found.missing]
    if found.annotation is not None and not found.reservations and not found.problems:
        lines.append("See whether claimctl is installed and runs: claimctl doctor")
    if found.annotation is None and not found.reservations and found.claims:
        command = f"kubectl -n {found.namespace} annotate {found.name} 'claimctl.io/reserve=*'"
        lines.append(f"Keep its claims reserved while it has no pods: {command}")
    return list(dict.fromkeys(lines)) or ["Nothing."]


def workload_document(found: WorkloadExplanation) -> dict[str, Any]:

    return {
        "apiVersion": _API,
        "kind": "WorkloadExplanation",
        "namespace": found.namespace,
        "workloadRef": to_plain(found.ref),
        "phase": str(found.state.phase),
        "wants": found.state.wants,
        "pods": {"bound": len(found.consumers.bound), "pending": len(found.consumers.pending)},
        "annotation": found.annotation,
        "problems": [{"reason": str(one.reason), "message": one.note} for one in found.problems],
        "reservations": [one.metadata.name for one in found.reservations],
        "claims": [
            {"name": each.view.name, "state": each.view.state, "devices": list(each.view.devices)}
            for each in found.claims
        ],
        "missingClaims": list(found.missing),
        "waiting": [_pod(each) for each in found.waiting],
        "advice": workload_advice(found),
    }
