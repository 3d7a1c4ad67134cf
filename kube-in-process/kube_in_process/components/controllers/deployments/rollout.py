"""The wanted size of each ReplicaSet of a Deployment; pure arithmetic on specs.

The rules are those of k8s.io/kubernetes/pkg/controller/deployment (rolling.go, sync.go, util).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from kube_in_process.components.objects import annotations_of, name, scaled
from kube_in_process.objects import Object

REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"
HASH_LABEL = "pod-template-hash"

Sizes = Iterator[tuple[Object, int]]


def replicas(workload: Object) -> int:
    number: int = workload["spec"].get("replicas", 1)
    return number


def counted(replica_set: Object, counter: str) -> int:
    number: int = (replica_set.get("status") or {}).get(counter, 0)
    return number


def rolls(deployment: Object) -> bool:
    return bool(deployment["spec"]["strategy"]["type"] == "RollingUpdate")


def max_surge(deployment: Object) -> int:
    return _rolling_limits(deployment)[0]


def max_unavailable(deployment: Object) -> int:
    return min(_rolling_limits(deployment)[1], replicas(deployment))


def max_replicas(deployment: Object) -> int:
    return replicas(deployment) + max_surge(deployment)


def _rolling_limits(deployment: Object) -> tuple[int, int]:
    """maxSurge and maxUnavailable as numbers. If both were zero, no rollout could go on: then one
    pod may be unavailable."""
    if not rolls(deployment):
        return 0, 0
    rolling = deployment["spec"]["strategy"].get("rollingUpdate") or {}
    surge = scaled(rolling.get("maxSurge", "25%"), replicas(deployment), up=True)
    down = scaled(rolling.get("maxUnavailable", "25%"), replicas(deployment), up=False)
    return surge, down or int(surge == 0)


def same_template(deployment: Object, replica_set: Object) -> bool:
    """Whether the templates are equal, apart from the label that the controller adds."""
    return _bare(deployment["spec"]["template"]) == _bare(replica_set["spec"]["template"])


def _bare(template: Object) -> Object:
    metadata = template.get("metadata") or {}
    own = {k: v for k, v in (metadata.get("labels") or {}).items() if k != HASH_LABEL}
    rest = {key: value for key, value in metadata.items() if value and key != "labels"}
    return {**template, "metadata": {**rest, "labels": own}}


def by_age(replica_sets: list[Object]) -> list[Object]:
    return sorted(replica_sets, key=_age)


def _age(replica_set: Object) -> tuple[str, str]:
    return replica_set["metadata"]["creationTimestamp"], name(replica_set)


def with_replicas(replica_sets: list[Object]) -> list[Object]:
    return [replica_set for replica_set in replica_sets if replicas(replica_set)]


def new_size(deployment: Object, new: Object, old: list[Object]) -> int:
    """The size of the new ReplicaSet: as large as maxSurge allows."""
    wanted = replicas(deployment)
    if not rolls(deployment) or replicas(new) >= wanted:
        return wanted
    total = replicas(new) + sum(replicas(replica_set) for replica_set in old)
    room = max_replicas(deployment) - total
    return min(wanted, replicas(new) + max(room, 0))


def old_sizes(deployment: Object, new: Object, old: list[Object]) -> Sizes:
    """Shrink old ReplicaSets, unhealthy pods first, while enough pods are available.

    A ReplicaSet that shrinks for both reasons comes twice: each is a write of its own.
    """
    total = replicas(new) + sum(replicas(replica_set) for replica_set in old)
    minimum = replicas(deployment) - max_unavailable(deployment)
    starting = replicas(new) - counted(new, "availableReplicas")
    budget = total - minimum - starting
    if budget <= 0:
        return
    sizes = [(replica_set, replicas(replica_set)) for replica_set in by_age(old)]
    for number, (replica_set, size) in enumerate(sizes):
        cut = max(min(size - counted(replica_set, "availableReplicas"), budget), 0)
        if cut:
            budget -= cut
            sizes[number] = (replica_set, size - cut)
            yield sizes[number]
    spare = sum(counted(replica_set, "availableReplicas") for replica_set in (new, *old)) - minimum
    for replica_set, size in sizes:
        cut = max(min(size, spare), 0)
        if cut:
            spare -= cut
            yield replica_set, size - cut


def resized(deployment: Object, new: Object | None, old: list[Object]) -> Sizes:
    """The sizes after a change of spec.replicas: several ReplicaSets share it in proportion."""
    everything = old if new is None else [*old, new]
    active = with_replicas(everything)
    if len(active) <= 1:
        latest = new if new is not None else next(reversed(by_age(old)), None)
        only = active[0] if active else latest
        if only is not None and replicas(only) != replicas(deployment):
            yield only, replicas(deployment)
    elif _saturated(deployment, new):
        yield from ((replica_set, 0) for replica_set in old if replicas(replica_set))
    elif rolls(deployment):
        yield from _proportional(deployment, active)


def _saturated(deployment: Object, new: Object | None) -> bool:
    if new is None:
        return False
    wanted = replicas(deployment)
    desired = annotations_of(new).get(DESIRED)
    all_there = replicas(new) == counted(new, "availableReplicas") == wanted
    return all_there and desired == str(wanted)


def _proportional(deployment: Object, active: list[Object]) -> Sizes:
    allowed = max_replicas(deployment) if replicas(deployment) else 0
    rest = allowed - sum(replicas(replica_set) for replica_set in active)
    order = sorted(active, key=_age, reverse=rest > 0)
    order.sort(key=replicas, reverse=True)
    added = 0
    sizes = []
    for replica_set in order:
        share = _share(deployment, replica_set, rest, added)
        added += share
        sizes.append((replica_set, replicas(replica_set) + share))
    if rest:
        first, size = sizes[0]
        sizes[0] = (first, max(size + rest - added, 0))
    yield from sizes


def _share(deployment: Object, replica_set: Object, rest: int, added: int) -> int:
    if rest in (0, added):
        return 0
    fraction = _fraction(deployment, replica_set)
    return min(fraction, rest - added) if rest > 0 else max(fraction, rest - added)


def _fraction(deployment: Object, replica_set: Object) -> int:
    if not replicas(deployment):
        return -replicas(replica_set)
    known = int(annotations_of(replica_set).get(MAXIMUM) or 0)
    before = known or counted(deployment, "replicas") or 1
    exact = replicas(replica_set) * max_replicas(deployment) / before
    return math.floor(exact + 0.5) - replicas(replica_set)
