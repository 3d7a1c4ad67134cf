"""Fixtures: ``kube_cluster`` for each test, ``kube_cluster_session`` for a whole run.

``@pytest.mark.kube_cluster(ClusterOptions(nodes=8))`` says what cluster a test has. A fixture
``kube_cluster_options`` of your own says what all others are.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kube_in_process.options import ClusterOptions
    from kube_in_process.testing import ServedCluster


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "kube_cluster(options): the options of ``kube_cluster``")


@pytest.fixture(scope="session")
def kube_cluster_options() -> ClusterOptions | None:
    """The options of clusters that no mark describes; your ``conftest.py`` may define others."""
    return None


@pytest.fixture
def kube_cluster(
    request: pytest.FixtureRequest, tmp_path: Path, kube_cluster_options: ClusterOptions | None
) -> Iterator[ServedCluster]:
    """A cluster that serves HTTPS on the loopback; ``kube_cluster.kubeconfig`` leads to it."""
    # imported here: each run of pytest loads the plugin, and few need a cluster
    from kube_in_process.testing import served

    marker = request.node.get_closest_marker("kube_cluster")
    with served(tmp_path, marker.args[0] if marker else kube_cluster_options) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kube_cluster_session(
    tmp_path_factory: pytest.TempPathFactory, kube_cluster_options: ClusterOptions | None
) -> Iterator[ServedCluster]:
    """One cluster for all tests of the run, or of an xdist worker: use namespaces of your own."""
    from kube_in_process.testing import served

    with served(tmp_path_factory.mktemp("kube-cluster"), kube_cluster_options) as cluster:
        yield cluster
