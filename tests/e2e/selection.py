"""Selects the scenarios for a real cluster, and those that run in parallel."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from kube_in_process.options import ClusterOptions

from tests.e2e.real_cluster import RealCluster
from tests.e2e.skipped import reason_for

ALONE = "alone"
"""The marker of a scenario that needs the whole cluster. It pauses servers, creates so many pods
that others would have to wait, or creates the DowngradePlan, of which a cluster has at most one."""
LONG, HEAVY = "long", "heavy"
NOT_OURS = "it needs a cluster for itself, whose servers it may pause and kill"


def fitting(
    items: Iterable[pytest.Item], cluster: RealCluster
) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Select, of a scenario for several versions, the one nearest to the cluster's version.

    The parameters ``minor`` and ``version`` mark scenarios of only that version.

    Returns:
        the scenarios to play, and those to leave out.
    """
    best: dict[str, tuple[int, str]] = {}
    items = list(items)
    for item in items:
        if not _is_of(item, cluster):
            continue
        key, distance = _same(item), _distance(item, cluster)
        best[key] = min(best.get(key, (distance, item.nodeid)), (distance, item.nodeid))
    chosen = {nodeid for _, nodeid in best.values()}
    kept = [item for item in items if item.nodeid in chosen]
    return kept, [item for item in items if item.nodeid not in chosen]


def rank(item: pytest.Item) -> int:
    """Scenarios that take long begin first; those that load the machine begin last."""
    if item.get_closest_marker(LONG) is not None:
        return 0
    return 1 if item.get_closest_marker(HEAVY) is None else 2


def is_alone(item: pytest.Item) -> bool:
    return item.get_closest_marker(ALONE) is not None


def _parameters(item: pytest.Item) -> dict[str, Any]:
    return dict(item.callspec.params) if hasattr(item, "callspec") else {}


def _is_of(item: pytest.Item, cluster: RealCluster) -> bool:
    parameters = _parameters(item)
    minor = parameters.get("minor", cluster.version[1])
    return bool((1, minor) == cluster.version == parameters.get("version", cluster.version))


def _same(item: pytest.Item) -> str:
    """The name of a scenario without its version."""
    parameters = _parameters(item)
    options = parameters.pop("options", None)
    parameters.pop("minor", None)
    dialect = options.preset if isinstance(options, ClusterOptions) else ""
    return f"{item.nodeid.partition('[')[0]} {dialect} {sorted(map(repr, parameters.items()))}"


def _distance(item: pytest.Item, cluster: RealCluster) -> int:
    options = _parameters(item).get("options")
    if not isinstance(options, ClusterOptions):
        return 0
    return abs(options.kubernetes_version[1] - cluster.version[1])


def skip(items: list[pytest.Item], cluster: RealCluster) -> None:
    """Skip scenarios that the cluster cannot play."""
    for item in items:
        if reason := reason_for(item.nodeid, cluster):
            item.add_marker(pytest.mark.skip(reason=reason))
