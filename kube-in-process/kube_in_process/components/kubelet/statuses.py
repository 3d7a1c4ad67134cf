"""The statuses of pods that a kubelet reports."""

from __future__ import annotations

from typing import Any

from kube_in_process.components.kubelet.sizes import IN_PROGRESS, PENDING, Sizes
from kube_in_process.components.objects import condition
from kube_in_process.objects import Object

NO_SANDBOX = "PodReadyToStartContainers"
"""The condition that is False while a pod has no sandbox."""


def running(
    pod: Object,
    now: str,
    restarts: int = 0,
    sizes: Sizes | None = None,
    address: str = "10.1.0.1",
) -> Object:
    """All containers run and are ready. Without ``sizes``, they are those of the spec."""
    started = (pod.get("status") or {}).get("startTime") or now
    return {
        "phase": "Running",
        "startTime": started,
        "hostIP": "10.0.0.1",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [
            _condition(pod, NO_SANDBOX, "True", now),
            _condition(pod, "Initialized", "True", now),
            _condition(pod, "Ready", "True", now),
            _condition(pod, "ContainersReady", "True", now),
        ],
        "containerStatuses": [
            {
                **_container(container, {"running": {"startedAt": now}}, restarts, ready=True),
                **_sized(container["name"], sizes or Sizes.wanted(pod)),
            }
            for container in pod["spec"]["containers"]
        ],
    }


def _sized(container: str, sizes: Sizes) -> Object:
    """What is allocated to a container and in force; nothing if it requests nothing."""
    allocated = sizes.allocated.get(container, {}).get("requests")
    shown: Object = {"allocatedResources": allocated} if allocated else {}
    actual = {
        key: amounts
        for key, amounts in sizes.actual.get(container, {}).items()
        if key in ("requests", "limits") and amounts
    }
    return {**shown, "resources": actual} if actual else shown


def resize_waits(pod: Object, now: str, reason: str, message: str) -> Object:
    """The kubelet cannot admit the resize: now (Deferred), or ever (Infeasible)."""
    generation = pod["metadata"].get("generation", 0)
    waiting_since = _condition(pod, PENDING, "True", now, reason)
    old = condition(pod, PENDING)
    if old is not None and old.get("reason") != reason:
        waiting_since["lastTransitionTime"] = now
    pending = {**waiting_since, "message": message, "observedGeneration": generation}
    return {"observedGeneration": generation, "conditions": [pending]}


def resize_reverted(pod: Object) -> Object:
    """The spec wants what is allocated again."""
    generation = pod["metadata"].get("generation", 0)
    return {"observedGeneration": generation, "conditions": _gone(pod, PENDING)}


def resize_begins(pod: Object, now: str, sizes: Sizes) -> Object:
    """The kubelet has admitted the resize; the containers do not have it yet."""
    generation = pod["metadata"].get("generation", 0)
    begun = _condition(pod, IN_PROGRESS, "True", now)
    conditions: list[Object] = [{**begun, "observedGeneration": generation}]
    return {
        "observedGeneration": generation,
        "conditions": conditions + _gone(pod, PENDING),
        "containerStatuses": _resized(pod, sizes, set()),
    }


def resize_ends(pod: Object, sizes: Sizes, restarted: set[str]) -> Object:
    """The containers have the sizes that were admitted; some were restarted for it."""
    return {
        "conditions": _gone(pod, IN_PROGRESS),
        "containerStatuses": _resized(pod, sizes, restarted),
    }


def _gone(pod: Object, kind: str) -> list[Object]:
    """The patch that removes a condition."""
    return [{"$patch": "delete", "type": kind}] if condition(pod, kind) is not None else []


def _resized(pod: Object, sizes: Sizes, restarted: set[str]) -> list[Object]:
    return [
        {
            **{
                key: x
                for key, x in container_status.items()
                if key not in ("allocatedResources", "resources")
            },
            "restartCount": container_status["restartCount"]
            + (container_status["name"] in restarted),
            **_sized(container_status["name"], sizes),
        }
        for container_status in pod["status"].get("containerStatuses") or ()
    ]


