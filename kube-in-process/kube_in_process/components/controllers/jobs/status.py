"""The status of a Job, before and after its pods lose their finalizer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kube_in_process.components.controllers.jobs.count import Counted, delayed, tracked
from kube_in_process.components.controllers.jobs.finish import job_condition
from kube_in_process.components.controllers.jobs.indexes import (
    index_of,
    is_indexed,
    ranges,
    valid,
)
from kube_in_process.components.controllers.jobs.policies import has_failed, judged
from kube_in_process.components.objects import condition, deleting, uid
from kube_in_process.components.pods import phase
from kube_in_process.objects import Object


@dataclass(frozen=True, slots=True)
class Final:
    """The final status. ``last`` is the condition Complete or Failed, if it is new."""

    status: Object
    last: Object | None


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """The status to write first, and the pods that lose their finalizer after it (``untrack``)."""

    interim: Object
    untrack: list[Object]
    verdict: Object | None
    terminating: int

    def final(self, left: set[str], now: str) -> Final:
        """Count the pods that have lost their finalizer; ``left`` has the UIDs of the others."""
        uncounted = self.interim["uncountedTerminatedPods"]
        kept = {kind: [e for e in uids if e in left] for kind, uids in uncounted.items()}
        status = {**self.interim, "uncountedTerminatedPods": {k: v for k, v in kept.items() if v}}
        for kind, uids in uncounted.items():
            counted = len(uids) - len(kept[kind])
            if counted:
                status[kind] = status.get(kind, 0) + counted
        if self.verdict is None or any(kept.values()) or self.terminating:
            return Final(status, None)
        won = self.verdict["type"] == "SuccessCriteriaMet"
        kind = "Complete" if won else "Failed"
        last = job_condition(kind, self.verdict["reason"], self.verdict["message"], now)
        status["conditions"] = conditions_with(status, last)
        if won:
            status["completionTime"] = now
        return Final(status, last)


def outcome(job: Object, counted: Counted, now: str) -> JobOutcome:
    """The result of one sync of a Job."""
    status = {**job["status"]}
    status.pop("active", None)
    if counted.running:
        status["active"] = counted.running
    status["ready"] = counted.ready
    status["terminating"] = counted.terminating
    untrack = list(_to_untrack(counted))
    status["uncountedTerminatedPods"] = _uncounted(counted, untrack)
    if is_indexed(job):
        _add_indexes(status, counted)
    met = counted.verdict
    if met is not None and condition({"status": status}, met["type"]) is None:
        status["conditions"] = conditions_with(status, met)
    return JobOutcome(status, untrack, met, counted.terminating)


def _add_indexes(status: Object, counted: Counted) -> None:
    if counted.done:
        status["succeeded"] = len(counted.done)
        status["completedIndexes"] = ranges(counted.done)
    if counted.lost is not None:
        status["failedIndexes"] = ranges(counted.lost)


def _to_untrack(counted: Counted) -> Iterator[Object]:
    kept = {uid(pod) for pod in delayed(counted).values()}
    over = deleting(counted.job) or counted.verdict is not None
    for pod in counted.pods:
        if not tracked(pod):
            continue
        failed = has_failed(counted.job, pod) and uid(pod) not in kept
        if over or failed or phase(pod) == "Succeeded":
            yield pod


def _uncounted(counted: Counted, untrack: list[Object]) -> dict[str, list[str]]:
    """The UIDs to count next. The pods of an Indexed Job that succeeded count by their index."""
    job = counted.job
    there = {uid(pod) for pod in counted.pods if tracked(pod)}
    next_uids = {
        kind: [pod_uid for pod_uid in known if pod_uid in there]
        for kind, known in counted.uncounted.items()
    }
    for pod in untrack:
        if uid(pod) in (*next_uids["failed"], *next_uids["succeeded"]):
            continue
        if phase(pod) == "Succeeded":
            if not is_indexed(job):
                next_uids["succeeded"].append(uid(pod))
        elif _counts_as_failed(counted, pod):
            next_uids["failed"].append(uid(pod))
    return {kind: uids for kind, uids in next_uids.items() if uids}


def _counts_as_failed(counted: Counted, pod: Object) -> bool:
    """Whether the pod counts as failed: in a failed Job, every pod that has not ended does."""
    job, met = counted.job, counted.verdict
    lost = met is not None and met["type"] != "SuccessCriteriaMet"
    if not has_failed(job, pod) and not lost:
        return False
    if is_indexed(job) and not (valid(job, pod) and index_of(pod) >= 0):
        return False
    return judged(job, pod).counts


def suspension(job: Object, now: str) -> Object | None:
    """The condition Suspended if it must change."""
    suspended = bool(job["spec"].get("suspend"))
    old = condition(job, "Suspended")
    if suspended:
        new = job_condition("Suspended", "JobSuspended", "Job suspended", now)
    elif old is not None:
        new = job_condition("Suspended", "JobResumed", "Job resumed", now, status="False")
    else:
        return None
    return None if old is not None and old["status"] == new["status"] else new


def conditions_with(status: Object, new: Object) -> list[Object]:
    """The conditions of a status with ``new`` added, in place of the one of its type."""
    kept = [
        condition
        for condition in status.get("conditions") or ()
        if condition["type"] != new["type"]
    ]
    return [*kept, new]
