"""Writes of this process: those that the caches do not show yet, and those that do not last.

A decision on an older version would conflict anyway, and one write must not be counted twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cachetools import LRUCache

from claimctl.wire.meta import ObjectMeta, reaches
from claimctl.wire.resources import Resource
from claimctl.wire.seams import Clock

PATIENCE_SECONDS = 10.0
"""After this time the cache counts as current: some writes leave no trace (a delete, a no-op)."""
REMEMBERED_OBJECTS = 10_000
"""The number of objects whose last write is remembered."""
REPEAT_SECONDS = 60.0
"""How long writes are remembered, in seconds, to detect another client that undoes them."""


@dataclass(slots=True)
class _Written:
    """The last write of this process to an object."""

    version: str
    at: float
    hurried: bool
    """Whether the next step waits for the event of this version."""
    last: bool
    """Whether there is no next step."""
    shown: bool = False
    """Whether the cache has it, or counts as current."""


class OwnWrites:
    """The last write of this process to each object."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._written: LRUCache[tuple[str, str, str], _Written] = LRUCache(REMEMBERED_OBJECTS)

    def wrote(
        self,
        resource: Resource[Any],
        meta: ObjectMeta,
        *,
        hurried: bool = False,
        last: bool = False,
    ) -> None:
        """Note the version in the answer to a write. If it is ``hurried``, the next step waits for
        its event; after the ``last`` write there is none."""
        now, version = self._clock.monotonic(), meta.resource_version
        self._written[resource.plural, *meta.key] = _Written(version, now, hurried, last)

    def awaited(self, resource: Resource[Any], meta: ObjectMeta) -> bool:
        """Whether the next step waits for the event of this version, which this process wrote."""
        written = self._of(resource, meta)
        return written is not None and written.hurried

    def was_last(self, resource: Resource[Any], meta: ObjectMeta) -> bool:
        """Whether nothing waits for the event of this version, which this process wrote."""
        written = self._of(resource, meta)
        return written is not None and written.last and not written.hurried

    def _of(self, resource: Resource[Any], meta: ObjectMeta) -> _Written | None:
        """The write of this version, if it was the last one of this process."""
        written = self._written.get((resource.plural, *meta.key))
        known = written is not None and written.version == meta.resource_version
        return written if known else None

    def lags(
        self, resource: Resource[Any], namespace: str, name: str, cached: ObjectMeta | None
    ) -> bool:
        """Whether the cache is older than our last write of the object.

        If it is, the caller waits for the event of that write, which counts as ``awaited`` then.
        """
        written = self._written.get((resource.plural, namespace, name))
        if written is None or written.shown:
            return False
        late = self._clock.monotonic() - written.at >= PATIENCE_SECONDS
        if late or (cached is not None and reaches(cached.resource_version, written.version)):
            written.shown = True
            return False
        written.hurried = True
        return True


def repeats(writes: Iterable[tuple[float, object]], now: float) -> int:
    """How often the content of the last write was written before.

    Args:
        writes: the times and contents of the writes to one object.
    """
    recent = [content for at, content in writes if now - at < REPEAT_SECONDS]
    return recent.count(recent[-1]) - 1 if recent else 0
