"""Jobs and CronJobs: labels from the uid, and a template that never changes."""

from __future__ import annotations

from typing import Any

from claimctl.embedded import errors
from claimctl.embedded.defaults.workloads import default_conditions, default_job
from claimctl.embedded.errors import FieldError
from claimctl.embedded.options import Features
from claimctl.embedded.strategy import Context, Strategy
from claimctl.embedded.validation.pod_specs import validate_pod_spec

Object = dict[str, Any]
_UID = "batch.kubernetes.io/controller-uid"
_NAME = "batch.kubernetes.io/job-name"
_POLICIES = ("OnFailure", "Never")
_ORPHANED = (
    "child pods are preserved by default when jobs are deleted; set "
    "propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress "
    "this warning"
)
_SUSPENDED_MUTABLE = ("nodeSelector", "affinity", "tolerations", "schedulingGates")


class JobStrategy(Strategy):
    """A Job finds its pods by its uid; deleted without options it orphans them."""

    def default(self, obj: Object, features: Features) -> None:
        default_job(obj.setdefault("spec", {}))
        status = obj.setdefault("status", {})
        for key in ("active", "succeeded", "failed"):
            if status.get(key) == 0:
                del status[key]
        default_conditions(status, ("lastProbeTime", "lastTransitionTime"))

    def prepare_create(self, obj: Object, context: Context) -> None:
        super().prepare_create(obj, context)
        obj["status"] = {}
        if not obj["spec"]["manualSelector"]:
            _generate_selector(obj)

    def validate(self, obj: Object, context: Context) -> list[FieldError]:
        return validate_job_spec(obj["spec"], "spec")

    def validate_update(self, new: Object, old: Object, context: Context) -> list[FieldError]:
        if context.subresource == "status":
            return _counters(new["status"], old.get("status") or {})
        if new["spec"] == old["spec"]:
            return []
        return [*validate_job_spec(new["spec"], "spec"), *_immutable(new, old)]

    def default_propagation(self) -> str:
        return "Orphan"

    def delete_warning(self) -> str:
        return _ORPHANED

    def selectable_names(self) -> tuple[str, ...]:
        return ("status.successful",)

    def selectable(self, obj: Object) -> dict[str, str]:
        return {"status.successful": str((obj.get("status") or {}).get("succeeded", 0))}


def _generate_selector(job: Object) -> None:
    """Both the new and the old label names, on the template; the new ones select."""
    meta, spec = job["metadata"], job["spec"]
    uid, name = meta["uid"], meta.get("name", "")
    generated = {_UID: uid, _NAME: name, "controller-uid": uid, "job-name": name}
    template = spec["template"]["metadata"]
    template["labels"] = {**(template.get("labels") or {}), **generated}
    if not meta.get("labels"):
        meta["labels"] = dict(template["labels"])
    selector = spec.setdefault("selector", {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), _UID: uid}


def validate_job_spec(spec: Object, path: str) -> list[FieldError]:
    """What is wrong with the spec of a Job, or of a CronJob's template."""
    found: list[FieldError] = []
    for key in ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds"):
        if (spec.get(key) or 0) < 0:
            text = "must be greater than or equal to 0"
            found.append(errors.invalid_value(f"{path}.{key}", spec[key], text))
    template = f"{path}.template.spec"
    found += validate_pod_spec(spec["template"]["spec"], template)
    policy = spec["template"]["spec"]["restartPolicy"]
    if policy == "Always":
        valid = ", ".join(f'"{each}"' for each in _POLICIES)
        found.append(errors.required(f"{template}.restartPolicy", f"valid values: {valid}"))
    return found


def _counters(new: Object, old: Object) -> list[FieldError]:
    """More pods cannot be ready than are active; looked at when one of both changes."""
    ready, active = new.get("ready") or 0, new.get("active", 0)
    if ready <= active or (ready, active) == (old.get("ready") or 0, old.get("active", 0)):
        return []
    text = "cannot set more ready pods than active"
    return [errors.invalid_value("status.ready", ready, text)]


def _immutable(new: Object, old: Object) -> list[FieldError]:
    found: list[FieldError] = []
    after, before = new["spec"], old["spec"]
    for key in ("completions", "selector", "completionMode", "podFailurePolicy"):
        if after.get(key) != before.get(key):
            found.append(errors.invalid_value(f"spec.{key}", after.get(key), "field is immutable"))
    started = (old.get("status") or {}).get("startTime")
    mutable = _SUSPENDED_MUTABLE if before.get("suspend") and not started else ()
    if _fixed(after["template"], mutable) != _fixed(before["template"], mutable):
        text = "field is immutable"
        found.append(errors.invalid_value("spec.template", after["template"], text))
    return found


def _fixed(template: Object, mutable: tuple[str, ...]) -> Object:
    spec = {key: value for key, value in template["spec"].items() if key not in mutable}
    return {"spec": spec} if mutable else {**template, "spec": spec}


class CronJobStrategy(Strategy):
    def default(self, obj: Object, features: Features) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("concurrencyPolicy", "Allow")
        spec.setdefault("suspend", False)
        spec.setdefault("successfulJobsHistoryLimit", 3)
        spec.setdefault("failedJobsHistoryLimit", 1)
        default_job(spec.setdefault("jobTemplate", {}).setdefault("spec", {}))
        obj.setdefault("status", {})

    def prepare_create(self, obj: Object, context: Context) -> None:
        super().prepare_create(obj, context)
        obj["status"] = {}

    def validate(self, obj: Object, context: Context) -> list[FieldError]:
        found = [] if obj["spec"].get("schedule") else [errors.required("spec.schedule")]
        return [
            *found,
            *validate_job_spec(obj["spec"]["jobTemplate"]["spec"], "spec.jobTemplate.spec"),
        ]
