"""Jobs and CronJobs: generated labels, and an immutable template."""

from __future__ import annotations

import zoneinfo
from typing import Any

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.defaults.workloads import (
    default_conditions,
    default_job,
    default_template,
)
from kube_in_process.kinds.strategy import WriteContext
from kube_in_process.kinds.validation.amounts import not_negative
from kube_in_process.kinds.validation.go_text import STRUCTS, go_text
from kube_in_process.kinds.validation.job_specs import job_errors
from kube_in_process.kinds.validation.label_selectors import label_selector
from kube_in_process.kinds.validation.pod_warnings import TemplateStrategy
from kube_in_process.kinds.validation.templates import mismatch, shown_selector
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.text import names
from kube_in_process.text.cron import BadSchedule, parse

_UID = "batch.kubernetes.io/controller-uid"
_NAME = "batch.kubernetes.io/job-name"
_CONCURRENCY = ("Allow", "Forbid", "Replace")
_ORPHANED = (
    "child pods are preserved by default when jobs are deleted; set "
    "propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress "
    "this warning"
)
_CRON_LIMIT = 52
"""The names of a CronJob's Jobs are 11 characters longer than its own."""
_SUSPENDED_MUTABLE = ("nodeSelector", "affinity", "tolerations", "schedulingGates")


class JobStrategy(TemplateStrategy):
    """A Job selects its pods by its uid. A deletion without options orphans them."""

    status_keeps = ()

    def default(self, obj: Object, features: Features) -> None:
        default_job(obj.setdefault("spec", {}))
        status = obj.setdefault("status", {})
        for key in ("active", "succeeded", "failed"):
            if status.get(key) == 0:
                del status[key]
        default_conditions(status, ("lastProbeTime", "lastTransitionTime"))
        labels = obj["spec"]["template"]["metadata"].get("labels")
        if labels and not obj["metadata"].get("labels"):
            # one map, as in Go, so that a create gives both the labels that it generates
            obj["metadata"]["labels"] = labels

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        super().prepare_create(obj, context)
        obj["status"] = {}
        if not obj["spec"]["manualSelector"]:
            _generate_selector(obj)

    def is_complete(self, body: Object) -> bool:
        """Whether the template has labels, even none: Go then keeps one map in both places."""
        value: Any = body
        for key in ("spec", "template", "metadata", "labels"):
            value = value.get(key) if isinstance(value, dict) else None
        return value is not None

    def read_back(self, obj: Object) -> bool:
        """Show a Job without labels with those of its template."""
        labels = obj["spec"]["template"]["metadata"].get("labels")
        if obj["metadata"].get("labels") or not labels:
            return False
        obj["metadata"]["labels"] = dict(labels)
        return True

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        spec = obj["spec"]
        field_errors = job_errors(spec, "spec")
        selector = spec.get("selector")
        if selector is None:
            field_errors.append(errors.required("spec.selector"))
        else:
            field_errors += label_selector(selector, "spec.selector")
        field_errors += mismatch(selector, spec["template"])
        return [*_hostname(obj), *field_errors]

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        if context.subresource == "status":
            before = old.get("status") or {}
            return [*_status(new["status"], before), *_started(new, before, context.features)]
        field_errors = _generated(new)
        if new["spec"] == old["spec"]:
            return field_errors
        return [
            *field_errors,
            *self.validate(new, context),
            *_immutable(new, old, context.features),
        ]

    def default_propagation(self) -> str:
        return "Orphan"

    def delete_warning(self) -> str:
        return _ORPHANED

    def selectable_names(self) -> tuple[str, ...]:
        return ("status.successful",)

    def selectable(self, obj: Object) -> dict[str, str]:
        return {"status.successful": str((obj.get("status") or {}).get("succeeded", 0))}


