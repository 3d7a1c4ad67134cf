"""The PodGroups of a cluster that may serve them, may not, and may change its mind."""

from __future__ import annotations

from collections.abc import Callable

from cachetools import LRUCache

from claimctl.controller.keys import ClaimKey, GroupKey
from claimctl.kube.informer import Change, Informer
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.seams import Clock
from claimctl.wire.unreadable import Unreadable

REMEMBERED_NAMES = 10_000
Handler = Callable[[Change[PodGroup]], None]
UnreadHandler = Callable[[Unreadable, bool], None]


class GroupCache:
    """An informer while groups are served; empty otherwise.

    It also knows since when a group's name has not been in use: schedulers and kubelets match
    groups by name, so a name may be used again only when they all have forgotten it.
    """

    def __init__(self, make: Callable[[], Informer[PodGroup]], clock: Clock) -> None:
        self._make = make
        self._clock = clock
        self._informer: Informer[PodGroup] | None = None
        self._handlers: list[Handler] = []
        self._on_unread: list[UnreadHandler] = []
        self._used: LRUCache[GroupKey, float] = LRUCache(REMEMBERED_NAMES)
        self._watched_since: float | None = None

    @property
    def followed(self) -> bool:
        return self._informer is not None

    @property
    def synced(self) -> bool:
        """Whether everything that is served is known."""
        return self._informer is None or self._informer.synced

    def informers(self) -> tuple[Informer[PodGroup], ...]:
        return (self._informer,) if self._informer is not None else ()

    async def wait_synced(self) -> None:
        for informer in self.informers():
            await informer.wait_synced()
        if self.followed:
            self._watched_since = self._clock.monotonic()

    def subscribe(self, handler: Handler) -> None:
        self._handlers.append(handler)

    def on_unread(self, handler: UnreadHandler) -> None:
        self._on_unread.append(handler)

    def doubt(self, key: GroupKey) -> Unreadable | None:
        """Why it is not known how a group is, or whether it is there."""
        return self._informer.doubt(key.name, key.namespace) if self._informer else None

    def follow(self) -> Informer[PodGroup]:
        """A new informer, to be run by the caller."""
        self._watched_since = None
        self._informer = self._make()
        self._informer.subscribe(self._changed)
        for handler in self._handlers:
            self._informer.subscribe(handler)
        for told in self._on_unread:
            self._informer.on_unread(told)
        return self._informer

    def leave(self) -> None:
        """Groups are not served any more: nothing is known of any."""
        self._informer = None
        self._watched_since = None

    def get(self, key: GroupKey) -> PodGroup | None:
        return self._informer.get(key.name, key.namespace) if self._informer else None

    def items(self) -> tuple[PodGroup, ...]:
        return tuple(self._informer.items()) if self._informer else ()

    def sharing(self, claim: ClaimKey) -> tuple[PodGroup, ...]:
        """The groups that name the claim."""
        return self._informer.by_index("claim", str(claim)) if self._informer else ()

    def claim_changed(self, namespace: str, old: ResourceClaim | None) -> None:
        """Note which groups a claim listed until now."""
        for reference in old.status.reserved_for if old else ():
            if reference.resource == "podgroups":
                self._used[GroupKey(namespace, reference.name)] = self._clock.monotonic()

    def quiet(self, key: GroupKey) -> float:
        """Seconds since the name was last seen in use, or since this process began to look."""
        now = self._clock.monotonic()
        if self._watched_since is None:
            if not self.followed or not self.synced:
                return 0.0
            self._watched_since = now
        return now - max(self._watched_since, self._used.get(key, self._watched_since))

    def _changed(self, change: Change[PodGroup]) -> None:
        if change.new is None:
            key = GroupKey(change.namespace, change.name)
            self._used[key] = self._clock.monotonic()
