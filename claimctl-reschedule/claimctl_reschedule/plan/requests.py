"""What a pod requests, as the scheduler counts it and as its kubelet does.

Quantities are exact whole numbers, by the rules of apimachinery's ``resource``: milli-CPU for cpu
and whole units for everything else, rounded up (``MilliValue`` and ``Value``). Every function here
raises ValueError for a text that is no quantity.

The sum is that of PodRequests (component-helpers). The three counts differ for a container that is
being resized:

- The scheduler counts the largest of what its spec asks for, what the kubelet has admitted and what
  is in force. If the kubelet says that the resize is infeasible, the spec does not count
  (recorded on real servers).
- A kubelet that looks at a resize counts what the spec of this pod asks for, and of every other
  pod the larger of what it has admitted and what is in force.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil

from claimctl.wire.meta import find_condition
from claimctl_reschedule.shapes.scheduling import (
    Container,
    Quantity,
    ResourceList,
    Resources,
    SchedulingContainerStatus,
    SchedulingPod,
)

CPU, MEMORY, PODS = "cpu", "memory", "pods"
_ASSUMED = {CPU: 100, MEMORY: 200 * 1024 * 1024}
"""What a container without a request counts when nodes are scored (DefaultMilliCPURequest)."""
_POD_LEVEL = (CPU, MEMORY)
_HUGE_PAGES = "hugepages-"

_Count = Callable[[dict[str, int], Resources | None, ResourceList | None], dict[str, int]]
"""From what a spec asks for, what is in force and what is admitted: what counts."""


def pod_requests(pod: SchedulingPod) -> dict[str, int]:
    """The requests of the pod by resource name, without the one place among the node's pods."""
    return _requests(pod, _scheduled(pod))


def desired_requests(pod: SchedulingPod) -> dict[str, int]:
    """What the spec asks for, whatever the kubelet has admitted."""
    return _requests(pod, lambda asked, _, __: asked)


def held_requests(pod: SchedulingPod) -> dict[str, int]:
    """What the pod takes up on its node for its kubelet: the most of admitted and in force. Where
    the kubelet reports nothing as admitted, the spec counts."""
    return _requests(pod, _held)


def scored_requests(pod: SchedulingPod) -> tuple[int, int]:
    """Milli-CPU and bytes of memory with which the scheduler scores nodes."""
    total = _requests(pod, _scheduled(pod), _ASSUMED)
    return total.get(CPU, 0), total.get(MEMORY, 0)


def _scheduled(pod: SchedulingPod) -> _Count:
    pending = find_condition(pod.status.conditions, "PodResizePending")
    infeasible = pending is not None and pending.reason == "Infeasible"

    def count(
        asked: dict[str, int], actual: Resources | None, allocated: ResourceList | None
    ) -> dict[str, int]:
        if actual is None:
            return asked
        total = {} if infeasible else asked
        raise_to(total, amounts(actual.requests))
        raise_to(total, amounts(allocated))
        return total

    return count


def _held(
    asked: dict[str, int], actual: Resources | None, allocated: ResourceList | None
) -> dict[str, int]:
    # a list of admitted resources is complete: the kubelet admits a container as a whole
    total = amounts(allocated) if allocated is not None else asked
    raise_to(total, amounts(actual.requests if actual is not None else None))
    return total


def _requests(
    pod: SchedulingPod, count: _Count, assumed: Mapping[str, int] | None = None
) -> dict[str, int]:
    """The sum for the pod. ``assumed`` is what a container without a request counts, unless the pod
    as a whole has one."""
    status, level = pod.status, amounts(pod.spec.resources.requests if pod.spec.resources else None)
    if level:
        level = count(level, status.resources, status.allocated_resources)
    defaults = {name: number for name, number in (assumed or {}).items() if name not in level}
    total = _of_containers(pod, defaults, count)
    for name, number in level.items():
        if name in _POD_LEVEL or name.startswith(_HUGE_PAGES):
            total[name] = number
    add(total, amounts(pod.spec.overhead))
    return total


def _of_containers(
    pod: SchedulingPod, defaults: Mapping[str, int], count: _Count
) -> dict[str, int]:
    total: dict[str, int] = {}
    containers = pod.spec.containers, pod.status.container_statuses
    for _, asked in _counted(*containers, defaults, count):
        add(total, asked)
    sidecars: dict[str, int] = {}
    starting: dict[str, int] = {}
    inits = pod.spec.init_containers, pod.status.init_container_statuses
    for container, asked in _counted(*inits, defaults, count):
        if container.restart_policy == "Always":
            add(total, asked)
            add(sidecars, asked)
            raise_to(starting, sidecars)
        else:
            add(asked, sidecars)
            raise_to(starting, asked)
    raise_to(total, starting)
    return total


def _counted(
    containers: Sequence[Container],
    statuses: Sequence[SchedulingContainerStatus],
    defaults: Mapping[str, int],
    count: _Count,
) -> Iterator[tuple[Container, dict[str, int]]]:
    """The containers, each with what counts of it."""
    by_name = {status.name: status for status in statuses}
    for container in containers:
        asked, status = amounts(container.resources.requests), by_name.get(container.name)
        if status is not None:
            asked = count(asked, status.resources, status.allocated_resources)
        yield container, {**defaults, **asked}


_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)")
_POWERS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_UNITS = {suffix: Fraction(f"1e{power}") for suffix, power in _POWERS.items()}
_UNITS |= {f"{letter}i": Fraction(1 << 10 * power) for power, letter in enumerate("KMGTPE", 1)}


def parse(quantity: Quantity) -> Fraction:
    """The exact value. Raises ValueError: this is no quantity."""
    text = str(Decimal(repr(quantity))) if isinstance(quantity, float) else str(quantity)
    matched = _NUMBER.fullmatch(text)
    if not matched:
        raise ValueError(f"{text!r} is not a quantity: a number such as 2, 500m or 4Gi is expected")
    number, exponent, suffix = matched.groups()
    return Fraction(number + (exponent or "")) * _UNITS[suffix or ""]


@lru_cache(maxsize=65_536)
def amount(resource: str, quantity: Quantity) -> int:
    """The quantity as the scheduler counts it: milli-CPU for cpu, units otherwise, rounded up.
    Raises ValueError: this is no quantity."""
    value = parse(quantity)
    return ceil(value * 1000 if resource == CPU else value)


def amounts(resources: ResourceList | None) -> dict[str, int]:
    """The whole numbers of a list of resources; empty if there is none."""
    return {name: amount(name, quantity) for name, quantity in (resources or {}).items()}


def add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, number in more.items():
        total[name] = total.get(name, 0) + number


def raise_to(total: dict[str, int], least: Mapping[str, int]) -> None:
    """Make each number in ``total`` at least the one in ``least``."""
    for name, number in least.items():
        if number > total.get(name, 0):
            total[name] = number
