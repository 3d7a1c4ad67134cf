"""Selects the cluster for the tests of this folder, and the tests for a real cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager

import pytest
from kube_in_process.options import ClusterOptions

from claimctl_demo.story.presets import DIALECTS
from tests.e2e import harness, playground, selection
from tests.e2e.harness import NewStage, Stage, embedded_stage
from tests.e2e.nodes import scenarios
from tests.e2e.real_cluster import SCENARIO_SECONDS, real_stage

if playground.shared() is None or not playground.has_nodes():
    collect_ignore = ["nodes"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On a real cluster: keep each scenario once, and only those of this process."""
    cluster = playground.shared()
    if cluster is None:
        return
    kept, left = selection.fitting(items, cluster)
    items[:] = kept
    config.hook.pytest_deselected(items=left)
    selection.skip(items, cluster)
    if cluster.nodes is not None:
        scenarios.sort(items)
    for item in items:
        if isinstance(item, pytest.Function) and new_stage.__name__ in item.fixturenames:
            item.add_marker(pytest.mark.real_time(SCENARIO_SECONDS))


@pytest.fixture(autouse=True)
def _cluster(request: pytest.FixtureRequest) -> Iterator[None]:
    """Note the cluster that the launcher selected."""
    alone = selection.is_alone(request.node)
    cluster = playground.own() if alone else playground.shared()
    if alone and cluster is None and playground.shared() is not None:
        pytest.skip(selection.NOT_OURS)
    token = harness.chosen.set(cluster)
    yield
    harness.chosen.reset(token)


@pytest.fixture
def new_stage() -> NewStage:
    """Make a stage, on the cluster that the launcher wants or on an embedded one of its own."""
    cluster = harness.chosen.get()
    if cluster is None:
        return embedded_stage

    def on_real_cluster(options: ClusterOptions) -> AbstractAsyncContextManager[Stage]:
        if not cluster.can_play(options):
            pytest.skip(
                f"the cluster speaks {DIALECTS[cluster.dialect]}, not {DIALECTS[options.preset]}"
            )
        return real_stage(cluster, options)

    return on_real_cluster


@pytest.fixture
def stage(new_stage: NewStage, options: ClusterOptions) -> AbstractAsyncContextManager[Stage]:
    """The stage of a scenario, on the cluster that ``options`` describe."""
    return new_stage(options)
