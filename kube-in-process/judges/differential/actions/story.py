"""User actions as data: a story is a list of steps that can be stored and shortened."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

Object = dict[str, Any]

SEND, POD, NODE, KUBELETS, WAIT = "send", "pod", "node", "kubelets", "wait"
"""The kinds of steps: a request, an event of pods or of a node, switching the kubelets on or
off, and a pause in seconds."""


@dataclass(frozen=True, slots=True)
class StoryStep:
    """One action. ``args`` are plain JSON; ``{ns}`` stands for the namespace."""

    do: str
    note: str
    args: Object = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Story:
    """Steps in one namespace with ``nodes`` nodes of its own and ``devices`` devices on each."""

    theme: str
    steps: tuple[StoryStep, ...]
    nodes: int = 3
    devices: int = 4

    def without(self, start: int, count: int) -> Story:
        return replace(self, steps=self.steps[:start] + self.steps[start + count :])

    def text(self) -> str:
        """The story as JSON, one line for each step."""
        steps = ",\n ".join(json.dumps([step.do, step.note, step.args]) for step in self.steps)
        head = {"theme": self.theme, "nodes": self.nodes, "devices": self.devices}
        return f'{{"story": {json.dumps(head)}, "steps": [\n {steps}]}}'

    def shown(self) -> str:
        """The notes of the steps, for people."""
        lines = [f"  {number}. {step.note}" for number, step in enumerate(self.steps, 1)]
        head = f"{self.theme}, {self.nodes} nodes with {self.devices} devices each"
        return "\n".join([head, *lines])


def read(text: str) -> Story:
    """The story in a text from ``Story.text``."""
    raw = json.loads(text)
    steps = tuple(StoryStep(do, note, args) for do, note, args in raw["steps"])
    return Story(steps=steps, **raw["story"])


def send(note: str, method: str, path: str, body: Object | None = None, **more: Any) -> StoryStep:
    """A request; ``more`` may hold ``query`` and ``patch`` (merge, strategic or json)."""
    args: Object = {"method": method, "path": path, **more}
    if body is not None:
        args["body"] = body
    return StoryStep(SEND, note, args)
