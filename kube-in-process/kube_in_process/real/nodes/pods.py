"""Pods of manifests, filled with containers that run on nodes without a registry."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping

from kube_in_process.components.kubelet.kubelet import EXIT_CODE, RUN_SECONDS
from kube_in_process.real.client import Document
from kube_in_process.real.nodes.images import IMAGE

DEAF = "e2e.claimctl.io/deaf"
"""An annotation of pods whose containers ignore SIGTERM."""


def with_containers(body: Document) -> Document:
    """A copy of a workload or another object, whose pods run as their annotations say."""
    filled = copy.deepcopy(body)
    template = filled.get("spec", {}).get("template")
    if isinstance(template, dict) and "containers" in template.get("spec", {}):
        fill(template["spec"], template.get("metadata", {}).get("annotations") or {})
    return filled


def fill(spec: Document, annotations: Mapping[str, str], job_seconds: float = 1.0) -> None:
    """Let the containers of a pod's spec run as its annotations say.

    Args:
        job_seconds: how long a pod runs that is not restarted and has no annotation for that.
    """
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        # a rollout to another image stays one
        asked = {"name": "WANTED_IMAGE", "value": container.get("image", "")}
        container |= {
            "image": IMAGE,
            "imagePullPolicy": "Never",
            "args": _arguments(spec, annotations, job_seconds),
            "env": [*container.get("env", ()), asked],
        }


def _arguments(spec: Document, annotations: Mapping[str, str], job_seconds: float) -> list[str]:
    if DEAF in annotations:
        return ["deaf"]
    code = json.loads(annotations.get(EXIT_CODE, "0"))
    seconds = annotations.get(RUN_SECONDS)
    if seconds is None and spec.get("restartPolicy", "Always") != "Always":
        seconds = str(job_seconds)
    return [] if seconds is None else [seconds, str(code)]
