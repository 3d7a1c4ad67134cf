"""Since when the name of a PodGroup is not in use.

A group is created again only after its name has rested (see ``pod_groups.case``).
"""

from __future__ import annotations

from cachetools import LRUCache

from claimctl.controller.keys import GroupKey
from claimctl.wire.seams import Clock

REMEMBERED_GROUPS = 10_000
"""The number of names whose last use is remembered."""


class GroupNames:
    """When each name was last in use."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._used: LRUCache[GroupKey, float] = LRUCache(REMEMBERED_GROUPS)
        self._known_since: float | None = None

    def used(self, key: GroupKey) -> None:
        """Note that a group of that name, or its entry in a list, existed until now."""
        self._used[key] = self._clock.monotonic()

    def known(self) -> None:
        """Note that all served groups are known from now on, if they were not before."""
        if self._known_since is None:
            self._known_since = self._clock.monotonic()

    def unknown(self) -> None:
        """Note that groups are not watched any more, or are being listed again."""
        self._known_since = None

    def quiet(self, key: GroupKey) -> float:
        """Seconds since the name was last in use, or since all groups are known if that is less."""
        since = self._known_since
        if since is None:
            return 0.0
        return self._clock.monotonic() - max(since, self._used.get(key, since))
