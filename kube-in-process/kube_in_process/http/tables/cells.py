"""The cells of tables of built-in kinds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kube_in_process.http.tables.columns import (
    NONE,
    Cell,
    Column,
    Row,
    human,
    parse_time,
    since,
)
from kube_in_process.objects import Object
from kube_in_process.text.label_text import selector_text


def text(row: Row, column: Column) -> str:
    return row.text(*column.of, default=column.default)


def number(row: Row, column: Column) -> int:
    return row.number(*column.of)


def age(row: Row, column: Column) -> str:
    return since(row.get(*column.of), row.now)


def length(row: Row, column: Column) -> int:
    return len(row.items(*column.of))


def flag(row: Row, column: Column) -> bool:
    return bool(row.get(*column.of))


def joined(row: Row, column: Column) -> str:
    return _joined(row.items(*column.of))


def _joined(values: Iterable[Any]) -> str:
    return ",".join(str(value) for value in values) or NONE


def names(row: Row, column: Column) -> str:
    """Names of the containers of a pod template."""
    return _joined(item.get("name", "") for item in row.items(*column.of))


def images(row: Row, column: Column) -> str:
    return _joined(item.get("image", "") for item in row.items(*column.of))


def selector(row: Row, column: Column) -> str:
    """A metav1.LabelSelector, or the labels that a Service selects, in the syntax of a query."""
    value = row.get(*column.of)
    if not value:
        return NONE
    whole = value if {"matchLabels", "matchExpressions"} & set(value) else {"matchLabels": value}
    return selector_text(whole) or NONE


def ready_replicas(row: Row, column: Column) -> str:
    return f"{row.number('status', 'readyReplicas')}/{row.number('spec', 'replicas')}"


def _conditions(row: Row) -> dict[str, str]:
    """The status of every condition by its type."""
    return {
        condition["type"]: condition.get("status", "")
        for condition in row.items("status", "conditions")
    }


_JOB_CONDITIONS = ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet")


def job_status(row: Row, column: Column) -> str:
    conditions = _conditions(row)
    for condition in _JOB_CONDITIONS:
        if conditions.get(condition) == "True":
            return condition
    return "Terminating" if row.get("metadata", "deletionTimestamp") else "Running"


def completions(row: Row, column: Column) -> str:
    wanted = row.get("spec", "completions")
    if wanted is None:
        parallelism = row.number("spec", "parallelism")
        wanted = f"1 of {parallelism}" if parallelism > 1 else 1
    return f"{row.number('status', 'succeeded')}/{wanted}"


def duration(row: Row, column: Column) -> str:
    start, end = row.get("status", "startTime"), row.get("status", "completionTime")
    if not start:
        return ""
    if not end:
        return since(start, row.now)
    return human(int((parse_time(end) - parse_time(start)).total_seconds()))


def suspended(row: Row, column: Column) -> str:
    return str(bool(row.get("spec", "suspend")))


def last_scheduled(row: Row, column: Column) -> str:
    last = row.get("status", "lastScheduleTime")
    return since(last, row.now) if last else NONE


def node_status(row: Row, column: Column) -> str:
    ready = {"True": "Ready", None: "Unknown"}.get(_conditions(row).get("Ready"), "NotReady")
    return f"{ready},SchedulingDisabled" if row.get("spec", "unschedulable") else ready


def roles(row: Row, column: Column) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = row.get("metadata", "labels") or {}
    return _joined(key.removeprefix(prefix) for key in sorted(labels) if key.startswith(prefix))


def address(row: Row, column: Column) -> str:
    """The first address of a node with the column's type."""
    addresses = row.items("status", "addresses")
    return next((entry["address"] for entry in addresses if (entry["type"],) == column.of), NONE)


def last_seen(row: Row, column: Column) -> str:
    series = row.get("series", "lastObservedTime")
    times = (series, row.get("lastTimestamp"), row.get("eventTime"), row.get("firstTimestamp"))
    return since(next((time for time in times if time), None), row.now)


def first_seen(row: Row, column: Column) -> str:
    first = row.get("firstTimestamp") or row.get("deprecatedFirstTimestamp")
    return since(first or row.get("eventTime"), row.now)


def _regarded(row: Row) -> Object:
    regarded: Object = row.get("involvedObject") or row.get("regarding") or {}
    return regarded


def regarding(row: Row, column: Column) -> str:
    regarded = _regarded(row)
    return f"{regarded.get('kind', '').lower()}/{regarded.get('name', '')}"