def rejected(pod: Object, now: str, reason: str, message: str) -> Object:
    """The kubelet refused the pod, so no container ever ran."""
    started = (pod.get("status") or {}).get("startTime") or now
    text = f"Pod was rejected: {message}"
    return {"phase": "Failed", "reason": reason, "message": text, "startTime": started}


def finished(pod: Object, now: str, code: int, restarts: int = 0) -> Object:
    """The containers ended by themselves with exit code ``code``."""
    reason = "Completed" if code == 0 else "Error"
    phase = "Succeeded" if code == 0 else "Failed"
    return _terminal(pod, now, phase, _terminated(pod, now, code, reason), restarts)


def stopped(pod: Object, now: str) -> Object:
    """The containers were stopped because the pod is being deleted.

    With restartPolicy Always they end with exit code 0; else with 143, which counts as a failure.
    """
    if pod["spec"].get("restartPolicy", "Always") == "Always":
        return _terminal(pod, now, "Succeeded", _terminated(pod, now, 0, "Completed"), 0)
    return _terminal(pod, now, "Failed", _terminated(pod, now, 143, "Error"), 0)


def failed(pod: Object, now: str) -> Object:
    """The containers were lost because the node was rebooted."""
    return _terminal(pod, now, "Failed", _terminated(pod, now, 137, "Error"), 0)


def waiting(pod: Object, now: str) -> Object:
    """The containers of a running pod were lost, and cannot be started again yet."""
    state = {"waiting": {"reason": "ContainerCreating"}}
    return {
        "conditions": [
            _condition(pod, NO_SANDBOX, "False", now),
            _condition(pod, "Ready", "False", now, "ContainersNotReady"),
            _condition(pod, "ContainersReady", "False", now, "ContainersNotReady"),
        ],
        "containerStatuses": [
            _container(container, state, 0, ready=False) for container in pod["spec"]["containers"]
        ],
    }


def creating(pod: Object, now: str) -> Object:
    """The pod is here, and its sandbox is not ready: ContainerCreating."""
    status = waiting(pod, now)
    started = (pod.get("status") or {}).get("startTime") or now
    begun = _condition(pod, "Initialized", "True", now)
    conditions = [status["conditions"][0], begun, *status["conditions"][1:]]
    return {**status, "startTime": started, "hostIP": "10.0.0.1", "conditions": conditions}


def waits_for_sandbox(pod: Object) -> bool:
    sandbox = condition(pod, NO_SANDBOX)
    return sandbox is not None and sandbox["status"] == "False"


def _terminal(pod: Object, now: str, phase: str, state: Object, restarts: int) -> Object:
    reason = "PodCompleted" if phase == "Succeeded" else "PodFailed"
    return {
        "phase": phase,
        "conditions": [
            _condition(pod, NO_SANDBOX, "False", now),
            _condition(pod, "Ready", "False", now, reason),
            _condition(pod, "ContainersReady", "False", now, reason),
        ],
        "containerStatuses": [
            _container(container, state, restarts, ready=False)
            for container in pod["spec"]["containers"]
        ],
    }


def _terminated(pod: Object, now: str, code: int, reason: str) -> Object:
    started = (pod.get("status") or {}).get("startTime") or now
    times = {"startedAt": started, "finishedAt": now}
    return {"terminated": {"exitCode": code, "reason": reason, **times}}


def _condition(pod: Object, kind: str, status: str, now: str, reason: str = "") -> Object:
    old = condition(pod, kind)
    since = old["lastTransitionTime"] if old and old["status"] == status else now
    new: dict[str, Any] = {"type": kind, "status": status, "lastTransitionTime": since}
    return {**new, "reason": reason} if reason else new


def _container(spec: Object, state: Object, restarts: int, *, ready: bool) -> Object:
    return {
        "name": spec["name"],
        "image": spec.get("image", ""),
        "imageID": spec.get("image", ""),
        "ready": ready,
        "started": ready,
        "restartCount": restarts,
        "state": state,
    }
