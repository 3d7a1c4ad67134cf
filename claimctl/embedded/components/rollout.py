"""How large each ReplicaSet of a Deployment should be now; pure arithmetic on specs."""

from __future__ import annotations

from collections.abc import Iterator

from claimctl.embedded.components.objects import annotations_of, scaled, uid
from claimctl.embedded.views import Object

REVISION = "deployment.kubernetes.io/revision"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"
HASH_LABEL = "pod-template-hash"

Sizes = Iterator[tuple[Object, int]]


def replicas(workload: Object) -> int:
    found: int = workload["spec"].get("replicas", 1)
    return found


def counted(replica_set: Object, counter: str) -> int:
    found: int = (replica_set.get("status") or {}).get(counter, 0)
    return found


def max_surge(deployment: Object) -> int:
    return _fences(deployment)[0]


def max_unavailable(deployment: Object) -> int:
    return min(_fences(deployment)[1], replicas(deployment))


def max_replicas(deployment: Object) -> int:
    return replicas(deployment) + max_surge(deployment)


def _fences(deployment: Object) -> tuple[int, int]:
    """Both zero would stop every rollout: then one may be unavailable."""
    if deployment["spec"]["strategy"]["type"] != "RollingUpdate" or not replicas(deployment):
        return 0, 0
    rolling = deployment["spec"]["strategy"].get("rollingUpdate") or {}
    surge = scaled(rolling.get("maxSurge", "25%"), replicas(deployment), up=True)
    down = scaled(rolling.get("maxUnavailable", "25%"), replicas(deployment), up=False)
    return surge, down or int(surge == 0)


def same_template(deployment: Object, replica_set: Object) -> bool:
    """Equal but for the label that the controller adds."""
    return _bare(deployment["spec"]["template"]) == _bare(replica_set["spec"]["template"])


def _bare(template: Object) -> Object:
    metadata = template.get("metadata") or {}
    found = {k: v for k, v in (metadata.get("labels") or {}).items() if k != HASH_LABEL}
    rest = {key: value for key, value in metadata.items() if value and key != "labels"}
    return {**template, "metadata": {**rest, "labels": found}}


def zeroed(replica_set: Object) -> bool:
    return replicas(replica_set) == 0 and counted(replica_set, "replicas") == 0


def new_size(deployment: Object, new: Object, old: list[Object], *, recreate: bool) -> int:
    """The new ReplicaSet grows as far as the surge allows."""
    wanted = replicas(deployment)
    if recreate:
        return wanted
    if replicas(new) >= wanted:
        return wanted
    total = replicas(new) + sum(replicas(each) for each in old)
    room = max_replicas(deployment) - total
    return min(wanted, replicas(new) + max(room, 0))


def old_sizes(deployment: Object, new: Object, old: list[Object]) -> Sizes:
    """Old ReplicaSets shrink, their unhealthy pods first, while enough pods are available."""
    total = replicas(new) + sum(replicas(each) for each in old)
    minimum = replicas(deployment) - max_unavailable(deployment)
    starting = replicas(new) - counted(new, "availableReplicas")
    budget = total - minimum - starting
    sizes = {uid(each): replicas(each) for each in old}
    if budget <= 0:
        return ((each, sizes[uid(each)]) for each in old)
    for each in old:
        unhealthy = replicas(each) - counted(each, "availableReplicas")
        cut = max(min(unhealthy, budget, replicas(each)), 0)
        sizes[uid(each)] -= cut
        budget -= cut
    available = counted(new, "availableReplicas") + sum(
        counted(each, "availableReplicas") for each in old
    )
    spare = available - minimum
    for each in old:
        cut = max(min(sizes[uid(each)], spare), 0)
        sizes[uid(each)] -= cut
        spare -= cut
    return ((each, sizes[uid(each)]) for each in old)


def proportional(deployment: Object, found: list[Object], new: Object | None) -> Sizes:
    """After a change of spec.replicas: one ReplicaSet takes it all, several share it."""
    living = [each for each in found if replicas(each)]
    if len(living) <= 1:
        only = living[0] if living else new
        return iter([(only, replicas(deployment))] if only is not None else [])
    total = sum(replicas(each) for each in living)
    rest = max_replicas(deployment) - total
    sizes = {uid(each): replicas(each) for each in living}
    order = sorted(living, key=replicas, reverse=True)
    for each in order:
        share = _share(deployment, each, rest, total)
        sizes[uid(each)] += share
    left = max_replicas(deployment) - sum(sizes.values())
    sizes[uid(order[0])] = max(sizes[uid(order[0])] + left, 0)
    return ((each, sizes[uid(each)]) for each in living)


def _share(deployment: Object, replica_set: Object, rest: int, total: int) -> int:
    before = int(annotations_of(replica_set).get(MAXIMUM, total)) or total
    wanted = round(replicas(replica_set) * max_replicas(deployment) / before)
    share = wanted - replicas(replica_set)
    return min(share, rest) if rest > 0 else max(share, rest, -replicas(replica_set))
