"""What users do to a cluster, as data: a story is a list of steps that can be stored and cut."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

Object = dict[str, Any]

SEND, POD, NODE, KUBELETS, WAIT = "send", "pod", "node", "kubelets", "wait"
"""What a step is: a request; something that befalls pods or a node; whether kubelets start and
stop pods from now on; a rest of so many seconds."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that somebody does. ``args`` are plain JSON; ``{ns}`` stands for the namespace."""

    do: str
    note: str
    args: Object = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Story:
    """Steps in one namespace with nodes of its own. ``nodes`` and ``devices`` (on each node) say
    how many there are."""

    theme: str
    steps: tuple[Step, ...]
    nodes: int = 3
    devices: int = 4

    def without(self, start: int, count: int) -> Story:
        return replace(self, steps=self.steps[:start] + self.steps[start + count :])

    def text(self) -> str:
        """As JSON, a step a line."""
        steps = ",\n ".join(json.dumps([each.do, each.note, each.args]) for each in self.steps)
        head = {"theme": self.theme, "nodes": self.nodes, "devices": self.devices}
        return f'{{"story": {json.dumps(head)}, "steps": [\n {steps}]}}'

    def shown(self) -> str:
        """The notes, for people."""
        lines = [f"  {number}. {each.note}" for number, each in enumerate(self.steps, 1)]
        head = f"{self.theme}, {self.nodes} nodes with {self.devices} devices each"
        return "\n".join([head, *lines])


def read(text: str) -> Story:
    """The story that ``Story.text`` wrote."""
    raw = json.loads(text)
    steps = tuple(Step(do, note, args) for do, note, args in raw["steps"])
    return Story(steps=steps, **raw["story"])


def send(note: str, method: str, path: str, body: Object | None = None, **more: Any) -> Step:
    """A request; ``more`` may hold ``query`` and ``patch`` (merge, strategic or json)."""
    args: Object = {"method": method, "path": path, **more}
    if body is not None:
        args["body"] = body
    return Step(SEND, note, args)
