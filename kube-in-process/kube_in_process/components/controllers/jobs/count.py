"""The pods of a Job, counted once per sync."""

from __future__ import annotations

from dataclasses import dataclass, field

from kube_in_process.components.controllers.jobs.indexes import (
    by_index,
    failures_of,
    index_of,
    is_indexed,
    parsed,
    valid,
)
from kube_in_process.components.controllers.jobs.policies import has_failed, judged
from kube_in_process.components.objects import condition, deleting, finalizers, is_true, uid
from kube_in_process.components.pods import ended, phase, ready
from kube_in_process.objects import Object

TRACKING = "batch.kubernetes.io/job-tracking"

Pods = list[Object]


def tracked(pod: Object) -> bool:
    return TRACKING in finalizers(pod)


@dataclass
class Counted:
    """The pods of a Job by their state. The numbers change as pods are created or deleted.

    No counter of the status has ``new_succeeded`` and ``new_failed`` yet.
    """

    job: Object
    pods: Pods
    active: Pods
    new_succeeded: Pods
    new_failed: Pods
    uncounted: dict[str, list[str]]
    running: int = 0
    ready: int = 0
    terminating: int = 0
    succeeded: int = 0
    failed: int = 0
    before: set[int] = field(default_factory=set)
    """The indexes that the status lists as completed."""
    done: set[int] = field(default_factory=set)
    lost: set[int] | None = None
    """The indexes that failed for good; None if failures are not counted by index."""
    verdict: Object | None = None
    """The condition FailureTarget or SuccessCriteriaMet, as soon as it is due."""


def count(job: Object, pods: Pods) -> Counted:
    status = job.get("status") or {}
    known = status.get("uncountedTerminatedPods") or {}
    uncounted = {kind: list(known.get(kind) or ()) for kind in ("succeeded", "failed")}
    wanted = [pod for pod in pods if not is_indexed(job) or valid(job, pod)]
    new = [pod for pod in wanted if tracked(pod)]
    succeeded = [pod for pod in new if phase(pod) == "Succeeded"]
    succeeded = [pod for pod in succeeded if uid(pod) not in uncounted["succeeded"]]
    failed = [pod for pod in new if has_failed(job, pod)]
    failed = [pod for pod in failed if uid(pod) not in uncounted["failed"]]
    active = [pod for pod in pods if not ended(pod) and not deleting(pod)]
    counting = sum(1 for pod in failed if judged(job, pod).counts)
    counted = Counted(
        job=job,
        pods=pods,
        active=active,
        new_succeeded=succeeded,
        new_failed=failed,
        uncounted=uncounted,
        running=len(active),
        ready=sum(1 for pod in active if ready(pod)),
        terminating=sum(1 for pod in pods if deleting(pod) and not ended(pod)),
        succeeded=status.get("succeeded", 0) + len(succeeded) + len(uncounted["succeeded"]),
        failed=status.get("failed", 0) + counting + len(uncounted["failed"]),
    )
    if is_indexed(job):
        _count_indexes(counted)
    return counted


def _count_indexes(counted: Counted) -> None:
    job = counted.job
    status = job.get("status") or {}
    counted.before = parsed(status.get("completedIndexes") or "")
    new = {
        index_of(pod)
        for pod in counted.pods
        if tracked(pod) and phase(pod) == "Succeeded" and valid(job, pod)
    }
    counted.done = counted.before | new
    counted.succeeded = len(counted.done)
    if by_index(job):
        limit = job["spec"]["backoffLimitPerIndex"]
        counted.lost = parsed(status.get("failedIndexes") or "") | {
            index_of(pod)
            for pod in counted.pods
            if tracked(pod)
            and valid(job, pod)
            and has_failed(job, pod)
            and (judged(job, pod).action == "FailIndex" or failures_of(pod) >= limit)
        }


def delayed(counted: Counted) -> dict[int, Object]:
    """The last failed pod of each index that will be tried again. It keeps its finalizer."""
    busy = {index_of(pod) for pod in counted.active} | counted.done | (counted.lost or set())
    kept: dict[int, Object] = {}
    if not by_index(counted.job):
        return kept
    for pod in counted.pods:
        index = index_of(pod)
        if index in busy or not valid(counted.job, pod):
            continue
        if tracked(pod) and has_failed(counted.job, pod):
            other = kept.get(index)
            if other is None or failures_of(other) <= failures_of(pod):
                kept[index] = pod
    return kept


def condition_of(job: Object, kind: str) -> Object | None:
    """The condition of that type if it is True; else None."""
    return condition(job, kind) if is_true(job, kind) else None
