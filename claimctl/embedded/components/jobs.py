"""The Job controller: completions, retries with backoff, and counters that survive a crash.

A finished pod is counted in two steps, with its finalizer taken off in between: first its UID
stands in ``uncountedTerminatedPods``, then the counter goes up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from claimctl.embedded.components.job_status import Counted, condition_of, count, indexes, ranges
from claimctl.embedded.components.objects import (
    controller_of,
    controller_uid,
    deleting,
    finalizers,
    is_true,
    key_of,
    name,
    uid,
    without,
)
from claimctl.embedded.components.pods import ended, ready
from claimctl.embedded.components.replicasets import pod_from
from claimctl.embedded.errors import StatusError
from claimctl.embedded.requests import DeleteOptions
from claimctl.embedded.runtime import Component, Context
from claimctl.embedded.views import Change, Key, Object

TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
MAX_BACKOFF = 600.0


@dataclass
class _Backoff:
    """Failures since the last success, and when the last of them was seen."""

    failures: int = 0
    last: float = 0.0
    seen: dict[str, None] = field(default_factory=dict)


Task = tuple[str, str, str]
"""('job' or 'orphan', namespace, name): a Job, or a pod without a Job that has the finalizer."""


class JobController(Component[Task]):
    name = "job-controller"

    def __init__(self, context: Context) -> None:
        self._backoffs: dict[str, _Backoff] = {}
        self._ended_at: dict[str, float] = {}
        super().__init__(context)

    def watch(self) -> None:
        self.views["pods"].index("controller", controller_uid)
        self.views["jobs"].subscribe(self._job_changed)
        self.views["pods"].subscribe(self._pod_changed)

    def _job_changed(self, change: Change) -> None:
        if change.new is None:
            self._backoffs.pop(uid(change.object), None)
        self.queue.add(("job", *change.key))

    def _pod_changed(self, change: Change) -> None:
        """Changes of pods are gathered for a moment, as upstream; orphans lose the finalizer."""
        pod = change.object
        if change.new is not None and TRACKING in finalizers(pod) and self._is_orphan(pod):
            self.queue.add(("orphan", *change.key))
        owner = controller_of(pod)
        if owner is None or owner["kind"] != "Job":
            return
        if ended(pod) or deleting(pod):
            self._ended_at.setdefault(uid(pod), self.context.clock.monotonic())
        if change.new is None:
            self._ended_at.pop(uid(pod), None)
        if change.old is not None or deleting(pod):
            key = ("job", change.key[0], owner["name"])
            self.queue.add_after(key, self.context.timings.job_sync)

    def _is_orphan(self, pod: Object) -> bool:
        owner = controller_of(pod)
        if owner is None or owner["kind"] != "Job":
            return True
        job = self.views["jobs"].get(key_of(pod)[0], owner["name"])
        return job is None or uid(job) != owner["uid"]

    def sync(self, key: Task) -> None:
        kind, space, plain = key
        if kind == "job":
            self._sync_job((space, plain))
            return
        pod = self.views["pods"].get(space, plain)
        if pod is not None and self._is_orphan(pod):
            self._untrack(pod)

    def _sync_job(self, key: Key) -> None:
        job = self.views["jobs"].get(*key)
        if job is None:
            return
        pods = list(self.views["pods"].by("controller", uid(job)))
        if _over(job):
            for pod in pods:
                self._untrack(pod)
            self._expire(job)
            return
        self._work(job, pods)

    # One look at a Job

    def _work(self, job: Object, pods: list[Object]) -> None:
        counted = count(job, pods, TRACKING)
        self._note_failures(job, counted)
        verdict = self._verdict(job, counted)
        suspended = bool(job["spec"].get("suspend"))
        if verdict is not None or (suspended and not deleting(job)):
            counted = self._stop(job, pods, counted)
        elif not deleting(job):
            counted = self._manage(job, counted)
        status = self._status(job, counted, verdict)
        self._track(job, counted, status, verdict)

    def _note_failures(self, job: Object, counted: Counted) -> None:
        backoff = self._backoffs.setdefault(uid(job), _Backoff())
        for pod in counted.new_succeeded:
            if uid(pod) not in backoff.seen:
                backoff.seen[uid(pod)] = None
                backoff.failures = 0
        for pod in counted.new_failed:
            if uid(pod) not in backoff.seen:
                backoff.seen[uid(pod)] = None
                backoff.failures += 1
                backoff.last = self._ended_at.get(uid(pod), self.context.clock.monotonic())

    def _verdict(self, job: Object, counted: Counted) -> Object | None:
        """Conditions SuccessCriteriaMet or FailureTarget, once they are due."""
        old = condition_of(job, "FailureTarget") or condition_of(job, "SuccessCriteriaMet")
        if old is not None:
            return old
        spec, now = job["spec"], self.context.now()
        if counted.total_failed > spec.get("backoffLimit", 6):
            message = "Job has reached the specified backoff limit"
            return _condition("FailureTarget", "BackoffLimitExceeded", message, now)
        if self._past_deadline(job):
            message = "Job was active longer than specified deadline"
            return _condition("FailureTarget", "DeadlineExceeded", message, now)
        wanted = spec.get("completions")
        if wanted is None:
            done = counted.total_succeeded > 0 and not counted.active
        else:
            done = counted.total_succeeded >= wanted
        if not done:
            return None
        message = "Reached expected number of succeeded pods"
        return _condition("SuccessCriteriaMet", "CompletionsReached", message, now)

    def _past_deadline(self, job: Object) -> bool:
        limit = job["spec"].get("activeDeadlineSeconds")
        started = (job.get("status") or {}).get("startTime")
        if limit is None or started is None:
            return False
        left: float = limit - seconds_since(started, self.context.now())
        if left > 0:
            self.queue.add_after(("job", *key_of(job)), left)
        return left <= 0

    def _stop(self, job: Object, pods: list[Object], counted: Counted) -> Counted:
        """No pod is wanted any more; those of a suspended Job do not count as failed."""
        for pod in counted.active:
            if job["spec"].get("suspend"):
                self._untrack(pod)
            self._delete(job, pod)
        gone = {uid(pod) for pod in counted.active}
        now = [self.views["pods"].get(*key_of(pod)) for pod in pods]
        left = [pod for pod in now if pod is not None]
        return count(job, left, TRACKING) if gone else counted

    def _manage(self, job: Object, counted: Counted) -> Counted:
        spec = job["spec"]
        wanted = spec.get("parallelism", 1)
        if spec.get("completions") is not None:
            wanted = min(wanted, spec["completions"] - counted.total_succeeded)
        elif counted.total_succeeded:
            wanted = len(counted.active)
        busy = len(counted.active)
        if spec.get("podReplacementPolicy") == "Failed":
            busy += len(counted.terminating)
        for pod in counted.active[max(wanted, 0) :]:
            self._delete(job, pod)
        missing = wanted - busy
        if missing <= 0 or self._backs_off(job):
            return counted
        return counted.with_created(self._create_many(job, counted, missing))

    def _backs_off(self, job: Object) -> bool:
        """After a failure the next pod waits 10 s, then 20, 40..."""
        backoff = self._backoffs[uid(job)]
        if not backoff.failures:
            return False
        pause = self.context.timings.job_backoff * 2.0 ** (backoff.failures - 1)
        due = backoff.last + min(pause, MAX_BACKOFF)
        left = due - self.context.clock.monotonic()
        if left > 0:
            self.queue.add_after(("job", *key_of(job)), left)
        return left > 0

    def _create_many(self, job: Object, counted: Counted, missing: int) -> list[Object]:
        free = indexes(job, counted, INDEX)
        created = []
        for number in range(missing):
            pod = pod_from(job, finalizers=[TRACKING])
            if free is not None:
                if number >= len(free):
                    break
                _number(pod, name(job), free[number])
            made = self.api.create("pods", pod)
            created.append(made)
            self.event(job, "Normal", "SuccessfulCreate", f"Created pod: {name(made)}")
        return created

    def _delete(self, job: Object, pod: Object) -> None:
        try:
            self.api.delete("pods", *key_of(pod), DeleteOptions(uid(pod)))
        except StatusError as error:
            if error.reason != "NotFound":
                raise
        self.event(job, "Normal", "SuccessfulDelete", f"Deleted pod: {name(pod)}")

    # Status, in two steps

    def _status(self, job: Object, counted: Counted, verdict: Object | None) -> Object:
        old = job.get("status") or {}
        suspended = bool(job["spec"].get("suspend"))
        status = {
            key: old[key]
            for key in ("conditions", "startTime", "succeeded", "failed", "completedIndexes")
            if key in old
        }
        if not suspended and "startTime" not in status:
            status["startTime"] = self.context.now()
        if suspended:
            status.pop("startTime", None)
        status |= {
            "terminating": len(counted.terminating),
            "uncountedTerminatedPods": counted.uncounted(),
            "ready": sum(1 for pod in counted.active if ready(pod)),
        }
        if counted.active:
            status["active"] = len(counted.active)
        if verdict is not None:
            status["conditions"] = _with(status, verdict)
        return self._with_suspension(job, status)

    def _with_suspension(self, job: Object, status: Object) -> Object:
        now = self.context.now()
        if job["spec"].get("suspend"):
            new = _condition("Suspended", "JobSuspended", "Job suspended", now)
        elif condition_of(job, "Suspended") is not None:
            new = _condition("Suspended", "JobResumed", "Job resumed", now, status="False")
        else:
            return status
        old = condition_of(job, "Suspended")
        if old is not None and old["status"] == new["status"]:
            return status
        self.event(job, "Normal", new["reason"].removeprefix("Job"), new["message"])
        return {**status, "conditions": _with(status, new)}

    def _track(self, job: Object, counted: Counted, status: Object, verdict: Object | None) -> None:
        job = self._write(job, status)
        for pod in (*counted.new_succeeded, *counted.new_failed):
            self._untrack(pod)
        done = verdict is not None and not counted.active and not counted.terminating
        final = {**status, "uncountedTerminatedPods": {}}
        for key, found in (("succeeded", counted.new_succeeded), ("failed", counted.new_failed)):
            if found:
                final[key] = status.get(key, 0) + len(found)
        if job["spec"].get("completionMode") == "Indexed":
            final["completedIndexes"] = ranges(counted.completed(INDEX))
        if done and verdict is not None:
            final = self._finished(job, final, verdict)
        self._write(job, final)

    def _finished(self, job: Object, status: Object, verdict: Object) -> Object:
        now = self.context.now()
        won = verdict["type"] == "SuccessCriteriaMet"
        kind = "Complete" if won else "Failed"
        last = _condition(kind, verdict["reason"], verdict["message"], now)
        if won:
            self.event(job, "Normal", "Completed", "Job completed")
            status = {**status, "completionTime": now}
        else:
            self.event(job, "Warning", verdict["reason"], verdict["message"])
        return {**status, "conditions": _with(status, last)}

    def _write(self, job: Object, status: Object) -> Object:
        if status == (job.get("status") or {}):
            return job
        return self.api.update("jobs", {**job, "status": status}, "status")

    def _untrack(self, pod: Object) -> None:
        current = self.views["pods"].get(*key_of(pod))
        if current is None or TRACKING not in finalizers(current):
            return
        kept = without(finalizers(current), TRACKING)
        patch = {"metadata": {"uid": uid(current), "finalizers": kept or None}}
        self.api.patch("pods", *key_of(current), patch)

    def _expire(self, job: Object) -> None:
        """ttlSecondsAfterFinished: the Job goes, and its pods with it."""
        ttl = job["spec"].get("ttlSecondsAfterFinished")
        if ttl is None or deleting(job):
            return
        last = condition_of(job, "Complete") or condition_of(job, "Failed")
        assert last is not None
        left = ttl - seconds_since(last["lastTransitionTime"], self.context.now())
        if left > 0:
            self.queue.add_after(("job", *key_of(job)), left)
        else:
            options = DeleteOptions(uid(job), propagation="Foreground")
            self.api.delete("jobs", *key_of(job), options)


def seconds_since(then: str, now: str) -> float:
    """Between two timestamps of the API."""
    return (datetime.fromisoformat(now) - datetime.fromisoformat(then)).total_seconds()


def _over(job: Object) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")


def _condition(kind: str, reason: str, message: str, now: str, status: str = "True") -> Object:
    times = {"lastProbeTime": now, "lastTransitionTime": now}
    return {"type": kind, "status": status, **times, "reason": reason, "message": message}


def _with(status: Object, new: Object) -> list[Object]:
    kept = [each for each in status.get("conditions") or () if each["type"] != new["type"]]
    return [*kept, new]


def _number(pod: Object, job: str, index: int) -> None:
    metadata = pod["metadata"]
    metadata["generateName"] = f"{job}-{index}-"
    metadata["annotations"] = {**metadata["annotations"], INDEX: str(index)}
    metadata["labels"] = {**metadata["labels"], INDEX: str(index)}
