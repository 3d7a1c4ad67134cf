"""The Job controller: completions, retries with backoff, and counters that survive a crash.

The rules are those of k8s.io/kubernetes/pkg/controller/job (job_controller.go). A finished pod is
counted in two steps: first its UID is added to ``uncountedTerminatedPods``, then its finalizer is
removed and the counter grows.
"""

from __future__ import annotations

from collections.abc import Iterable

from kube_in_process.components.controllers.jobs.backoff import Backoff, finished_at, remaining
from kube_in_process.components.controllers.jobs.count import (
    TRACKING,
    Counted,
    condition_of,
    count,
    delayed,
    tracked,
)
from kube_in_process.components.controllers.jobs.finish import finish, verdict
from kube_in_process.components.controllers.jobs.groups import drop_group, pod_in_group
from kube_in_process.components.controllers.jobs.indexed_pods import free_indexes, give_index
from kube_in_process.components.controllers.jobs.indexes import (
    by_index,
    failures_of,
    ignored_of,
    index_of,
    is_indexed,
    valid,
)
from kube_in_process.components.controllers.jobs.policies import replaces_failed_only
from kube_in_process.components.controllers.jobs.status import (
    conditions_with,
    outcome,
    suspension,
)
from kube_in_process.components.controllers.replicasets import (
    create_pod,
    deletable,
    delete_pod,
    pod_from,
)
from kube_in_process.components.objects import (
    controller_of,
    controller_uid,
    deleting,
    finalizers,
    is_true,
    key_of,
    seconds_between,
    uid,
    without,
)
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Component, Context
from kube_in_process.runtime.views import Change, Key
from kube_in_process.storage.requests import DeleteOptions

_OWN_NAME = "kubernetes.io/job-controller"
AT_A_TIME = 500
"""The most pods that one sync creates or deletes."""

Task = tuple[str, str, str]
"""('job' or 'orphan', namespace, name): a Job, or a pod that has the finalizer and no Job."""


