"""The defaults of apps and batch."""

from __future__ import annotations

from kube_in_process.kinds.defaults.pods import default_pod_spec
from kube_in_process.kinds.defaults.storage import default_claim
from kube_in_process.objects import Object

_QUARTER = {"maxUnavailable": "25%", "maxSurge": "25%"}


def default_template(spec: Object) -> None:
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    default_pod_spec(template.setdefault("spec", {}))


def _fill(target: Object, defaults: Object) -> None:
    for key, value in defaults.items():
        if target.get(key) is None:
            target[key] = value


def default_deployment(spec: Object) -> None:
    default_template(spec)
    _fill(spec, {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600})
    if not spec.get("paused"):
        spec.pop("paused", None)
    strategy = spec.setdefault("strategy", {})
    _fill(strategy, {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {**_QUARTER, **(strategy.get("rollingUpdate") or {})}


def default_replica_set(spec: Object) -> None:
    default_template(spec)
    _fill(spec, {"replicas": 1})


def default_replication_controller(spec: Object) -> None:
    if spec.get("template") is not None:
        default_template(spec)
    _fill(spec, {"replicas": 1})


def default_stateful_set(spec: Object) -> None:
    default_template(spec)
    _fill(spec, {"replicas": 1, "revisionHistoryLimit": 10, "podManagementPolicy": "OrderedReady"})
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        _fill(strategy["rollingUpdate"], {"partition": 0})
    for claim in spec.get("volumeClaimTemplates") or []:
        claim |= {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}
        default_claim(claim)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    _fill(retention, {"whenDeleted": "Retain", "whenScaled": "Retain"})


def default_daemon_set(spec: Object) -> None:
    default_template(spec)
    _fill(spec, {"revisionHistoryLimit": 10})
    strategy = spec.setdefault("updateStrategy", {})
    _fill(strategy, {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        _fill(strategy.setdefault("rollingUpdate", {}), {"maxUnavailable": 1, "maxSurge": 0})


def default_job(spec: Object) -> None:
    """By default, a Job needs one pod to succeed."""
    default_template(spec)
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    replaced = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    _fill(
        spec,
        {
            "parallelism": 1,
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "suspend": False,
            "manualSelector": False,
            "podReplacementPolicy": replaced,
        },
    )
    if spec.get("backoffLimitPerIndex") is not None and spec["backoffLimit"] == 6:
        spec["backoffLimit"] = 2147483647


def default_conditions(status: Object, times: tuple[str, ...]) -> None:
    """Missing times of conditions are null, not absent."""
    for condition in status.get("conditions") or []:
        for key in times:
            condition.setdefault(key, None)
