"""The CronJob controller: it makes a Job at each time of the schedule.

The rules are those of k8s.io/kubernetes/pkg/controller/cronjob (cronjob_controllerv2.go).
"""

from __future__ import annotations

import zoneinfo
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kube_in_process.components.controllers.cronjobs.times import (
    TOO_MANY,
    Due,
    due,
    job_name,
)
from kube_in_process.components.objects import (
    condition,
    controller_reference,
    controller_uid,
    deleting,
    is_true,
    key_of,
    name,
    namespace,
    refused_at_the_end,
    uid,
)
from kube_in_process.errors import NotFound, StatusError
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Component
from kube_in_process.runtime.views import Change, Key
from kube_in_process.storage.requests import DeleteOptions
from kube_in_process.text.cron import BadSchedule
from kube_in_process.text.times import timestamp

SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_LATE = 0.1
"""Seconds after a time at which the controller looks, so that no clock is before it."""
_FORBIDDEN = "Not starting job because prior execution is running and concurrency policy is Forbid"
_TOO_MANY = (
    "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
)


@dataclass(slots=True)
class _CronState:
    """A CronJob in one sync: its Jobs, and the status that it will have."""

    cron_job: Object
    jobs: list[Object]
    active: list[Object] = field(init=False)
    status: Object = field(init=False)

    def __post_init__(self) -> None:
        self.status = dict(self.cron_job.get("status") or {})
        self.active = list(self.status.pop("active", None) or ())

    def lists(self, job_uid: str) -> bool:
        return any(reference["uid"] == job_uid for reference in self.active)

    def drop(self, job_uid: str) -> None:
        self.active = [reference for reference in self.active if reference["uid"] != job_uid]

    def outcome(self) -> Object:
        return {"active": self.active, **self.status} if self.active else self.status


