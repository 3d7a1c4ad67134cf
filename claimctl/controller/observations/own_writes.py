"""Our own writes that the caches do not show yet.

A decision on a claim older than what we wrote would be refused by its resourceVersion anyway;
waiting for the watch saves the request and keeps one write from being taken for two.
"""

from __future__ import annotations

from typing import Any

from cachetools import LRUCache

from claimctl.kube.versions import reaches
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.resources import Resource
from claimctl.wire.seams import Clock

PATIENCE_SECONDS = 10.0
"""After this the cache is believed: the write may have left no trace (a delete, a no-op)."""

REMEMBERED = 10_000
"""Objects; of one that was deleted since, nobody asks again."""


class Freshness:
    def __init__(self, clock: Clock, patience: float = PATIENCE_SECONDS) -> None:
        self._clock = clock
        self._patience = patience
        self._written: LRUCache[tuple[str, str, str], tuple[str, float]] = LRUCache(REMEMBERED)

    def wrote(self, resource: Resource[Any], meta: ObjectMeta) -> None:
        """Note what a write came back with."""
        key = (resource.plural, meta.namespace, meta.name)
        self._written[key] = (meta.resource_version, self._clock.monotonic())

    def lags(
        self, resource: Resource[Any], namespace: str, name: str, cached: ObjectMeta | None
    ) -> bool:
        """Whether the cache shows less than we wrote."""
        key = (resource.plural, namespace, name)
        written = self._written.get(key)
        if written is None:
            return False
        version, at = written
        late = self._clock.monotonic() - at >= self._patience
        if late or (cached is not None and reaches(cached.resource_version, version)):
            del self._written[key]
            return False
        return True
