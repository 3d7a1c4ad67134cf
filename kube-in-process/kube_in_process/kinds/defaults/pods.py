"""Defaults of pods and pod templates, and changes by admission."""

from __future__ import annotations

import re

from kube_in_process.objects import Object
from kube_in_process.text.quantity import number

_FILE_MODE = 420
_NOT_READY_SECONDS = 300
_SPEC: Object = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
}
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?(?P<path>{_PART}(?:/{_PART})*)(?::[\w][\w.-]{{0,127}})?\Z"
)
_LONGEST_IMAGE = 255
_HUB = len("docker.io/library/")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


def default_pod_spec(spec: Object) -> None:
    """The defaults of pods and of templates."""
    for key, value in _SPEC.items():
        if spec.get(key) is None:
            spec[key] = value
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if spec.get("serviceAccountName"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    elif spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"]
    for key in ("containers", "initContainers"):
        for container in spec.get(key) or []:
            _default_container(container)
    for volume in spec.get("volumes") or []:
        _default_volume(volume)


def _default_container(container: Object) -> None:
    resources = container.get("resources")
    if resources is None:
        resources = container["resources"] = {}
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("imagePullPolicy", _pull_policy(container.get("image") or ""))
    for port in container.get("ports") or []:
        port.setdefault("protocol", "TCP")
    for probe in _PROBES:
        if container.get(probe) is not None:
            _default_probe(container[probe])
    for variable in container.get("env") or []:
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference:
            reference.setdefault("apiVersion", "v1")


def _pull_policy(image: str) -> str:
    """Always for images without a tag or with the tag latest."""
    if "@" in image or not _readable(image):
        return "IfNotPresent"
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _readable(image: str) -> bool:
    """Whether an image name can be parsed; otherwise its tag is unknown."""
    match = _REFERENCE.match(image)
    if match is None:
        return False
    name = image.rpartition(":")[0] if ":" in image.rpartition("/")[2] else image
    return len(name) + (0 if "/" in name else _HUB) <= _LONGEST_IMAGE


def _default_probe(probe: Object) -> None:
    for key, value in _PROBE.items():
        probe.setdefault(key, value)
    if "httpGet" in probe:
        probe["httpGet"].setdefault("path", "/")
        probe["httpGet"].setdefault("scheme", "HTTP")


def _default_volume(volume: Object) -> None:
    if len(volume) <= 1:
        volume["emptyDir"] = {}
    for source in ("configMap", "secret", "projected", "downwardAPI"):
        if volume.get(source):
            volume[source].setdefault("defaultMode", _FILE_MODE)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")


def _request_limits(resources: Object) -> None:
    """Requests default to limits, in pods but not in templates."""
    limits = resources.get("limits") or {}
    if limits:
        resources["requests"] = {**limits, **(resources.get("requests") or {})}


def default_pod(pod: Object) -> None:
    """Defaults that a pod has and a template has not."""
    spec = pod.setdefault("spec", {})
    default_pod_spec(spec)
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        _request_limits(container["resources"])
    spec.setdefault("enableServiceLinks", True)
    if not spec.get("schedulingGates"):
        spec.pop("schedulingGates", None)
    status = pod.setdefault("status", {})
    if status.get("podIP") and not status.get("podIPs"):
        status["podIPs"] = [{"ip": status["podIP"]}]
    for condition in status.get("conditions") or []:
        condition.setdefault("lastProbeTime", None)
        condition.setdefault("lastTransitionTime", None)
    for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for container_status in pod["status"].get(kind) or []:
            container_status.setdefault("state", {})
            container_status.setdefault("lastState", {})


def admit_tolerations(spec: Object) -> None:
    """By default, a pod tolerates a node that is not ready or unreachable for five minutes."""
    tolerations = spec.setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(_covers(toleration, key) for toleration in tolerations):
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _NOT_READY_SECONDS,
                }
            )


def _covers(toleration: Object, key: str) -> bool:
    return toleration.get("key", key) == key and toleration.get("effect", "NoExecute") in (
        "",
        "NoExecute",
    )


def qos_class(spec: Object) -> str:
    """BestEffort, Burstable or Guaranteed, by cpu and memory of all containers."""
    containers = [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
    resources = [container.get("resources") or {} for container in containers]
    pairs = [
        (_computing(resource, "requests"), _computing(resource, "limits")) for resource in resources
    ]
    if not any(requests or limits for requests, limits in pairs):
        return "BestEffort"
    for requests, limits in pairs:
        if len(limits) < len(_COMPUTING) or requests != limits:
            return "Burstable"
    return "Guaranteed"


_COMPUTING = ("cpu", "memory")


def _computing(resources: Object, key: str) -> Object:
    amounts = resources.get(key) or {}
    return {name: amounts[name] for name in _COMPUTING if number(amounts.get(name))}
