"""What a pod requests: the sum over its containers (PodRequests of k8s.io/component-helpers)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import Any

from kube_in_process.objects import Object
from kube_in_process.text.quantity import number

Amounts = Mapping[str, int]
"""By resource: thousandths of a cpu, bytes of memory, whole units of everything else."""
Count = Callable[[Object], dict[str, int]]
"""What one container counts."""


def amounts(quantities: Mapping[str, Any] | None) -> dict[str, int]:
    """Quantities as numbers, rounded up."""
    return {name: _units(name, str(value)) for name, value in (quantities or {}).items()}


def of_spec(container: Object) -> dict[str, int]:
    """What a container's spec requests."""
    return amounts((container.get("resources") or {}).get("requests"))


def summed(spec: Object, count: Count = of_spec, level: Amounts | None = None) -> dict[str, int]:
    """The requests of a pod.

    Containers count together. An init container counts if it needs more than they do; one with
    restartPolicy Always runs beside the later ones.

    Args:
        spec: the pod's spec.
        count: what each container counts.
        level: the requests of the pod as a whole, which replace those of its containers; None:
            as the spec says.
    """
    total: dict[str, int] = {}
    for container in spec.get("containers") or ():
        add_to(total, count(container))
    beside: dict[str, int] = {}
    first: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        wanted = count(container)
        if container.get("restartPolicy") == "Always":
            add_to(total, wanted)
            add_to(beside, wanted)
            wanted = beside
        else:
            add_to(wanted, beside)
        raise_to(first, wanted)
    raise_to(total, first)
    own = amounts((spec.get("resources") or {}).get("requests")) if level is None else level
    total |= own
    add_to(total, amounts(spec.get("overhead")))
    return total


@lru_cache(maxsize=1024)
def _units(name: str, value: str) -> int:
    amount = number(value)
    scaled = amount * 1000 if name == "cpu" else amount
    return int(Decimal(scaled).to_integral_value(rounding=ROUND_CEILING))


def add_to(total: dict[str, int], more: Amounts) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def raise_to(total: dict[str, int], other: Amounts) -> None:
    """Make each number in ``total`` at least the one in ``other``."""
    for name, value in other.items():
        total[name] = max(total.get(name, 0), value)
