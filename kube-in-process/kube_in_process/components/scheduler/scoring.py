"""The scheduler's scores: which of the nodes that fit a pod is best.

The scores and weights are those of kube-scheduler's default profile, except image locality: no
emulated node has images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kube_in_process.components.fit import term_matches as node_term_matches
from kube_in_process.components.fit import tolerates
from kube_in_process.components.objects import labels, name
from kube_in_process.components.rooms import Asked, Room
from kube_in_process.components.scheduler.affinity import (
    PREFERRED,
    Neighbours,
    spread_scores,
)
from kube_in_process.components.scheduler.rooms import Scene
from kube_in_process.kinds.pod_requests import amounts
from kube_in_process.objects import Object
from kube_in_process.runtime.views import Views

BEST = 100
RESOURCES = ("cpu", "memory")
_BEST_EFFORT_UNBALANCED_SINCE = (1, 33)
"""From this version on, pods without requests are not placed by balance."""

Scores = dict[str, int]


def scores(
    asked: Asked,
    feasible: Sequence[Object],
    scene: Scene,
    views: Views,
    version: tuple[int, int],
) -> Scores:
    """The weighted sum of all scores by node."""
    parts = (
        (1, {name(node): _least_allocated(asked, node, scene) for node in feasible}),
        (1, _balanced(asked, feasible, scene, version)),
        (3, _by_taints(asked.pod, feasible)),
        (2, _by_affinity(asked.pod, feasible)),
        (2, spread_scores(asked.pod, feasible, scene, views)),
        (2, _by_neighbours(asked, feasible, scene, views)),
    )
    return {
        name(node): sum(weight * part.get(name(node), 0) for weight, part in parts)
        for node in feasible
    }


def _allocatable(node: Object) -> dict[str, int]:
    return amounts((node.get("status") or {}).get("allocatable") or {})


def _least_allocated(asked: Asked, node: Object, scene: Scene) -> int:
    """More where a greater part of cpu and memory is left."""
    there, room = _allocatable(node), scene.room(node)
    parts = []
    for resource in RESOURCES:
        total = there.get(resource, 0)
        if total:
            used = room.counted.get(resource, 0) + asked.counted.get(resource, 0)
            parts.append((total - used) * BEST // total if used <= total else 0)
    return sum(parts) // len(parts) if parts else 0


def _balanced(
    asked: Asked, feasible: Sequence[Object], scene: Scene, version: tuple[int, int]
) -> Scores:
    """More where cpu and memory are used to the same part."""
    nothing = not any(asked.requests.get(resource) for resource in RESOURCES)
    if nothing and version >= _BEST_EFFORT_UNBALANCED_SINCE:
        return {}
    return {name(node): _balance(asked, _allocatable(node), scene.room(node)) for node in feasible}


def _balance(asked: Asked, there: Mapping[str, int], room: Room) -> int:
    parts = []
    for resource in RESOURCES:
        if there.get(resource, 0):
            used = room.used.get(resource, 0) + asked.requests.get(resource, 0)
            parts.append(min(used / there[resource], 1.0))
    apart = abs(parts[0] - parts[1]) / 2 if len(parts) == 2 else 0.0
    return int((1 - apart) * BEST)


def _by_taints(pod: Object, feasible: Sequence[Object]) -> Scores:
    """Less for each PreferNoSchedule taint that the pod does not tolerate."""
    tolerations = pod["spec"].get("tolerations") or ()
    raw = {
        name(node): sum(
            1
            for taint in (node.get("spec") or {}).get("taints") or ()
            if taint["effect"] == "PreferNoSchedule"
            and not any(tolerates(toleration, taint) for toleration in tolerations)
        )
        for node in feasible
    }
    most = max(raw.values(), default=0)
    if not most:
        return dict.fromkeys(raw, BEST)
    return {node: BEST - BEST * value // most for node, value in raw.items()}


def _by_affinity(pod: Object, feasible: Sequence[Object]) -> Scores:
    """More where preferred terms of the node affinity match."""
    wishes = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(PREFERRED) or ()
    if not wishes:
        return {}
    raw = {
        name(node): sum(
            wish["weight"] for wish in wishes if node_term_matches(wish["preference"], node)
        )
        for node in feasible
    }
    most = max(raw.values(), default=0)
    return {node: BEST * value // most if most else 0 for node, value in raw.items()}


def _by_neighbours(asked: Asked, feasible: Sequence[Object], scene: Scene, views: Views) -> Scores:
    """By the preferred terms about other pods, and by those pods' own terms."""
    if not asked.rules and not scene.has_rules():
        return {}
    pod = asked.pod
    spaces = {name(namespace): labels(namespace) for namespace in views["namespaces"].items()}
    neighbours = Neighbours(pod, scene, spaces)
    raw = {name(node): neighbours.preference(node) for node in feasible}
    most, least = max(raw.values(), default=0), min(raw.values(), default=0)
    if most == least:
        return {}
    return {node: int(BEST * (value - least) / (most - least)) for node, value in raw.items()}
