"""The columns of pods: a summary of what their containers do."""

from __future__ import annotations

from typing import Any

from claimctl.embedded.http.tables.columns import AGE, NAME, NONE, Column, Row, joined, wide

Object = dict[str, Any]


def _ready(row: Row) -> str:
    statuses = row.get("status", "containerStatuses") or ()
    ready = sum(bool(one.get("ready")) for one in statuses)
    return f"{ready}/{len(row.get('spec', 'containers') or ())}"


def status(row: Row) -> str:
    """The reason of the container that says most, the pod's phase, or that it is terminating."""
    if row.get("metadata", "deletionTimestamp"):
        return "Unknown" if row.get("status", "reason") == "NodeLost" else "Terminating"
    reason = row.get("status", "reason") or row.text("status", "phase", default="Unknown")
    if _gated(row):
        reason = "SchedulingGated"
    for one in reversed(row.get("status", "containerStatuses") or ()):
        reason = _container_reason(one) or reason
    return str(reason)


def _gated(row: Row) -> bool:
    conditions = row.get("status", "conditions") or ()
    return any(
        one.get("type") == "PodScheduled" and one.get("reason") == "SchedulingGated"
        for one in conditions
    )


def _container_reason(container: Object) -> str:
    state = container.get("state") or {}
    waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
    if waiting.get("reason"):
        return str(waiting["reason"])
    if ended.get("reason"):
        return str(ended["reason"])
    if ended:
        return f"ExitCode:{ended.get('exitCode', 0)}"
    return ""


def _restarts(row: Row) -> str:
    statuses = row.get("status", "containerStatuses") or ()
    return str(sum(one.get("restartCount", 0) for one in statuses))


def _gates(row: Row) -> str:
    gates = row.get("spec", "readinessGates") or ()
    if not gates:
        return NONE
    conditions = {c["type"]: c["status"] for c in row.get("status", "conditions") or ()}
    met = sum(conditions.get(gate["conditionType"]) == "True" for gate in gates)
    return f"{met}/{len(gates)}"


PODS = [
    NAME,
    Column("Ready", _ready, "The aggregate readiness state of this pod for accepting traffic."),
    Column("Status", status, "The aggregate status of the containers in this pod."),
    Column(
        "Restarts",
        _restarts,
        "The number of times the containers in this pod have been restarted and when the last "
        "container in this pod has restarted.",
    ),
    AGE,
    wide("IP", lambda row: row.text("status", "podIP"), ".status.podIP"),
    wide("Node", lambda row: row.text("spec", "nodeName"), ".spec.nodeName"),
    wide(
        "Nominated Node",
        lambda row: row.text("status", "nominatedNodeName"),
        ".status.nominatedNodeName",
    ),
    wide("Readiness Gates", _gates, ".spec.readinessGates"),
]

CLAIMS = [
    NAME,
    Column(
        "State",
        lambda row: claim_state(row.obj),
        "A summary of the current state (allocated, pending, reserved, etc.).",
    ),
    AGE,
]


def claim_state(claim: Object) -> str:
    """``pending``, or what holds of a claim: deleted, allocated, reserved."""
    found = claim.get("status") or {}
    states = {
        "deleted": claim["metadata"].get("deletionTimestamp"),
        "allocated": found.get("allocation"),
        "reserved": found.get("reservedFor"),
    }
    shown = [name for name, holds in states.items() if holds]
    if not shown:
        shown.append("pending")
    return joined(shown)
