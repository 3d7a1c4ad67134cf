"""The fixture ``kube_cluster``: a cluster of its own for each test.

``@pytest.mark.kube_cluster(ClusterOptions(nodes=8))`` says what cluster; without it, the default.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kube_in_process.testing import ServedCluster


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "kube_cluster(options): the options of ``kube_cluster``")


@pytest.fixture
def kube_cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServedCluster]:
    """A cluster that serves HTTP on the loopback; ``kube_cluster.kubeconfig`` leads to it."""
    # imported here: each run of pytest loads the plugin, and few need a cluster
    from kube_in_process.testing import served

    marker = request.node.get_closest_marker("kube_cluster")
    with served(tmp_path, marker.args[0] if marker else None) as cluster:
        yield cluster
