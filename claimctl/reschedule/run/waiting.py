"""Waits for the first of several events."""

from __future__ import annotations

import asyncio


async def wait_any(*events: asyncio.Event, seconds: float) -> None:
    """Wait until one of the events is set, for ``seconds`` at most."""
    tasks = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
