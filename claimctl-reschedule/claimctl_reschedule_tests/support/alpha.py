"""The count of kube-scheduler 1.37 (alpha) for resizes, to compare: KEP-5836.

It counts every pod with the most of what it wants, has been admitted with and has. All pods of
lower priority are taken away, and put back one by one, high priorities and old pods first.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from claimctl_reschedule.shapes.scheduling import SchedulingPod

Vector = tuple[int, int]
"""Milli-CPU and Gi of memory."""


def _number(text: object, unit: str) -> int:
    return int(str(text).removesuffix(unit))


def _of(requests: object) -> Vector:
    given = requests if isinstance(requests, dict) else {}
    return _number(given.get("cpu", "0m"), "m"), _number(given.get("memory", "0Gi"), "Gi")


def _parts(pod: SchedulingPod) -> tuple[Vector, Vector, Vector]:
    """What it wants, has been admitted with, and has."""
    status, container = pod.status.container_statuses[0], pod.spec.containers[0]
    wants = _of(container.resources.requests)
    return (
        wants,
        _of(status.allocated_resources),
        _of(status.resources and status.resources.requests),
    )


def held_by(pod: SchedulingPod) -> Vector:
    """What the kubelet counts: the most of what it has been admitted with and has."""
    return _most(*_parts(pod)[1:])


def _most(*vectors: Vector) -> Vector:
    return max(vector[0] for vector in vectors), max(vector[1] for vector in vectors)


def fit(vectors: Sequence[Vector], there: Vector) -> bool:
    """Whether a node has room for all of them."""
    return all(sum(vector[at] for vector in vectors) <= there[at] for at in (0, 1))


def alpha_victims(
    resized: SchedulingPod, others: Sequence[SchedulingPod], there: Vector
) -> list[SchedulingPod] | None:
    """Whom the scheduler would evict; None if that would not help by its count."""
    counted = {pod.metadata.name: _most(*_parts(pod)) for pod in (resized, *others)}
    priority = {pod.metadata.name: pod.spec.priority or 0 for pod in (resized, *others)}
    limit = priority[resized.metadata.name]
    stay = [pod for pod in others if priority[pod.metadata.name] >= limit]
    lower = [pod for pod in others if priority[pod.metadata.name] < limit]

    def fits(pods: Sequence[SchedulingPod]) -> bool:
        return fit([counted[pod.metadata.name] for pod in (resized, *pods)], there)

    if not fits(stay):
        return None
    victims = []
    for pod in sorted(lower, key=lambda each: (-priority[each.metadata.name], _age(each))):
        if fits([*stay, pod]):
            stay.append(pod)
        else:
            victims.append(pod)
    return victims


def _age(pod: SchedulingPod) -> float:
    created = pod.metadata.creation_timestamp
    return created.timestamp() if created else 0.0


def least_victims(
    resized: SchedulingPod, others: Sequence[SchedulingPod], there: Vector
) -> int | None:
    """The least number of victims by the kubelet's count, of all sets; None if there is none."""
    wants = _parts(resized)[0]
    held = {pod.metadata.name: held_by(pod) for pod in others}
    limit = resized.spec.priority or 0
    lower = [pod for pod in others if (pod.spec.priority or 0) < limit]
    for number in range(len(lower) + 1):
        for some in combinations(lower, number):
            rest = [held[pod.metadata.name] for pod in others if pod not in some]
            if fit([wants, *rest], there):
                return number
    return None
