"""When a pod of a Job has failed, and the effect of the Job's ``podFailurePolicy``.

The rules are those of k8s.io/kubernetes/pkg/controller/job (pod_failure_policy.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kube_in_process.components.objects import deleting, name, namespace
from kube_in_process.components.pods import phase
from kube_in_process.objects import Object


@dataclass(frozen=True, slots=True)
class FailureVerdict:
    """The effect of a failed pod: why the Job fails ('' if not), and whether the pod counts."""

    message: str = ""
    counts: bool = True
    action: str = ""


def replaces_failed_only(job: Object) -> bool:
    """Whether a pod that is being deleted is counted and replaced only after it has ended."""
    spec = job["spec"]
    return bool(spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy"))


def has_failed(job: Object, pod: Object) -> bool:
    if phase(pod) == "Failed":
        return True
    return not replaces_failed_only(job) and deleting(pod) and phase(pod) != "Succeeded"


def judged(job: Object, pod: Object) -> FailureVerdict:
    """The verdict of the first rule that matches a failed pod."""
    for number, rule in enumerate((job["spec"].get("podFailurePolicy") or {}).get("rules") or ()):
        why = _matched(rule, pod)
        if not why:
            continue
        action = rule["action"]
        if action == "Ignore":
            return FailureVerdict(counts=False, action=action)
        if action != "FailJob":
            return FailureVerdict(action=action)
        return FailureVerdict(f"{why} matching {action} rule at index {number}", action=action)
    return FailureVerdict()


def _matched(rule: Mapping[str, Any], pod: Object) -> str:
    shown = f"{namespace(pod)}/{name(pod)}"
    codes = rule.get("onExitCodes")
    if codes:
        status = _container(codes, pod)
        if status is None:
            return ""
        code = status["state"]["terminated"]["exitCode"]
        return f"Container {status['name']} for pod {shown} failed with exit code {code}"
    has = {
        (condition["type"], condition["status"])
        for condition in (pod.get("status") or {}).get("conditions") or ()
    }
    for wanted in rule.get("onPodConditions") or ():
        if (wanted["type"], wanted.get("status", "True")) in has:
            return f"Pod {shown} has condition {wanted['type']}"
    return ""


def _container(codes: Mapping[str, Any], pod: Object) -> Object | None:
    status = pod.get("status") or {}
    every: Iterable[Object] = (
        *(status.get("containerStatuses") or ()),
        *(status.get("initContainerStatuses") or ()),
    )
    for container_status in every:
        if codes.get("containerName") not in (None, container_status["name"]):
            continue
        ended = (container_status.get("state") or {}).get("terminated")
        if not ended or ended["exitCode"] == 0:
            continue
        if (ended["exitCode"] in codes["values"]) == (codes["operator"] == "In"):
            return container_status
    return None


def restarts_too_often(job: Object, pods: Iterable[Object]) -> bool:
    """Whether containers restarted too often; with restartPolicy OnFailure, restarts count."""
    if job["spec"]["template"]["spec"].get("restartPolicy") != "OnFailure":
        return False
    total = sum(
        container_status.get("restartCount", 0)
        for pod in pods
        if phase(pod) in ("Running", "Pending")
        for kind in ("containerStatuses", "initContainerStatuses")
        for container_status in (pod.get("status") or {}).get(kind) or ()
    )
    limit: int = job["spec"].get("backoffLimit", 6)
    return bool(total > 0 if limit == 0 else total >= limit)
