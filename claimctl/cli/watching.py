"""Follow a cluster for ``-w`` and ``--wait``: do something again after every change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, TextIO

from claimctl.kube.client import Client
from claimctl.kube.errors import KubeError
from claimctl.wire.resources import CLAIMRESERVATIONS, PODS, RESOURCECLAIMS, Resource
from claimctl.wire.seams import Clock

DEBOUNCE_SECONDS = 0.3
"""Changes within this time count as one: a release writes several objects."""
AGAIN_SECONDS = 5.0
"""How often to look where a watch is not possible, and the pause after a watch has failed."""
SHORTEST_PAUSE, LONGEST_PAUSE = 0.25, 2.0
"""Between two looks of a command that waits and reads everything anew each time, in seconds."""
USES = (RESOURCECLAIMS, PODS, CLAIMRESERVATIONS)
"""What shows who uses which claims."""
CLEAR = "\x1b[2J\x1b[H"


@asynccontextmanager
async def changes(
    client: Client, clock: Clock, namespace: str, watched: Sequence[Resource[Any]] = USES
) -> AsyncIterator[AsyncIterator[None]]:
    """An iterator that yields at once, and again after changes of the resources.

    ``async with changes(...) as looks: async for _ in looks: ...`` The watches end with the block.
    A resource that may not be watched is looked at every ``AGAIN_SECONDS``.
    """
    changed = asyncio.Event()
    # the versions are read before the caller's first look: it misses nothing then
    starts = []
    for resource in watched:
        version = ""
        with suppress(KubeError):
            version = await client.version_now(resource, namespace)
        starts.append((resource, version))
    tasks = [
        asyncio.create_task(_watch(client, clock, namespace, start, changed)) for start in starts
    ]
    try:
        yield _iterate(clock, changed)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _iterate(clock: Clock, changed: asyncio.Event) -> AsyncIterator[None]:
    while True:
        changed.clear()
        yield None
        await changed.wait()
        await clock.sleep(DEBOUNCE_SECONDS)


async def _watch(
    client: Client,
    clock: Clock,
    namespace: str,
    start: tuple[Resource[Any], str],
    changed: asyncio.Event,
) -> None:
    """Set ``changed`` after every event. Lost events count as a change."""
    resource, version = start
    while True:
        try:
            if not version:
                version = await client.version_now(resource, namespace)
                changed.set()
            stream = client.watch(resource, namespace, resource_version=version)
            async with aclosing(stream) as events:
                async for event in events:
                    version = event.resource_version or version
                    if event.type != "BOOKMARK":
                        changed.set()
        except KubeError:
            version = ""
            await clock.sleep(AGAIN_SECONDS)
            changed.set()


def pause(waited: float, took: float) -> float:
    """Seconds until a command that waits looks again: soon at first, then less and less often.

    Args:
        waited: for how many seconds it has waited.
        took: how many seconds the last look took; a pause is at least as long.
    """
    return max(took, min(LONGEST_PAUSE, max(SHORTEST_PAUSE, waited)))


def clear(out: TextIO) -> None:
    """Clear a terminal, so that the next picture stands at its top."""
    out.write(CLEAR)
