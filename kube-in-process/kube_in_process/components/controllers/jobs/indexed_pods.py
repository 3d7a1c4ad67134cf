"""The pods of an Indexed Job: which indexes need one, and how a pod gets its index."""

from __future__ import annotations

from kube_in_process.components.controllers.jobs.count import Counted
from kube_in_process.components.controllers.jobs.indexes import (
    FAILURES,
    IGNORED,
    INDEX,
    by_index,
    failures_of,
    ignored_of,
    index_of,
)
from kube_in_process.components.controllers.jobs.policies import judged, replaces_failed_only
from kube_in_process.components.objects import deleting, name
from kube_in_process.components.pods import ended
from kube_in_process.objects import Object


def free_indexes(job: Object, counted: Counted) -> list[int]:
    """The indexes that need a pod, lowest first."""
    busy = {index_of(pod) for pod in counted.active} | counted.done | (counted.lost or set())
    if replaces_failed_only(job):
        busy |= {index_of(pod) for pod in counted.pods if deleting(pod) and not ended(pod)}
    return [index for index in range(job["spec"]["completions"]) if index not in busy]


def give_index(pod: Object, job: Object, index: int, failed: Object | None) -> None:
    """Write the index into the pod's name, annotations, labels, host name and environment."""
    metadata, spec = pod["metadata"], pod["spec"]
    metadata["generateName"] = f"{name(job)}-{index}-"
    metadata["annotations"] = {**metadata["annotations"], INDEX: str(index)}
    metadata["labels"] = {**metadata["labels"], INDEX: str(index)}
    if by_index(job):
        metadata["annotations"] |= _failures(job, failed)
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": source}
    numbered = {
        kind: [_with_variable(container, variable) for container in spec[kind]]
        for kind in ("containers", "initContainers")
        if spec.get(kind)
    }
    pod["spec"] = {**spec, **numbered, "hostname": f"{name(job)}-{index}"}


def _with_variable(container: Object, variable: Object) -> Object:
    known = list(container.get("env") or ())
    if any(known_variable["name"] == variable["name"] for known_variable in known):
        return container
    return {**container, "env": [*known, variable]}


def _failures(job: Object, failed: Object | None) -> dict[str, str]:
    if failed is None:
        return {FAILURES: "0"}
    ignored = judged(job, failed).action == "Ignore"
    annotations = {FAILURES: str(failures_of(failed) + (not ignored))}
    total = ignored_of(failed) + ignored
    return {**annotations, IGNORED: str(total)} if total else annotations
