"""Recordings of stories: what a real cluster did, kept in judges/conformance/behaviour.

The format is that of the other traces there, with ``story`` (the steps, to be played again),
``steps`` (of each step: its note, the answers, and how many events there were by its end) and, in
each event, ``change``: the object as a merge patch of what it was before.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from judges.conformance.behaviour.trace import HERE
from judges.differential.actions.clusters import Seen
from judges.differential.actions.level import shortened
from judges.differential.actions.play import PlayedStory, Segment
from judges.differential.actions.story import Story, read

Object = dict[str, Any]
Name = tuple[str, str]
SETUP = (
    "Nodes ns-node-0..2 with the devices dev-0.. of the driver ns.tpu.example.com on each; the "
    "DeviceClass ns.tpu. Actions marked 'node agent' and the nodes' Leases are a client's. The "
    "scheduler backs off for 1 s at most; nodes count as lost after 20 s."
)
_SAFE = "bcdfghjklmnpqrstvwxz2456789"
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_NAMESPACE = re.compile(r"(?<![\w-])s\d+\b")
_OWNED = re.compile(rf"-([{_SAFE}]{{8,10}})(?![\w])")
_MADE = re.compile(rf"-([{_SAFE}]{{5}})(?![\w])")
_LABEL = re.compile(rf'((?:pod-template-hash|controller.kubernetes.io/hash)": ")([{_SAFE}]+)')
_DROPPED = ("resourceVersion", "managedFields")


def merge_patch(old: Any, new: Any) -> Any:
    """The merge patch (RFC 7396) that turns ``old`` into ``new``."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    patch = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key not in old or old[key] != value:
            patch[key] = merge_patch(old.get(key), value) if key in old else value
    return patch


def merged(old: Any, patch: Any) -> Any:
    """``old`` with the merge patch (RFC 7396) applied."""
    if not isinstance(patch, dict):
        return patch
    both = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            both.pop(key, None)
        else:
            both[key] = merged(both.get(key), value)
    return both


def recorded(name: str, about: str, server: str, story: Story, played: PlayedStory) -> str:
    """The text of the recording."""
    events: list[Object] = []
    known: dict[Name, Object] = {}
    steps = []
    for segment in played.segments:
        for kind_name, obj in segment.before.items():
            if kind_name not in known:
                events.append(
                    _event(Seen(played.begun, 0, "BEFORE", *kind_name, obj), played, known)
                )
        events += [_event(event, played, known) for event in segment.events]
        steps.append({"note": segment.note, "answers": segment.answers, "events": len(events)})
    body = {
        "name": name,
        "server": server,
        "about": about,
        "setup": SETUP,
        "actions": [_action(action) for action in played.actions],
        "events": events,
        "kubernetesEvents": [_message(message) for message in played.messages],
        "final": {},
        "steps": steps,
    }
    text = json.dumps({**body, "story": json.loads(story.text())})
    return _rows(json.loads(_placed(text)))


def _event(seen: Seen, played: PlayedStory, known: dict[Name, Object]) -> Object:
    key = (seen.kind, seen.name)
    new = _without_nulls(seen.object)
    change = merge_patch(known.get(key, {}), new)
    if seen.type == "DELETED":
        known.pop(key, None)
    else:
        known[key] = new
    head = {"t": round(seen.at - played.begun, 2), "kind": seen.kind, "type": seen.type}
    return {**head, "name": seen.name, **shortened(seen.kind, seen.object), "change": change}


def _without_nulls(obj: Object) -> Object:
    """The object without nulls, which a merge patch cannot express, and without times and
    versions."""
    meta = {key: value for key, value in obj["metadata"].items() if key not in _DROPPED}
    text = json.dumps({**obj, "metadata": meta})
    document: Object = json.loads(text, object_hook=_kept)
    return document


def _kept(document: Object) -> Object:
    return {key: value for key, value in document.items() if value is not None}


def _action(action: Any) -> Object:
    shown: Object = {"t": round(action.at, 2), "note": action.note, "request": action.request}
    shown["status"] = action.status
    return {**shown, "message": action.message} if action.message else shown


def _message(event: Object) -> Object:
    regarding = event["involvedObject"]
    return {
        "object": f"{regarding['kind']}/{regarding['name']}",
        "type": event.get("type"),
        "reason": event["reason"],
        "message": event.get("message", ""),
    }


def _placed(text: str) -> str:
    """The text with numbered placeholders for values of the run."""
    numbers: dict[tuple[str, str], int] = {}

    def number(kind: str, value: str) -> str:
        count = sum(1 for known, _ in numbers if known == kind) + 1
        return f"<{kind}:{numbers.setdefault((kind, value), count)}>"

    text = _NAMESPACE.sub("ns", _TIME.sub("<time>", text))
    text = _UID.sub(lambda match: number("uid", match.group()), text)
    text = _LABEL.sub(lambda match: match.group(1) + number("hash", match.group(2)), text)
    hashes = {value for kind, value in numbers if kind == "hash"}
    for value in sorted(hashes, key=len, reverse=True):
        text = text.replace(f"-{value}", "-" + number("hash", value))
    text = _OWNED.sub(lambda match: "-" + number("hash", match.group(1)), text)
    return _MADE.sub(lambda match: "-" + number("gen", match.group(1)), text)


def _rows(body: Object) -> str:
    """A line for each action, event and step."""
    parts = []
    for key, value in body.items():
        if isinstance(value, list):
            rows = ",\n  ".join(json.dumps(item) for item in value)
            parts.append(f' "{key}": [\n  {rows}\n ]')
        else:
            parts.append(f' "{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


# Reading


def recordings() -> list[Path]:
    return sorted(HERE.glob("S-*.json"))


def load(path: Path) -> tuple[tuple[int, int], Story, PlayedStory]:
    """The version, the story, and how the real cluster played it."""
    raw = json.loads(path.read_text())
    major, minor = raw["server"].removeprefix("v").split(".")[:2]
    story = read(json.dumps(raw["story"]))
    return (int(major), int(minor)), story, _played(raw)


def _played(raw: Object) -> PlayedStory:
    played = PlayedStory(messages=[_told(event) for event in raw["kubernetesEvents"]])
    known: dict[Name, Object] = {}
    first = 0
    for step in raw["steps"]:
        segment = Segment(step["note"], answers=step["answers"], before=dict(known))
        for number in range(first, step["events"]):
            _apply(raw["events"][number], number, known, segment)
        segment.rest = dict(known)
        first = step["events"]
        played.segments.append(segment)
    return played


def _apply(event: Object, number: int, known: dict[Name, Object], segment: Segment) -> None:
    key = (event["kind"], event["name"])
    obj = merged(known.get(key, {}), event["change"])
    if event["type"] == "DELETED":
        known.pop(key, None)
    else:
        known[key] = obj
    if event["type"] == "BEFORE":
        segment.before[key] = obj
    else:
        segment.events.append(Seen(event["t"], number, event["type"], *key, obj))


def _told(message: Object) -> Object:
    kind, _, plain = message["object"].partition("/")
    return {**message, "involvedObject": {"kind": kind, "name": plain}}
