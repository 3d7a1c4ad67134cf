"""The status of a Deployment: counters, and the conditions Available and Progressing."""

from __future__ import annotations

from kube_in_process.components.controllers.deployments.rollout import (
    counted,
    max_unavailable,
    replicas,
)
from kube_in_process.components.objects import condition, name
from kube_in_process.objects import Object

NEW_CREATED = "NewReplicaSetCreated"
FOUND = "FoundNewReplicaSet"
UPDATED = "ReplicaSetUpdated"
AVAILABLE = "NewReplicaSetAvailable"
PAUSED, RESUMED = "DeploymentPaused", "DeploymentResumed"
TIMED_OUT = "ProgressDeadlineExceeded"
_NO_DEADLINE = 2**31 - 1


def has_deadline(deployment: Object) -> bool:
    """A Deployment without a progress deadline has no condition Progressing."""
    return bool(deployment["spec"].get("progressDeadlineSeconds", 600) != _NO_DEADLINE)


def calculated(
    deployment: Object,
    replica_sets: list[Object],
    new: Object | None,
    version: tuple[int, int],
    now: str,
) -> Object:
    """The status with the sums over the ReplicaSets, and the condition Available."""
    total = sum(replicas(replica_set) for replica_set in replica_sets)
    available = sum(counted(replica_set, "availableReplicas") for replica_set in replica_sets)
    counters = {
        "replicas": sum(counted(replica_set, "replicas") for replica_set in replica_sets),
        "updatedReplicas": 0 if new is None else counted(new, "replicas"),
        "readyReplicas": sum(counted(replica_set, "readyReplicas") for replica_set in replica_sets),
        "availableReplicas": available,
        "unavailableReplicas": max(total - available, 0),
    }
    status: Object = {"observedGeneration": deployment["metadata"]["generation"]}
    status |= {key: value for key, value in counters.items() if value}
    if version >= (1, 36):
        status["terminatingReplicas"] = sum(
            counted(replica_set, "terminatingReplicas") for replica_set in replica_sets
        )
    before = deployment.get("status") or {}
    if "collisionCount" in before:
        status["collisionCount"] = before["collisionCount"]
    enough = available >= replicas(deployment) - max_unavailable(deployment)
    return _with_condition({**status, "conditions": before.get("conditions") or []}, {
        "type": "Available",
        "status": "True" if enough else "False",
        "reason": "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
        "message": f"Deployment {'has' if enough else 'does not have'} minimum availability.",
    }, now)  # fmt: skip


def progressed(deployment: Object, status: Object, new: Object | None, now: str) -> Object:
    """The status with the condition Progressing, after a look at the rollout."""
    if not has_deadline(deployment):
        return _without(status, "Progressing")
    old = condition(deployment, "Progressing")
    settled = status.get("replicas", 0) == status.get("updatedReplicas", 0)
    if settled and old is not None and old.get("reason") == AVAILABLE:
        return status
    shown = f'ReplicaSet "{name(new)}"' if new else f'Deployment "{name(deployment)}"'
    if complete({**deployment, "status": status}):
        return _progressing(status, AVAILABLE, f"{shown} has successfully progressed.", now)
    if _advanced(deployment.get("status") or {}, status):
        return _renewed(status, UPDATED, f"{shown} is progressing.", now)
    return status


def _renewed(status: Object, reason: str, message: str, now: str) -> Object:
    """The status with progress of now, even if the reason is the same as before."""
    old = next((e for e in status["conditions"] if e["type"] == "Progressing"), None)
    if old is None or old["status"] != "True":
        return _progressing(status, reason, message, now)
    since = old["lastTransitionTime"]
    renewed = _progressing(_without(status, "Progressing"), reason, message, now)
    renewed["conditions"][-1]["lastTransitionTime"] = since
    return renewed


def with_pause(deployment: Object, *, paused: bool, now: str) -> Object:
    """The status after a pause began or ended."""
    reason, word = (PAUSED, "paused") if paused else (RESUMED, "resumed")
    progress = {
        "type": "Progressing",
        "status": "Unknown",
        "reason": reason,
        "message": f"Deployment is {word}",
    }
    return _with_condition(deployment.get("status") or {}, progress, now)


def _without(status: Object, kind: str) -> Object:
    kept = [condition for condition in status.get("conditions") or () if condition["type"] != kind]
    return {**status, "conditions": kept}


def with_progress(deployment: Object, reason: str, replica_set: str, now: str) -> Object:
    """The status after a ReplicaSet was made or found for the template."""
    words = "Created new" if reason == NEW_CREATED else "Found new"
    status = deployment.get("status") or {}
    return _progressing(status, reason, f'{words} replica set "{replica_set}"', now)


def complete(deployment: Object) -> bool:
    """Whether all replicas are of the current template and available, and no other pods exist."""
    status = deployment.get("status") or {}
    counters = ("updatedReplicas", "replicas", "availableReplicas")
    wanted = replicas(deployment)
    seen = status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
    return seen and all(status.get(counter, 0) == wanted for counter in counters)


def _advanced(old: Object, new: Object) -> bool:
    def outdated(status: Object) -> int:
        number: int = status.get("replicas", 0) - status.get("updatedReplicas", 0)
        return number

    counters = ("updatedReplicas", "readyReplicas", "availableReplicas")
    grown = any(new.get(counter, 0) > old.get(counter, 0) for counter in counters)
    return grown or outdated(new) < outdated(old)


def _progressing(status: Object, reason: str, message: str, now: str) -> Object:
    progress = {"type": "Progressing", "status": "True", "reason": reason, "message": message}
    return _with_condition(status, progress, now)


def _with_condition(status: Object, new: Object, now: str) -> Object:
    """The condition at the end of the list; unchanged if its status and reason are the same."""
    conditions = list(status.get("conditions") or ())
    old = next((condition for condition in conditions if condition["type"] == new["type"]), None)
    if old is not None and (old["status"], old["reason"]) == (new["status"], new["reason"]):
        return status
    since = old["lastTransitionTime"] if old and old["status"] == new["status"] else now
    kept = [condition for condition in conditions if condition["type"] != new["type"]]
    dated = {**new, "lastUpdateTime": now, "lastTransitionTime": since}
    return {**status, "conditions": [*kept, dated]}
