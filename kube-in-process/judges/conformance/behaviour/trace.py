"""Behaviour traces: what they say, in the few words that are compared."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Fields = dict[str, Any]
Name = tuple[str, str]
"""Kind and name of an object."""

RESOLUTION = 0.01
"""Of times in a trace, in seconds."""

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """A watch event: ``fields`` are those of the trace, without time, kind, type, name and by."""

    at: float
    kind: str
    type: str
    name: str
    fields: Fields

    @property
    def object(self) -> Name:
        return self.kind, self.name


@dataclass(frozen=True, slots=True)
class TraceAction:
    at: float
    request: Fields
    status: int
    note: str


@dataclass(frozen=True, slots=True)
class Trace:
    name: str
    version: tuple[int, int]
    actions: tuple[TraceAction, ...]
    events: tuple[TraceEvent, ...]
    messages: tuple[tuple[str, str], ...]
    """Kubernetes Events: the object ('Pod/p1') and 'reason: message'."""
    raw: Fields

    @property
    def end(self) -> float:
        return max(event.at for event in self.events) + 0.5

    def before(self, at: float) -> dict[Name, Fields]:
        """The objects as they were just before a moment."""
        return _state(event for event in self.events if event.at < at)

    def around(self, at: float) -> Iterator[dict[Name, Fields]]:
        """The objects just before a moment, and as each event at that moment left them."""
        ready = [event for event in self.events if event.at < at]
        yield _state(ready)
        for event in self.events:
            if at <= event.at <= at + RESOLUTION:
                ready.append(event)
                yield _state(ready)


def _state(events: Iterable[TraceEvent]) -> dict[Name, Fields]:
    state: dict[Name, Fields] = {}
    for event in events:
        if event.type == "DELETED":
            state.pop(event.object, None)
        elif event.type != "REPEATED":
            state[event.object] = event.fields
    return state


def load(name: str) -> Trace:
    raw = json.loads((HERE / f"{name}.json").read_text())
    major, minor = raw["server"].removeprefix("v").split(".")[:2]
    return Trace(
        name=name,
        version=(int(major), int(minor)),
        actions=tuple(
            TraceAction(action["t"], action["request"], action["status"], action["note"])
            for action in raw["actions"]
        ),
        events=tuple(_event(event) for event in raw.get("events", ())),
        messages=tuple(
            (event["object"], f"{event['reason']}: {event['message']}")
            for event in raw.get("kubernetesEvents", ())
        ),
        raw=raw,
    )


def _event(raw: Fields) -> TraceEvent:
    skipped = ("t", "kind", "type", "name", "by")
    fields = {key: value for key, value in raw.items() if key not in skipped}
    return TraceEvent(raw["t"], raw["kind"], raw["type"], raw["name"], fields)


def names() -> list[str]:
    return sorted(path.stem for path in HERE.glob("B*.json"))
