"""Writes of this process that the caches do not show yet.

A decision on an older version would conflict anyway, and one write must not be counted twice.
"""

from __future__ import annotations

from typing import Any

from cachetools import LRUCache

from claimctl.wire.meta import ObjectMeta, reaches
from claimctl.wire.resources import Resource
from claimctl.wire.seams import Clock

PATIENCE_SECONDS = 10.0
"""After this time the cache counts as current: some writes leave no trace (a delete, a no-op)."""
REMEMBERED_OBJECTS = 10_000
"""The number of objects whose last write is remembered."""


class OwnWrites:
    """The last write of this process to each object."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._written: LRUCache[tuple[str, str, str], tuple[str, float]] = LRUCache(
            REMEMBERED_OBJECTS
        )
        self._hurried: LRUCache[tuple[str, str, str], str] = LRUCache(REMEMBERED_OBJECTS)
        self._last: LRUCache[tuple[str, str, str], str] = LRUCache(REMEMBERED_OBJECTS)

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
        key = (resource.plural, meta.namespace, meta.name)
        self._written[key] = (meta.resource_version, self._clock.monotonic())
        if hurried:
            self._hurried[key] = meta.resource_version
        if last:
            self._last[key] = meta.resource_version

    def awaited(self, resource: Resource[Any], meta: ObjectMeta) -> bool:
        """Whether the next step waits for the event of this version, which this process wrote."""
        key = (resource.plural, meta.namespace, meta.name)
        return self._hurried.get(key) == meta.resource_version

    def was_last(self, resource: Resource[Any], meta: ObjectMeta) -> bool:
        """Whether nothing waits for the event of this version, which this process wrote."""
        key = (resource.plural, meta.namespace, meta.name)
        return self._last.get(key) == meta.resource_version and not self.awaited(resource, meta)

    def lags(
        self, resource: Resource[Any], namespace: str, name: str, cached: ObjectMeta | None
    ) -> bool:
        """Whether the cache is older than our last write of the object.

        If it is, the caller waits for the event of that write, which counts as ``awaited`` then.
        """
        key = (resource.plural, namespace, name)
        written = self._written.get(key)
        if written is None:
            return False
        version, at = written
        late = self._clock.monotonic() - at >= PATIENCE_SECONDS
        if late or (cached is not None and reaches(cached.resource_version, version)):
            del self._written[key]
            return False
        self._hurried[key] = version
        return True