def _hostname(job: Object) -> list[FieldError]:
    """The pods of an Indexed Job have their index in the host name."""
    spec, name = job["spec"], job["metadata"].get("name", "")
    last = f"{name}-{(spec.get('completions') or 0) - 1}"
    if spec.get("completionMode") != "Indexed" or not spec.get("completions"):
        return []
    text = f"will not able to create pod with invalid DNS label: {last}"
    return [errors.invalid_value("metadata.name", name, text)] if names.label(last) else []


def _status(new: Object, old: Object) -> list[FieldError]:
    """No more pods can be ready than active. This is checked when one of both changes."""
    field_errors = not_negative(new, ("active", "succeeded", "failed", "ready"), "status")
    ready, active = new.get("ready") or 0, new.get("active") or 0
    same = (ready, active) == (old.get("ready") or 0, old.get("active") or 0)
    if new.get("ready") is not None and ready > active and not same:
        text = "cannot set more ready pods than active"
        field_errors.append(errors.invalid_value("status.ready", ready, text))
    return field_errors


def _started(job: Object, before: Object, features: Features) -> list[FieldError]:
    """The start time of a started Job cannot change, unless the Job is or was suspended."""
    old, new = before.get("startTime"), job["status"].get("startTime")
    conditions = before.get("conditions") or []
    resumed = any(c["type"] == "Suspended" and c["status"] == "True" for c in conditions)
    if not old or new == old or job["spec"].get("suspend") or resumed:
        return []
    path = "status.startTime"
    if features.version < (1, 35):
        text = "startTime cannot be removed for unsuspended job"
        return [errors.required(path, text)]
    return [errors.invalid_value(path, new, "field is immutable for unsuspended job once set")]


def _generated(job: Object) -> list[FieldError]:
    """The generated labels and selector must have the uid and the name of the Job."""
    spec, uid = job["spec"], job["metadata"].get("uid", "")
    selector = spec.get("selector")
    if spec.get("manualSelector") or selector is None:
        return []
    labels = spec["template"]["metadata"].get("labels") or {}
    field_errors = []
    for key, value in _labels_of(job).items():
        where, text = f"spec.template.metadata.labels[{key}]", f"must be '{value}'"
        if key not in labels:
            field_errors.append(errors.required(where, text))
        elif labels[key] != value:
            field_errors.append(errors.invalid_value(where, labels, text))
    if (selector.get("matchLabels") or {}).get(_UID) != uid:
        text = "`selector` not auto-generated"
        field_errors.append(errors.invalid_text("spec.selector", shown_selector(selector), text))
    return field_errors


def _labels_of(job: Object) -> dict[str, str]:
    """The labels that the server generates, under their new and old names."""
    uid, name = job["metadata"].get("uid", ""), job["metadata"].get("name", "")
    return {_UID: uid, _NAME: name, "controller-uid": uid, "job-name": name}


def _generate_selector(job: Object) -> None:
    """Add the new and the old label names to the template. The selector uses the new ones."""
    meta, spec = job["metadata"], job["spec"]
    uid, generated = meta["uid"], _labels_of(job)
    template = spec["template"]["metadata"]
    shared = template.get("labels") is meta.get("labels") is not None
    template["labels"] = {**(template.get("labels") or {}), **generated}
    if shared:
        meta["labels"] = dict(template["labels"])
    selector = spec.setdefault("selector", {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), _UID: uid}


def _immutable(new: Object, old: Object, features: Features) -> list[FieldError]:
    field_errors: list[FieldError] = []
    after, before = new["spec"], old["spec"]
    field_errors += _completions(after, before)
    if after.get("selector") != before.get("selector"):
        shown = shown_selector(after.get("selector"))
        field_errors.append(errors.invalid_text("spec.selector", shown, "field is immutable"))
    status = old.get("status") or {}
    begun = status.get("startTime") or status.get("active")
    mutable = _SUSPENDED_MUTABLE if before.get("suspend") and not begun else ()
    if _fixed(after["template"], mutable) != _fixed(before["template"], mutable):
        path = "spec.template.spec" if mutable and features.version >= (1, 36) else "spec.template"
        field_errors.append(errors.invalid_value(path, after["template"], "field is immutable"))
    for key in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex"):
        if after.get(key) != before.get(key):
            struct = STRUCTS["pod_failure_policy"] if key == "podFailurePolicy" else None
            shown = go_text(after.get(key), struct)
            field_errors.append(errors.invalid_text(f"spec.{key}", shown, "field is immutable"))
    return field_errors


