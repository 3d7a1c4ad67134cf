"""What is compared of a trace and its replay, and how names and choices are levelled out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from .trace import Fields, Name, Trace, TraceEvent

RACES = (
    "in the process of being allocated",
    "got allocated elsewhere in the meantime",
    "the object has been modified",
)
"""Why pods failed in a trace that fail or do not fail as the race goes."""

_PLACEHOLDER = re.compile(r"<(?:gen|hash):\d+>")
_HASH = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{8,10}(?![\w])")
_SUFFIX = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}(?![\w])")
_CHOICE = re.compile(r"(dev|node)-\d+")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")


def level(value: Any) -> Any:
    """Generated names, and the node or device that somebody chose, become '*'."""
    text = _PLACEHOLDER.sub("*", json.dumps(value, sort_keys=True))
    text = _UID.sub("job-*", text)
    text = _SUFFIX.sub("-*", _HASH.sub("-*", text))
    return json.loads(_CHOICE.sub(r"\1-*", text))


def kinds(trace: Trace) -> set[str]:
    """The kinds that were watched."""
    return {event.kind for event in trace.events}


def flaps(trace: Trace) -> bool:
    """KCM's loop on finished pods: the list of the claim changes all the time."""
    return any(event.type == "REPEATED" for event in trace.events)


def snapshot(trace: Trace, state: dict[Name, Fields]) -> list[str]:
    """All objects at one moment; equal ones are told apart by nothing."""
    shown = [
        f"{kind} {level(name)}: {json.dumps(level(fields), sort_keys=True)}"
        for (kind, name), fields in state.items()
        if kind in kinds(trace) and not (kind == "ResourceClaim" and flaps(trace))
    ]
    return sorted(shown)


def racing(trace: Trace) -> set[str]:
    """Pods that failed in the trace only because of a race."""
    return {
        regarding.removeprefix("Pod/")
        for regarding, message in trace.messages
        if any(race in message for race in RACES)
    }


def histories(trace: Trace, events: Iterable[TraceEvent], *wanted: str) -> list[list[str]]:
    """The states that each object went through, repeats left out."""
    races = racing(trace)
    by_name: dict[Name, list[str]] = {}
    for event in events:
        fields = event.fields
        if event.kind not in wanted:
            continue
        if event.kind == "Pod" and event.name in races:
            if _refused(fields) and "nominatedNodeName" not in fields:
                continue
            fields = _unrefused(fields)
        shown = f"{event.type} {event.kind} {level(event.name)}: "
        by_name.setdefault(event.object, []).append(
            shown + json.dumps(level(fields), sort_keys=True)
        )
    return sorted([state for state, _ in groupby(states)] for states in by_name.values())


def _refused(fields: Fields) -> bool:
    return str((fields.get("conditions") or {}).get("PodScheduled", "")).startswith("False")


def _unrefused(fields: Fields) -> Fields:
    if not _refused(fields):
        return fields
    kept = {key: value for key, value in fields["conditions"].items() if key != "PodScheduled"}
    rest = {key: value for key, value in fields.items() if key != "conditions"}
    return {**rest, "conditions": kept} if kept else rest


def in_order(some: list[str], every: list[str]) -> bool:
    """Whether ``some`` is ``every`` with some left out."""
    rest = iter(every)
    return all(event in rest for event in some)


def removals(trace: Trace, events: Iterable[TraceEvent]) -> list[str]:
    """In which order objects went."""
    return [
        f"{event.kind} {level(event.name)}"
        for event in events
        if event.type == "DELETED" and event.kind in kinds(trace)
    ]


def messages(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Kubernetes Events, once each, without those of races and of too many alike."""
    shown = {
        f"{level(regarding)} {level(message)}"
        for regarding, message in pairs
        if not any(part in message for part in (*RACES, "combined from similar"))
    }
    return sorted(shown)
