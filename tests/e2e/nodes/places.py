"""A scenario's own names on shared nodes, and containers that really run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kube_in_process.real.nodes.pods import fill

from tests.e2e.places import ScenarioPlaces


@dataclass(frozen=True, slots=True)
class NodePlaces(ScenarioPlaces):
    """The names of a scenario whose pods run in containers."""

    job_seconds: float = 1.0
    """How long a pod of a Job runs if it has no annotation for that."""
    only_node: str = ""
    """The node of all pods, in a scenario with one node."""

    def body(self, body: Any) -> Any:
        """A manifest or patch, rewritten to the scenario's names and to the image of the nodes."""
        # a base class with slots is not what super() without arguments refers to
        made = super(NodePlaces, self).body(body)
        if isinstance(made, dict) and isinstance(spec := made.get("spec"), dict):
            annotations = (made.get("metadata") or {}).get("annotations") or {}
            fill(spec, annotations, self.job_seconds)
        return made

    def _place(self, spec: dict[str, Any]) -> None:
        if self.only_node:
            spec.setdefault("nodeSelector", {"kubernetes.io/hostname": self.only_node})
