"""Replaces the values of objects, messages and answers that differ between two runs.

These are generated names, uids, times, and chosen nodes and devices. The real scheduler's messages
also count nodes of other stories; these counts are removed.
"""

from __future__ import annotations

import json
import re
from typing import Any

from judges.conformance.behaviour.comparing import RACES as SCHEDULER_RACES
from judges.conformance.behaviour.watching import OWN
from judges.conformance.behaviour.watching import shortened as _shortened

Object = dict[str, Any]

_SAFE = "bcdfghjklmnpqrstvwxz2456789"
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_GENERATED = re.compile(rf"-[{_SAFE}]{{5,10}}(?![\w-])|-[{_SAFE}]{{6,10}}(?=-)")
_INNER = re.compile(rf"-[{_SAFE}]{{5}}(?=-)")
_PLACED_NAME = re.compile(r"-<(?:gen|hash):\d+>")
_PLACED = re.compile(r"<(\w+):\d+>")
"""A placeholder of a recording."""
_NAMESPACE = re.compile(r"(?<![\w-])s\d+\b")
"""The name of a story's namespace, with which its nodes, classes and drivers begin. A generated
suffix of a name may look the same."""
_CHOICE = re.compile(r"\b(dev|node)-\d+")
_HASH_LABEL = re.compile(
    rf'((?:pod-template-hash|controller.kubernetes.io/hash)(?:": "|=|:))[{_SAFE}]+'
)
_AVAILABLE = re.compile(r"0/\d+ nodes are available: (.*?)(?=\. |$)")
_OTHERS = ("didn't satisfy plugin(s) [NodeAffinity]", "didn't match Pod's node affinity")
_PREEMPTION = re.compile(r"preemption: .*$")
_UNTIMED = ("resourceVersion", "managedFields", "selfLink")


def level(value: Any) -> Any:
    """JSON with placeholders for values of the run."""
    return json.loads(level_text(json.dumps(value, sort_keys=True)))


def level_text(text: str) -> str:
    text = _PLACED.sub(r"<\1>", _PLACED_NAME.sub("-*", text))
    text = _NAMESPACE.sub("ns", _TIME.sub("<time>", _UID.sub("<uid>", text)))
    text = _HASH_LABEL.sub(r"\1<hash>", text)
    for pattern in (_INNER, _GENERATED):
        text = pattern.sub("-*", text)
    return _CHOICE.sub(r"\1-*", text)


def level_message(text: str) -> str:
    """A component's message without what the scheduler says about nodes of other stories."""

    def nodes(match: re.Match[str]) -> str:
        parts = [node for node in match.group(1).split(", ") if not _of_others(node)]
        return f"0/* nodes are available: {', '.join(sorted(parts))}"

    return level_text(_AVAILABLE.sub(nodes, _PREEMPTION.sub("preemption: *", text)))


def _of_others(reason: str) -> bool:
    return any(pattern in reason for pattern in _OTHERS)


def shortened(kind: str, obj: Object) -> Object:
    """The short form of an object as in recordings; otherwise its status and replicas."""
    if kind in OWN:
        short = _shortened(kind, obj)
        conditions = short.get("conditions", {})
        for condition, value in conditions.items():
            status, _, reason = value.partition("/")
            conditions[condition] = f"{status}/under way" if reason in UNDER_WAY else value
        return short
    spec, status, meta = obj.get("spec") or {}, obj.get("status") or {}, obj["metadata"]
    fields = {key: meta[key] for key in ("finalizers",) if meta.get(key)}
    if "deletionTimestamp" in meta:
        fields["deleting"] = True
    if kind == "Node":
        fields["taints"] = sorted(f"{t['key']}:{t['effect']}" for t in spec.get("taints") or ())
        fields["unschedulable"] = spec.get("unschedulable", False)
        return fields
    conditions = {
        condition["type"]: f"{condition['status']}/{condition.get('reason', '')}"
        for condition in status.get("conditions") or ()
    }
    rest = {key: value for key, value in status.items() if key != "conditions"}
    return {**fields, "conditions": conditions, "status": rest}


UNDER_WAY = ("NewReplicaSetCreated", "FoundNewReplicaSet", "ReplicaSetUpdated")
"""Reasons of the condition Progressing. If the counters do not change in between, the last one
depends on a race between the controllers of Deployments and ReplicaSets."""
RACES = (
    *SCHEDULER_RACES,
    "got deallocated elsewhere in the meantime",
    "is not allocated anymore",
)
"""The scheduler's errors for a pod when other pods are faster."""


def is_race(message: str) -> bool:
    return any(race in message for race in RACES)


def whole(kind: str, obj: Object) -> Object:
    """The object at rest in full, except values of the run."""
    meta = {key: value for key, value in obj["metadata"].items() if key not in _UNTIMED}
    meta.pop("uid", None)
    status = dict(obj.get("status") or {})
    if status.get("conditions"):
        conditions = [
            condition
            for condition in status["conditions"]
            if not is_race(condition.get("message", ""))
        ]
        status["conditions"] = {
            condition["type"]: _condition(condition) for condition in conditions
        }
    if kind == "Namespace":
        # Its conditions record the namespace controller's tries, whose times vary.
        status = {"phase": status.get("phase")}
    if kind == "Node":
        status = {"conditions": status.get("conditions", {}).get("Ready", {}).get("status")}
        return {"status": status, **shortened(kind, obj)}
    body = {**obj, "metadata": meta, "status": status}
    body.pop("apiVersion", None)
    body.pop("kind", None)
    if kind == "ControllerRevision":
        body.pop("data", None)
    if kind == "ReplicaSet":
        # These count writes of the size, and one write may merge several steps.
        meta.pop("generation", None)
        status.pop("observedGeneration", None)
    shown: Object = _without_nulls(level(body))
    _sort_references(shown)
    return shown


def _without_nulls(value: Any) -> Any:
    """The value without nulls. The comparison of requests distinguishes null and absent."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _condition(condition: Object) -> Object:
    rest = {key: value for key, value in condition.items() if key != "type"}
    if rest.get("reason") in UNDER_WAY:
        return {"status": rest["status"], "reason": "under way"}
    if "message" in rest:
        rest["message"] = level_message(rest["message"])
    return rest


def _sort_references(shown: Object) -> None:
    """Sort a claim's list: its order depends on a race between equal pods."""
    listed = shown.get("status", {}).get("reservedFor")
    if listed:
        listed.sort(key=lambda reference: json.dumps(reference, sort_keys=True))