def part(row: Row, column: Column) -> str:
    return str(_regarded(row).get("fieldPath", ""))


def source(row: Row, column: Column) -> str:
    given = row.get("source") or row.get("deprecatedSource") or {}
    component = given.get("component") or row.get("reportingComponent")
    host = given.get("host") or row.get("reportingInstance") or ""
    parts = (component or row.get("reportingController") or "", host)
    return ", ".join(part for part in parts if part)


def message(row: Row, column: Column) -> str:
    return row.text("message", default=row.text("note", default="")).strip()


def event_count(row: Row, column: Column) -> str:
    return str(max(row.number("count"), 1))


def entries(row: Row, column: Column) -> int:
    """The number of entries of a ConfigMap or a Secret."""
    return len(row.items("data")) + len(row.items("binaryData"))


def policy(row: Row, column: Column) -> str:
    return "Gang" if "gang" in row.items("spec", "schedulingPolicy") else "Basic"


def group_status(row: Row, column: Column) -> str:
    for condition in row.items("status", "conditions"):
        if condition["type"] == "PodGroupScheduled":
            return "Scheduled" if condition["status"] == "True" else str(condition["reason"])
    return "Pending"


def role(row: Row, column: Column) -> str:
    return f"{row.text('roleRef', 'kind')}/{row.text('roleRef', 'name')}"


def subjects(row: Row, column: Column) -> str:
    """The subjects of a binding with the column's kind."""
    of_kind = [subject for subject in row.items("subjects") if (subject.get("kind"),) == column.of]
    spaces = [f"{subject['namespace']}/" if subject.get("namespace") else "" for subject in of_kind]
    return ", ".join(
        f"{space}{subject['name']}" for space, subject in zip(spaces, of_kind, strict=True)
    )


def controller(row: Row, column: Column) -> str:
    for owner in row.items("metadata", "ownerReferences"):
        if owner.get("controller"):
            group = owner["apiVersion"].rpartition("/")[0]
            kind = owner["kind"].lower()
            return f"{kind}.{group}/{owner['name']}" if group else f"{kind}/{owner['name']}"
    return NONE


def ready_containers(row: Row, column: Column) -> str:
    ready = sum(bool(one.get("ready")) for one in row.items("status", "containerStatuses"))
    return f"{ready}/{len(row.items('spec', 'containers'))}"


def pod_status(row: Row, column: Column) -> str:
    """The pod's phase, the reason of a container, or Terminating."""
    if row.get("metadata", "deletionTimestamp"):
        return "Unknown" if row.get("status", "reason") == "NodeLost" else "Terminating"
    reason = row.get("status", "reason") or row.get("status", "phase") or ""
    if _gated(row):
        reason = "SchedulingGated"
    for one in reversed(row.items("status", "containerStatuses")):
        reason = _container_reason(one) or reason
    return str(reason)


def _gated(row: Row) -> bool:
    return any(
        one.get("type") == "PodScheduled" and one.get("reason") == "SchedulingGated"
        for one in row.items("status", "conditions")
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


def restarts(row: Row, column: Column) -> str:
    statuses = row.items("status", "containerStatuses")
    return str(sum(one.get("restartCount", 0) for one in statuses))


def gates(row: Row, column: Column) -> str:
    """The number of readiness gates that are met."""
    wanted = row.items("spec", "readinessGates")
    if not wanted:
        return NONE
    conditions = _conditions(row)
    met = sum(conditions.get(gate["conditionType"]) == "True" for gate in wanted)
    return f"{met}/{len(wanted)}"


def claim_state(row: Row, column: Column) -> str:
    """``pending``, or the states of a claim: deleted, allocated, reserved."""
    states = {
        "deleted": row.get("metadata", "deletionTimestamp"),
        "allocated": row.get("status", "allocation"),
        "reserved": row.get("status", "reservedFor"),
    }
    return ",".join(name for name, holds in states.items() if holds) or "pending"


CELLS: dict[str, Cell] = {
    cell.__name__: cell
    for cell in (
        *(text, number, age, length, flag, joined, names, images, selector, ready_replicas),
        *(job_status, completions, duration, suspended, last_scheduled, node_status, roles),
        *(address, last_seen, first_seen, regarding, part, source, message, event_count),
        *(entries, policy, group_status, role, subjects, controller, ready_containers),
        *(pod_status, restarts, gates, claim_state),
    )
}
"""Cells by their names in ``columns.json``."""
