"""Stories of the emulated components have a cluster of their own each."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import pytest
from kube_in_process.options import ClusterOptions

from kube_in_process_tests import worlds
from kube_in_process_tests.worlds import World


@pytest.fixture
def options(request: pytest.FixtureRequest) -> ClusterOptions:
    """The cluster that ``@pytest.mark.kube_cluster(OPTIONS)`` names, where no parameter does."""
    marker = request.node.get_closest_marker("kube_cluster")
    assert marker is not None, "the test has to say on which cluster"
    named: ClusterOptions = marker.args[0]
    return named


@pytest.fixture
def world(options: ClusterOptions) -> AbstractAsyncContextManager[World]:
    """A new cluster; no component may fail in it."""
    return worlds.world(options)