class CronJobController(Component[Key]):
    name = "cronjob-controller"

    def watch(self) -> None:
        self.views["jobs"].index("controller", controller_uid)
        self.views["cronjobs"].subscribe(lambda change: self.queue.add(change.key))
        self.views["jobs"].subscribe(self._job_changed)

    def _job_changed(self, change: Change) -> None:
        for reference in change.object["metadata"].get("ownerReferences") or ():
            if reference.get("controller") and reference["kind"] == "CronJob":
                self.queue.add((change.key[0], reference["name"]))

    def sync(self, key: Key) -> None:
        cron_job = self.views["cronjobs"].get(*key)
        if cron_job is None:
            return
        state = _CronState(cron_job, list(self.views["jobs"].by("controller", uid(cron_job))))
        self._look_at_jobs(state)
        if not deleting(cron_job) and not cron_job["spec"].get("suspend"):
            self._start(state)
        self._clean_up(state)
        if state.outcome() != (cron_job.get("status") or {}):
            self.api.update("cronjobs", {**cron_job, "status": state.outcome()}, "status")

    # The Jobs that there are

    def _look_at_jobs(self, state: _CronState) -> None:
        for job in state.jobs:
            if state.lists(uid(job)) and _end(job):
                state.drop(uid(job))
                text = f"Saw completed job: {name(job)}, condition: {_end(job)}"
                self.event(state.cron_job, "Normal", "SawCompletedJob", text)
            elif not state.lists(uid(job)) and not _end(job):
                text = f"Saw a job that the controller did not create or forgot: {name(job)}"
                self.event(state.cron_job, "Warning", "UnexpectedJob", text)
            elif _end(job) == "Complete":
                completed = (job.get("status") or {}).get("completionTime") or ""
                known = state.status.get("lastSuccessfulTime") or ""
                if completed > known:
                    state.status["lastSuccessfulTime"] = completed
        there = {uid(job) for job in state.jobs}
        for reference in [reference for reference in state.active if reference["uid"] not in there]:
            text = f"Active job went missing: {reference['name']}"
            self.event(state.cron_job, "Normal", "MissingJob", text)
            state.drop(reference["uid"])

    def _clean_up(self, state: _CronState) -> None:
        """Delete the oldest of the Jobs that have ended, beyond the limits of the history."""
        spec = state.cron_job["spec"]
        limits = {
            "Complete": spec.get("successfulJobsHistoryLimit"),
            "Failed": spec.get("failedJobsHistoryLimit"),
        }
        for kind, limit in limits.items():
            ended = [job for job in state.jobs if _end(job) == kind and not deleting(job)]
            if limit is not None and len(ended) > limit:
                ended.sort(key=_started)
                for job in ended[: len(ended) - limit]:
                    self._delete(state, job)

    def _delete(self, state: _CronState, job: Object) -> None:
        with suppress(NotFound):
            options = DeleteOptions(uid(job), propagation="Background")
            self.api.delete("jobs", *key_of(job), options)
        state.drop(uid(job))
        text = f"Deleted job {name(job)}"
        self.event(state.cron_job, "Normal", "SuccessfulDelete", text)

    # The next Job

    def _start(self, state: _CronState) -> None:
        cron_job, now = state.cron_job, self.context.clock.now()
        try:
            times = due(cron_job, now)
        except (BadSchedule, zoneinfo.ZoneInfoNotFoundError) as error:
            text = f"invalid schedule: {cron_job['spec']['schedule']} : {error}"
            self.event(cron_job, "Warning", "InvalidSchedule", text)
            return
        if times.next is not None:
            wait = (times.next - now).total_seconds() + _LATE
            self.queue.add_after(key_of(cron_job), wait)
        if times.missed > TOO_MANY:
            self.event(cron_job, "Warning", "TooManyMissedTimes", _TOO_MANY)
        if times.last is not None and not self._is_too_late(cron_job, times, now):
            self._run(state, times.last)

    def _is_too_late(self, cron_job: Object, times: Due, now: datetime) -> bool:
        deadline = cron_job["spec"].get("startingDeadlineSeconds")
        if deadline is None or times.last is None:
            return False
        if times.last + timedelta(seconds=deadline) >= now:
            return False
        shown = times.last.strftime("%a, %d %b %Y %H:%M:%S %z")
        text = f"Missed scheduled time to start a job: {shown}"
        self.event(cron_job, "Warning", "MissSchedule", text)
        return True

    def _run(self, state: _CronState, scheduled: datetime) -> None:
        cron_job = state.cron_job
        policy = cron_job["spec"].get("concurrencyPolicy")
        if policy == "Forbid" and state.active:
            self.event(cron_job, "Normal", "JobAlreadyActive", _FORBIDDEN)
            return
        if policy == "Replace":
            for reference in list(state.active):
                job = self.views["jobs"].get(namespace(cron_job), reference["name"])
                if job is not None:
                    self._delete(state, job)
        job = self._create(cron_job, _job(cron_job, scheduled))
        if job is None:
            return
        state.active.append(
            {
                "kind": "Job",
                "namespace": namespace(job),
                "name": name(job),
                "uid": uid(job),
                "apiVersion": "batch/v1",
                "resourceVersion": job["metadata"]["resourceVersion"],
            }
        )
        state.status["lastScheduleTime"] = timestamp(scheduled)

    def _create(self, cron_job: Object, body: Object) -> Object | None:
        """The new Job, or the one that there is already; None at the end of the namespace."""
        try:
            job = self.api.create("jobs", body)
        except StatusError as error:
            if error.reason == "AlreadyExists":
                job_there = self.api.get("jobs", *key_of(body))
                return job_there if uid(cron_job) in controller_uid(job_there) else None
            if refused_at_the_end(error):
                return None
            text = f"Error creating job: {error.message}"
            self.event(cron_job, "Warning", "FailedCreate", text)
            raise
        self.event(cron_job, "Normal", "SuccessfulCreate", f"Created job {name(job)}")
        return job


def _job(cron_job: Object, scheduled: datetime) -> Object:
    template = cron_job["spec"]["jobTemplate"]
    given = template.get("metadata") or {}
    annotations = {**(given.get("annotations") or {}), SCHEDULED_AT: _shown(scheduled)}
    return {
        "metadata": {
            "name": job_name(cron_job, scheduled),
            "namespace": namespace(cron_job),
            "labels": dict(given.get("labels") or {}),
            "annotations": annotations,
            "ownerReferences": [controller_reference(cron_job)],
        },
        "spec": template["spec"],
    }


def _shown(scheduled: datetime) -> str:
    """The time in the zone of the schedule."""
    return scheduled.isoformat(timespec="seconds").replace("+00:00", "Z")


def _end(job: Object) -> str:
    """How a Job has ended: Complete or Failed, '' if it has not."""
    return next((kind for kind in ("Complete", "Failed") if is_true(job, kind)), "")


def _started(job: Object) -> str:
    status = job.get("status") or {}
    last = condition(job, _end(job)) or {}
    return str(status.get("startTime") or last.get("lastTransitionTime") or "")
