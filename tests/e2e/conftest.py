"""Selects the cluster for the tests of this folder, and the tests for a real cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e import harness, playground, selection


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On a real cluster: keep each scenario once, and only those of this process."""
    cluster = playground.shared()
    if cluster is None:
        return
    kept, left = selection.fitting(items, cluster)
    items[:] = kept
    config.hook.pytest_deselected(items=left)
    selection.skip(items, cluster)


@pytest.fixture(autouse=True)
def _cluster(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let ``harness.play`` use the cluster that the launcher selected."""
    alone = selection.is_alone(request.node)
    cluster = playground.own() if alone else playground.shared()
    if alone and cluster is None and playground.shared() is not None:
        pytest.skip(selection.NOT_OURS)
    token = harness.chosen.set(cluster)
    yield
    harness.chosen.reset(token)
