"""A dry run says what the real run does: on random clusters, of which ``make test`` plays a few."""

from __future__ import annotations

import pytest

from claimctl_reschedule_labs.clusters.making import EMPTYING, GPUS
from claimctl_reschedule_labs.clusters.playing import played

SEEDS = (4, 7, 11, 16, 23, 35, 36, 49, 54, 63, 65, 98)
"""Clusters with moves; most of them showed a fault once."""


@pytest.mark.virtual_limit(20_000)
@pytest.mark.parametrize("seed", SEEDS)
async def test_the_real_run_does_what_the_dry_run_says(seed: int) -> None:
    """No pod differs, none stays pending or comes back, and a second run moves nothing."""
    result = await played(seed)
    assert result.findings == []
    assert result.moves > 0


@pytest.mark.virtual_limit(20_000)
@pytest.mark.parametrize(("strategy", "seed"), [(GPUS, 0), (GPUS, 2), (GPUS, 11), (EMPTYING, 0)])
async def test_nodes_are_emptied(strategy: str, seed: int) -> None:
    """As many as brute force finds, or one fewer; no pod stays pending, and the second run moves
    nothing."""
    result = await played(seed, strategy)
    assert result.findings == []
    assert result.emptied > 0 or strategy == EMPTYING
