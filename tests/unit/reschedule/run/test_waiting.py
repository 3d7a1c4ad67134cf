"""A wait for the first of several events."""

from __future__ import annotations

import asyncio

import pytest

from claimctl.reschedule.run.waiting import wait_any


@pytest.mark.parametrize(("set_after", "waited"), [(3.0, 3.0), (9.0, 5.0)])
async def test_it_ends_with_the_first_event_or_in_time(set_after: float, waited: float) -> None:
    loop, first, second = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    loop.call_later(set_after, second.set)
    began = loop.time()
    await wait_any(first, second, seconds=5.0)
    assert loop.time() - began == pytest.approx(waited)
