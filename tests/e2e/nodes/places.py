"""A scenario's own names on shared nodes, and containers that really run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from kube_in_process.components.kubelet.kubelet import EXIT_CODE, RUN_SECONDS

from claimctl_demo.real_nodes.images import IMAGE
from tests.e2e.places import Places

DEAF = "e2e.claimctl.io/deaf"
"""An annotation of pods whose containers ignore SIGTERM."""


@dataclass(frozen=True, slots=True)
class NodePlaces(Places):
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
            self._fill(spec, annotations)
        return made

    def _place(self, spec: dict[str, Any]) -> None:
        if self.only_node:
            spec.setdefault("nodeSelector", {"kubernetes.io/hostname": self.only_node})

    def _fill(self, spec: dict[str, Any], annotations: dict[str, str]) -> None:
        """Let the containers of a pod run as its annotations say."""
        for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
            # a rollout to another image stays one
            asked = {"name": "WANTED_IMAGE", "value": container.get("image", "")}
            container |= {
                "image": IMAGE,
                "imagePullPolicy": "Never",
                "args": self._arguments(spec, annotations),
                "env": [*container.get("env", ()), asked],
            }

    def _arguments(self, spec: dict[str, Any], annotations: dict[str, str]) -> list[str]:
        if DEAF in annotations:
            return ["deaf"]
        code = json.loads(annotations.get(EXIT_CODE, "0"))
        seconds = annotations.get(RUN_SECONDS)
        if seconds is None and spec.get("restartPolicy", "Always") != "Always":
            seconds = str(self.job_seconds)
        return [] if seconds is None else [seconds, str(code)]
