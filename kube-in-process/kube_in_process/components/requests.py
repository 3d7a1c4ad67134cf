"""What a pod requests of its node, as the scheduler and the kubelet count it."""

from __future__ import annotations

from collections.abc import Iterator

from kube_in_process.components.objects import condition
from kube_in_process.kinds.pod_requests import Amounts, amounts, raise_to, summed
from kube_in_process.objects import Object

UNSTATED: Amounts = {"cpu": 100, "memory": 200 * 1024 * 1024}
"""What a container without a request counts where the scheduler compares nodes."""


def pod_requests(pod: Object, unstated: Amounts | None = None) -> dict[str, int]:
    """The requests of a pod, as the scheduler counts them.

    While a resize is under way, the largest of the wanted, allocated and actual requests counts.

    Args:
        pod: the pod.
        unstated: what a container counts that requests nothing of a resource.
    """
    return summed(pod["spec"], lambda container: _container(pod, container, unstated))


def is_sized(pod: Object) -> bool:
    """Whether a kubelet has reported the actual requests of a container."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return any(status.get("resources") is not None for status in statuses)


def host_ports(pod: Object) -> Iterator[tuple[str, str, int]]:
    """The ports of the node that the pod uses: address, protocol and number."""
    spec = pod["spec"]
    beside = [
        container
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    ]
    for container in (*(spec.get("containers") or ()), *beside):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                address = port.get("hostIP") or "0.0.0.0"
                yield address, port.get("protocol", "TCP"), port["hostPort"]


def clashes(wanted: tuple[str, str, int], used: tuple[str, str, int]) -> bool:
    """Whether two host ports cannot be used at once."""
    if wanted[1:] != used[1:]:
        return False
    return wanted[0] == used[0] or "0.0.0.0" in (wanted[0], used[0])


def _container(pod: Object, container: Object, unstated: Amounts | None) -> dict[str, int]:
    most = _agreed(pod, container)
    for name, value in (unstated or {}).items():
        most.setdefault(name, value)
    return most


def _agreed(pod: Object, container: Object) -> dict[str, int]:
    """The most of what is wanted, allocated and actual.

    A container whose actual requests no kubelet has reported counts with its spec. The spec of an
    infeasible resize does not count.
    """
    wanted = amounts((container.get("resources") or {}).get("requests"))
    status = _status(pod, container["name"])
    if status is None or status.get("resources") is None:
        return wanted
    known = amounts(status["resources"].get("requests"))
    raise_to(known, amounts(status.get("allocatedResources")))
    if not _infeasible(pod):
        raise_to(known, wanted)
    return known


def _status(pod: Object, container: str) -> Object | None:
    status = pod.get("status") or {}
    every = (
        *(status.get("containerStatuses") or ()),
        *(status.get("initContainerStatuses") or ()),
    )
    return next((entry for entry in every if entry["name"] == container), None)


def _infeasible(pod: Object) -> bool:
    return (condition(pod, "PodResizePending") or {}).get("reason") == "Infeasible"
