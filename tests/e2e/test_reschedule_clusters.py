"""A dry run says what the real run does: on random clusters, of which ``make test`` plays a few."""

from __future__ import annotations

import pytest

from labs.clusters.playing import played

SEEDS = (4, 7, 11, 16, 23, 35, 36, 49, 54, 63, 65, 98)
"""Clusters with moves; most of them showed a fault once."""


@pytest.mark.virtual_limit(20_000)
@pytest.mark.parametrize("seed", SEEDS)
async def test_the_real_run_does_what_the_dry_run_says(seed: int) -> None:
    """No pod differs, none stays pending or comes back, and a second run moves nothing."""
    result = await played(seed)
    assert result.findings == []
    assert result.moves > 0
