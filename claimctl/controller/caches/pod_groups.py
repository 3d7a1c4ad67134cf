"""The cache of PodGroups, which a cluster may serve or not; this may change at any time."""

from __future__ import annotations

from collections.abc import Callable

from claimctl.controller.keys import ClaimKey, GroupKey
from claimctl.kube.informer import Change, Informer
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.unreadable import Unreadable

Handler = Callable[[Change[PodGroup]], None]
UnreadHandler = Callable[[Unreadable, bool], None]


class GroupCache:
    """An informer while the cluster serves PodGroups; empty otherwise."""

    def __init__(self, make: Callable[[], Informer[PodGroup]]) -> None:
        self._make = make
        self._informer: Informer[PodGroup] | None = None
        self._handlers: list[Handler] = []
        self._on_unread: list[UnreadHandler] = []

    @property
    def followed(self) -> bool:
        return self._informer is not None

    @property
    def synced(self) -> bool:
        """Whether all PodGroups are known, or none are served."""
        return self._informer is None or self._informer.synced

    def informers(self) -> tuple[Informer[PodGroup], ...]:
        return (self._informer,) if self._informer is not None else ()

    async def wait_synced(self) -> None:
        for informer in self.informers():
            await informer.wait_synced()

    def subscribe(self, handler: Handler) -> None:
        self._handlers.append(handler)

    def on_unread(self, handler: UnreadHandler) -> None:
        self._on_unread.append(handler)

    def unreadable_for(self, key: GroupKey) -> Unreadable | None:
        """The unreadable object that is, or may be, the group; else None."""
        return self._informer.unreadable_for(key.name, key.namespace) if self._informer else None

    def follow(self) -> Informer[PodGroup]:
        """A new informer, to be run by the caller."""
        self._informer = self._make()
        for handler in self._handlers:
            self._informer.subscribe(handler)
        for unread_handler in self._on_unread:
            self._informer.on_unread(unread_handler)
        return self._informer

    def leave(self) -> None:
        """Drop the cache, because PodGroups are not served any more."""
        self._informer = None

    def get(self, key: GroupKey) -> PodGroup | None:
        return self._informer.get(key.name, key.namespace) if self._informer else None

    def items(self) -> tuple[PodGroup, ...]:
        return tuple(self._informer.items()) if self._informer else ()

    def sharing(self, claim: ClaimKey) -> tuple[PodGroup, ...]:
        """The groups that name the claim."""
        return self._informer.by_index("claim", str(claim)) if self._informer else ()
