"""When a Job has failed or succeeded, and the conditions that announce it."""

from __future__ import annotations

from kube_in_process.components.controllers.jobs.count import Counted, condition_of
from kube_in_process.components.controllers.jobs.indexes import is_indexed, success_rule
from kube_in_process.components.controllers.jobs.policies import (
    has_failed,
    judged,
    restarts_too_often,
)
from kube_in_process.components.objects import made_condition, seconds_between
from kube_in_process.objects import Object


def verdict(counted: Counted, now: str) -> Object | None:
    """The condition that makes a Job stop its pods, before pods are created or deleted."""
    job = counted.job
    old = condition_of(job, "SuccessCriteriaMet") or condition_of(job, "FailureTarget")
    if old is not None:
        return old
    for pod in counted.pods if job["spec"].get("podFailurePolicy") else ():
        message = judged(job, pod).message if has_failed(job, pod) else ""
        if message:
            return failure("PodFailurePolicy", message, now)
    return _too_much(counted, now) or (_by_index(counted, now) if is_indexed(job) else None)


def _too_much(counted: Counted, now: str) -> Object | None:
    job = counted.job
    spec = job["spec"]
    if counted.failed > spec.get("backoffLimit", 6) or restarts_too_often(job, counted.pods):
        return failure("BackoffLimitExceeded", "Job has reached the specified backoff limit", now)
    limit, started = spec.get("activeDeadlineSeconds"), job["status"].get("startTime")
    if limit is None or started is None or spec.get("suspend"):
        return None
    if seconds_between(started, now) < limit:
        return None
    return failure("DeadlineExceeded", "Job was active longer than specified deadline", now)


def _by_index(counted: Counted, now: str) -> Object | None:
    spec, lost = counted.job["spec"], counted.lost
    if lost is not None:
        most = spec.get("maxFailedIndexes")
        if most is not None and len(lost) > most:
            message = "Job has exceeded the specified maximal number of failed indexes"
            return failure("MaxFailedIndexesExceeded", message, now)
        if lost and len(lost) + len(counted.done) >= spec["completions"]:
            return failure("FailedIndexes", "Job has failed indexes", now)
    rule = success_rule(spec.get("successPolicy"), counted.done)
    if rule is None:
        return None
    message = f"Matched rules at index {rule}"
    return job_condition("SuccessCriteriaMet", "SuccessPolicy", message, now)


def finish(counted: Counted, now: str) -> Object | None:
    """The condition SuccessCriteriaMet if enough pods have succeeded."""
    wanted = counted.job["spec"].get("completions")
    if wanted is None:
        done = counted.succeeded > 0 and not counted.running
    else:
        done = counted.succeeded >= wanted
    if not done:
        return None
    message = "Reached expected number of succeeded pods"
    return job_condition("SuccessCriteriaMet", "CompletionsReached", message, now)


def failure(reason: str, message: str, now: str) -> Object:
    return job_condition("FailureTarget", reason, message, now)


def job_condition(kind: str, reason: str, message: str, now: str, status: str = "True") -> Object:
    """A condition of a Job."""
    return {**made_condition(kind, status, reason, message, now), "lastProbeTime": now}
