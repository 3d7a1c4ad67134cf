"""Foreign bytes pass the caches of a controller, and do not stay."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest

from bench.memory import MB, MemoryLoad, passed


@pytest.mark.real_time(120)
def test_hundreds_of_megabytes_pass_and_hardly_any_stays() -> None:
    load = MemoryLoad(objects=60, size=250_000, names=2_000, total=200 * MB)
    tracemalloc.start()
    try:
        caches = asyncio.run(passed(load, lambda: None))
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(caches.claims) == len(caches.replica_sets) == load.objects
    assert held < 10 * MB
    assert most < 100 * MB