def _completions(after: Object, before: Object) -> list[FieldError]:
    """In an Indexed Job, completions change together with parallelism; else they are immutable."""
    wanted = after.get("completions")
    if wanted == before.get("completions"):
        return []
    path = "spec.completions"
    if wanted is None and after.get("completionMode") == "Indexed":
        # The rules of a whole Job require it.
        return []
    if after.get("completionMode") != "Indexed":
        return [errors.invalid_value(path, wanted, "field is immutable")]
    if wanted != after.get("parallelism"):
        text = "can only be modified in tandem with spec.parallelism"
        return [errors.invalid_value(path, wanted, text)]
    return []


def _fixed(template: Object, mutable: tuple[str, ...]) -> Object:
    spec = {key: value for key, value in template["spec"].items() if key not in mutable}
    return {"spec": spec} if mutable else {**template, "spec": spec}


class CronJobStrategy(TemplateStrategy):
    pod_spec = ("spec", "jobTemplate", "spec", "template", "spec")
    revalidates = False
    status_alone = True
    status_keeps = ()

    def default(self, obj: Object, features: Features) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("concurrencyPolicy", "Allow")
        spec.setdefault("suspend", False)
        spec.setdefault("successfulJobsHistoryLimit", 3)
        spec.setdefault("failedJobsHistoryLimit", 1)
        template = spec.setdefault("jobTemplate", {})
        template.setdefault("metadata", {})
        default_template(template.setdefault("spec", {}))
        obj.setdefault("status", {})

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        super().prepare_create(obj, context)
        obj["status"] = {}

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        spec = obj["spec"]
        field_errors = job_errors(spec["jobTemplate"]["spec"], "spec.jobTemplate.spec")
        name = obj["metadata"].get("name") or ""
        if len(name) > _CRON_LIMIT:
            text = f"must be no more than {_CRON_LIMIT} characters"
            field_errors.append(errors.invalid_value("metadata.name", name, text))
        field_errors += not_negative(spec, ("startingDeadlineSeconds",), "spec")
        field_errors += _schedule(spec.get("schedule") or "")
        field_errors += _time_zone(spec.get("timeZone"))
        policy = spec.get("concurrencyPolicy") or ""
        if policy not in _CONCURRENCY:
            where = "spec.concurrencyPolicy"
            field_errors.append(errors.not_supported(where, policy, _CONCURRENCY))
        numbers = ("successfulJobsHistoryLimit", "failedJobsHistoryLimit")
        return [*field_errors, *not_negative(spec, numbers, "spec")]


def _schedule(schedule: str) -> list[FieldError]:
    if not schedule:
        return [errors.required("spec.schedule")]
    if "TZ" in schedule:
        text = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        return [errors.invalid_value("spec.schedule", schedule, text)]
    try:
        parse(schedule)
    except BadSchedule as why:
        return [errors.invalid_value("spec.schedule", schedule, str(why))]
    return []


def _time_zone(name: str | None) -> list[FieldError]:
    """The errors of spec.timeZone: it is a name of the time zone database."""
    path = "spec.timeZone"
    if name is None:
        return []
    if not name:
        return [errors.invalid_value(path, name, "timeZone must be nil or non-empty string")]
    if name.lower() == "local":
        zones = "https://www.iana.org/time-zones"
        text = f"timeZone must be an explicit time zone as defined in {zones}"
        return [errors.invalid_value(path, name, text)]
    if name in zoneinfo.available_timezones():
        return []
    return [errors.invalid_value(path, name, f"unknown time zone {name}")]
