"""Stories of the emulated components have a cluster of their own each."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import pytest

from claimctl.embedded.options import ClusterOptions
from tests.unit.embedded import worlds
from tests.unit.embedded.worlds import World


@pytest.fixture
def world(options: ClusterOptions) -> AbstractAsyncContextManager[World]:
    """A new cluster; no component may fail in it."""
    return worlds.world(options)
