"""What a pod requests, as the scheduler counts it (PodRequests of component-helpers).

A container that is being resized counts with the largest of what its spec asks for, what the
kubelet has admitted and what is in force. If the kubelet says that the resize is infeasible, the
spec does not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from claimctl.rescheduling.quantities import CPU, MEMORY, add, amounts, raise_to
from claimctl.wire.meta import find_condition
from claimctl.wire.scheduling import (
    Container,
    ResourceList,
    Resources,
    SchedulingContainerStatus,
    SchedulingPod,
)

DEFAULT_MILLI_CPU, DEFAULT_MEMORY = 100, 200 * 1024 * 1024
"""What a container without a request counts when nodes are scored (DefaultMilliCPURequest)."""
_POD_LEVEL = (CPU, MEMORY)
_HUGE_PAGES = "hugepages-"


def pod_requests(pod: SchedulingPod) -> dict[str, int]:
    """The requests of the pod by resource name, without the one place among the node's pods.

    Raises:
        ValueError: a request is no quantity.
    """
    total = _of_containers(pod, defaults={})
    for name, number in _pod_level(pod).items():
        if name in _POD_LEVEL or name.startswith(_HUGE_PAGES):
            total[name] = number
    add(total, amounts(pod.spec.overhead))
    return total


def scored_requests(pod: SchedulingPod) -> tuple[int, int]:
    """Milli-CPU and bytes of memory with which the scheduler scores nodes.

    Raises:
        ValueError: a request is no quantity.
    """
    level = _pod_level(pod)
    assumed = {CPU: DEFAULT_MILLI_CPU, MEMORY: DEFAULT_MEMORY}
    total = _of_containers(pod, {name: n for name, n in assumed.items() if name not in level})
    total.update({name: level[name] for name in _POD_LEVEL if name in level})
    add(total, amounts(pod.spec.overhead))
    return total.get(CPU, 0), total.get(MEMORY, 0)


def _of_containers(pod: SchedulingPod, defaults: Mapping[str, int]) -> dict[str, int]:
    infeasible = _is_infeasible(pod)
    total: dict[str, int] = {}
    for container, status in _with_status(pod.spec.containers, pod.status.container_statuses):
        add(total, _of_container(container, status, defaults, infeasible=infeasible))
    sidecars: dict[str, int] = {}
    starting: dict[str, int] = {}
    inits = _with_status(pod.spec.init_containers, pod.status.init_container_statuses)
    for container, status in inits:
        asked = _of_container(container, status, defaults, infeasible=infeasible)
        if container.restart_policy == "Always":
            add(total, asked)
            add(sidecars, asked)
            raise_to(starting, sidecars)
        else:
            add(asked, sidecars)
            raise_to(starting, asked)
    raise_to(total, starting)
    return total


def _with_status(
    containers: Sequence[Container], statuses: Sequence[SchedulingContainerStatus]
) -> list[tuple[Container, SchedulingContainerStatus | None]]:
    found = {status.name: status for status in statuses}
    return [(container, found.get(container.name)) for container in containers]


def _of_container(
    container: Container,
    status: SchedulingContainerStatus | None,
    defaults: Mapping[str, int],
    *,
    infeasible: bool,
) -> dict[str, int]:
    asked = amounts(container.resources.requests)
    if status is not None:
        asked = _in_force(
            asked, status.resources, status.allocated_resources, infeasible=infeasible
        )
    return {**defaults, **asked}


def _in_force(
    asked: dict[str, int],
    actual: Resources | None,
    allocated: ResourceList | None,
    *,
    infeasible: bool,
) -> dict[str, int]:
    if actual is None:
        return asked
    total = {} if infeasible else asked
    raise_to(total, amounts(actual.requests))
    raise_to(total, amounts(allocated))
    return total


def _pod_level(pod: SchedulingPod) -> dict[str, int]:
    asked = amounts(pod.spec.resources.requests if pod.spec.resources else None)
    status = pod.status
    if not asked:
        return asked
    return _in_force(
        asked, status.resources, status.allocated_resources, infeasible=_is_infeasible(pod)
    )


def _is_infeasible(pod: SchedulingPod) -> bool:
    pending = find_condition(pod.status.conditions, "PodResizePending")
    return pending is not None and pending.reason == "Infeasible"
