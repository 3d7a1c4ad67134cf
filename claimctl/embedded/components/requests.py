"""What a pod requests of its node, as the scheduler and the kubelet count it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import Any

from claimctl.embedded.components.objects import condition
from claimctl.embedded.text.quantity import number
from claimctl.wire.base import Object

Amounts = Mapping[str, int]
"""By resource: thousandths of a cpu, bytes of memory, whole units of everything else."""

UNSTATED: Amounts = {"cpu": 100, "memory": 200 * 1024 * 1024}
"""What a container without a request counts where the scheduler compares nodes."""


def amounts(quantities: Mapping[str, Any] | None) -> dict[str, int]:
    """Quantities as numbers, rounded up."""
    return {name: _units(name, str(value)) for name, value in (quantities or {}).items()}


def pod_requests(pod: Object, unstated: Amounts | None = None) -> dict[str, int]:
    """The requests of a pod (PodRequests of k8s.io/component-helpers/resource).

    Containers count together. An init container counts if it needs more than they do; one with
    restartPolicy Always runs beside the later ones. While a resize is under way, the largest of
    the wanted, allocated and actual requests counts.

    Args:
        pod: the pod.
        unstated: what a container counts that requests nothing of a resource.
    """
    spec = pod["spec"]
    total: dict[str, int] = {}
    for container in spec.get("containers") or ():
        _add(total, _container(pod, container, unstated))
    beside: dict[str, int] = {}
    first: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        wanted = _container(pod, container, unstated)
        if container.get("restartPolicy") == "Always":
            _add(total, wanted)
            _add(beside, wanted)
            wanted = beside
        else:
            _add(wanted, beside)
        _raise(first, wanted)
    _raise(total, first)
    total |= amounts((spec.get("resources") or {}).get("requests"))
    _add(total, amounts(spec.get("overhead")))
    return total


def host_ports(pod: Object) -> Iterator[tuple[str, str, int]]:
    """The ports of the node that the pod uses: address, protocol and number."""
    spec = pod["spec"]
    beside = [
        each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"
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
    found = _agreed(pod, container)
    for name, value in (unstated or {}).items():
        found.setdefault(name, value)
    return found


def _agreed(pod: Object, container: Object) -> dict[str, int]:
    wanted = amounts((container.get("resources") or {}).get("requests"))
    status = _status(pod, container["name"])
    if status is None:
        return wanted
    known = amounts(status.get("allocatedResources"))
    _raise(known, amounts((status.get("resources") or {}).get("requests")))
    if not known:
        return wanted
    if _infeasible(pod):
        return known
    _raise(wanted, known)
    return wanted


def _status(pod: Object, container: str) -> Object | None:
    status = pod.get("status") or {}
    every = (
        *(status.get("containerStatuses") or ()),
        *(status.get("initContainerStatuses") or ()),
    )
    return next((each for each in every if each["name"] == container), None)


def _infeasible(pod: Object) -> bool:
    return (condition(pod, "PodResizePending") or {}).get("reason") == "Infeasible"


@lru_cache(maxsize=1024)
def _units(name: str, value: str) -> int:
    found = number(value)
    scaled = found * 1000 if name == "cpu" else found
    return int(Decimal(scaled).to_integral_value(rounding=ROUND_CEILING))


def _add(total: dict[str, int], more: Amounts) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def _raise(total: dict[str, int], other: Amounts) -> None:
    for name, value in other.items():
        total[name] = max(total.get(name, 0), value)