class JobController(Component[Task]):
    name = "job-controller"

    def __init__(self, context: Context) -> None:
        self._backoffs: dict[str, Backoff] = {}
        super().__init__(context)

    def watch(self) -> None:
        self.views["pods"].index("controller", controller_uid)
        self.views["jobs"].subscribe(self._job_changed)
        self.views["pods"].subscribe(self._pod_changed)

    def _job_changed(self, change: Change) -> None:
        """Look at a new spec at once; collect changes of the status with those of pods."""
        key = ("job", *change.key)
        old, new = change.old, change.new
        if new is None:
            self._backoffs.pop(uid(change.object), None)
            # Upstream does not wait until the garbage collector has deleted these pods.
            for pod in self.views["pods"].by("controller", uid(change.object)):
                self.queue.add(("orphan", *key_of(pod)))
        same = old and new and old["metadata"]["generation"] == new["metadata"]["generation"]
        if same and new is not None and not _over(new):
            self.queue.add_after(key, self.context.timings.job_sync)
        else:
            self.queue.add(key)

    def _pod_changed(self, change: Change) -> None:
        """Collect changes of pods for a moment, as upstream. Orphans lose the finalizer."""
        pod = change.object
        if change.new is not None and tracked(pod) and self._is_orphan(pod):
            self.queue.add(("orphan", *change.key))
        owner = controller_of(pod)
        if owner is None or owner["kind"] != "Job":
            return
        if change.old is not None or deleting(pod):
            key = ("job", change.key[0], owner["name"])
            self.queue.add_after(key, self.context.timings.job_sync)

    def _is_orphan(self, pod: Object) -> bool:
        owner = controller_of(pod)
        if owner is None or owner["kind"] != "Job":
            return True
        job = self.views["jobs"].get(key_of(pod)[0], owner["name"])
        return job is None or uid(job) != owner["uid"] or _over(job)

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
        if job is None or job["spec"].get("managedBy") not in (None, "", _OWN_NAME):
            return
        if _over(job):
            for pod in self.views["pods"].by("controller", uid(job)):
                self._untrack(pod)
            self._expire(job)
            return
        self._work(job, list(self.views["pods"].by("controller", uid(job))))

    # One sync of a Job

    def _work(self, job: Object, pods: list[Object]) -> None:
        now = self.context.now()
        status = {**(job.get("status") or {})}
        if "startTime" not in status and not job["spec"].get("suspend"):
            status["startTime"] = now
        job = {**job, "status": status}
        counted = count(job, pods)
        backoff = self._noted(job, counted)
        counted.verdict = verdict(counted, now)
        self._add_deadline(job, counted)
        if counted.verdict is not None:
            self._stop(job, counted, counted.active, untrack=False)
        else:
            managed = not deleting(job)
            if managed:
                self._manage(job, counted, backoff)
            counted.verdict = finish(counted, now)
            if managed and counted.verdict is None:
                self._suspend(job, counted)
        self._track(job, counted, backoff)

    def _noted(self, job: Object, counted: Counted) -> Backoff:
        times = (
            [finished_at(pod) for pod in pods]
            for pods in (counted.new_succeeded, counted.new_failed)
        )
        return self._backoffs.get(uid(job), Backoff()).after(*times)

    def _add_deadline(self, job: Object, counted: Counted) -> None:
        limit = job["spec"].get("activeDeadlineSeconds")
        if limit is None or counted.verdict is not None or job["spec"].get("suspend"):
            return
        left = limit - seconds_between(job["status"]["startTime"], self.context.now())
        self.queue.add_after(("job", *key_of(job)), max(left, 0.0))

    def _suspend(self, job: Object, counted: Counted) -> None:
        """After suspend or resume: set the condition, record an Event, and reset the start time."""
        changed = suspension(job, self.context.now())
        if changed is None:
            return
        self.event(job, "Normal", changed["reason"].removeprefix("Job"), changed["message"])
        job["status"]["conditions"] = conditions_with(job["status"], changed)
        if changed["status"] == "False":
            job["status"]["startTime"] = self.context.now()
        elif self.context.features.version >= (1, 36):
            job["status"].pop("startTime", None)

    def _stop(
        self, job: Object, counted: Counted, pods: Iterable[Object], *, untrack: bool
    ) -> None:
        """Delete active pods. Those without the finalizer do not count as failed."""
        for pod in pods:
            if untrack:
                self._untrack(pod)
            delete_pod(self, job, pod)
            counted.running -= 1
            counted.terminating += 1
            counted.ready -= is_true(pod, "Ready")

    def _manage(self, job: Object, counted: Counted, backoff: Backoff) -> None:
        """Delete surplus pods first; create missing ones after the backoff."""
        if job["spec"].get("suspend"):
            self._stop(job, counted, counted.active, untrack=True)
            drop_group(self, job)
            return
        wanted = _wanted(job, counted)
        surplus = _surplus(job, counted, wanted)[:AT_A_TIME]
        if surplus:
            self._stop(job, counted, surplus, untrack=True)
            return
        going = counted.terminating if replaces_failed_only(job) else 0
        missing = min(wanted - going - counted.running, AT_A_TIME)
        if missing <= 0:
            return
        pause = 0.0
        if not by_index(job):
            pause = backoff.remaining(self.context.timings.job_backoff, self.context.now())
        if pause > 0:
            self.queue.add_after(("job", *key_of(job)), pause)
            # upstream counts no pod as active then; the server refuses that while a pod is ready,
            # so nothing is counted before the pause is over
            counted.running = 0
        elif is_indexed(job):
            self._create_indexed(job, counted, missing)
        else:
            for _ in range(missing):
                self._create(job, counted, pod_from(job, finalizers=_tracking(job)))

    def _create_indexed(self, job: Object, counted: Counted, missing: int) -> None:
        before = delayed(counted)
        free = free_indexes(job, counted)[:missing]
        pauses = {index: self._pause_of(before.get(index)) for index in free}
        due = [index for index in free if not pauses[index]]
        if free and not due:
            self.queue.add_after(("job", *key_of(job)), min(pauses.values()))
        for index in due:
            pod = pod_from(job, finalizers=_tracking(job))
            give_index(pod, job, index, before.get(index))
            self._create(job, counted, pod)

    def _pause_of(self, failed: Object | None) -> float:
        if failed is None:
            return 0.0
        now = self.context.now()
        failures = failures_of(failed) + ignored_of(failed) + 1
        first = self.context.timings.job_backoff
        return remaining(failures, finished_at(failed), first, now)

    def _create(self, job: Object, counted: Counted, pod: Object) -> None:
        if create_pod(self, job, pod_in_group(self, job, pod)) is not None:
            counted.running += 1

    # The status, in two steps

    def _track(self, job: Object, counted: Counted, backoff: Backoff) -> None:
        result = outcome(job, counted, self.context.now())
        job = self._write(job, result.interim)
        self._backoffs[uid(job)] = backoff
        for pod in result.untrack:
            self._untrack(pod)
        left = [pod for pod in result.untrack if self._still_tracked(pod)]
        final = result.final({uid(pod) for pod in left}, self.context.now())
        self._write(job, final.status)
        if final.last is not None:
            self._record_end(job, final.last)

    def _still_tracked(self, pod: Object) -> bool:
        current = self.views["pods"].get(*key_of(pod))
        return current is not None and uid(current) == uid(pod) and tracked(current)

    def _record_end(self, job: Object, last: Object) -> None:
        if last["type"] == "Complete":
            self.event(job, "Normal", "Completed", "Job completed")
        else:
            self.event(job, "Warning", last["reason"], last["message"])

    def _write(self, job: Object, status: Object) -> Object:
        current = self.views["jobs"].get(*key_of(job))
        if current is not None and status == (current.get("status") or {}):
            return current
        return self.api.update("jobs", {**job, "status": status}, "status")

    def _untrack(self, pod: Object) -> None:
        current = self.views["pods"].get(*key_of(pod))
        if current is None or uid(current) != uid(pod) or not tracked(current):
            return
        kept = without(finalizers(current), TRACKING)
        patch = {"metadata": {"uid": uid(current), "finalizers": kept or None}}
        self.api.patch("pods", *key_of(current), patch)

    def _expire(self, job: Object) -> None:
        """Delete the Job with its pods after ttlSecondsAfterFinished."""
        ttl = job["spec"].get("ttlSecondsAfterFinished")
        if ttl is None or deleting(job):
            return
        last = condition_of(job, "Complete") or condition_of(job, "Failed")
        assert last is not None
        left = ttl - seconds_between(last["lastTransitionTime"], self.context.now())
        if left > 0:
            self.queue.add_after(("job", *key_of(job)), left)
        else:
            options = DeleteOptions(uid(job), propagation="Foreground")
            self.api.delete("jobs", *key_of(job), options)


def _over(job: Object) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")


def _wanted(job: Object, counted: Counted) -> int:
    """The wanted number of active pods. Without completions, none is replaced after a success."""
    parallelism: int = job["spec"].get("parallelism", 1)
    completions = job["spec"].get("completions")
    if completions is None:
        return counted.running if counted.succeeded else parallelism
    return max(min(int(completions) - counted.succeeded, parallelism), 0)


def _surplus(job: Object, counted: Counted, wanted: int) -> list[Object]:
    """The pods to delete: first wrong or repeated indexes, then in a ReplicaSet's order."""
    doomed, left = [], []
    taken: set[int] = set()
    for pod in counted.active:
        if is_indexed(job) and (not valid(job, pod) or index_of(pod) in taken):
            doomed.append(pod)
        else:
            taken.add(index_of(pod))
            left.append(pod)
    return [*doomed, *deletable(left)[: max(counted.running - wanted - len(doomed), 0)]]


def _tracking(job: Object) -> list[str]:
    given = finalizers({"metadata": job["spec"]["template"].get("metadata") or {}})
    return given if TRACKING in given else [*given, TRACKING]
