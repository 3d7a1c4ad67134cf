"""Keeps the objects of one kind in a cache: lists them page by page, and then watches them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import aclosing
from random import Random
from typing import Generic

import msgspec

from claimctl.kube.cache import Cache, Index, Indexer, Key, Relist, T, UnreadObjects
from claimctl.kube.client import Client
from claimctl.kube.errors import Gone, KubeError, LostEvent
from claimctl.kube.probes import WatchPosition, WatchProbes
from claimctl.kube.retry import Backoff, Failures
from claimctl.telemetry.face import LateLogger, Metric
from claimctl.wire.resources import Resource
from claimctl.wire.seams import Clock
from claimctl.wire.unreadable import Unreadable

log = LateLogger(__name__)

_BACKOFF = Backoff(first=0.8, cap=30.0)
_AWAY = Backoff(first=0.8, cap=5.0)
"""Pauses while the server does not answer. Longer pauses would not help a server that is down."""
_BEGIN_SECONDS = 20.0
"""Deadline of a request for a version of the past."""
_FIRST_PAGE = 50
"""The objects of the first page, before the client knows how large they are."""
_HEALTHY_SECONDS = 10.0
"""A stream that lived this long, or that brought an event, resets the count of failures."""


class Change(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One object was added (``old`` is None), was changed, or was deleted (``new`` is None).

    ``old`` and ``new`` have the same UID: an object that was created anew under the same name is
    reported as deleted and then as added. If a watch event reported the deletion, ``old`` is the
    last version of the object.

    Attributes:
        relist: whether versions of the object between ``old`` and ``new`` may have been missed:
            a list showed the change, or the object was unreadable, or an unreadable object
            without a name may have been this object.
    """

    resource: Resource[T]
    namespace: str
    name: str
    old: T | None
    new: T | None
    relist: bool


class Informer(Generic[T]):
    """Caches the objects of a kind as the server last sent them.

    Args:
        namespace: the namespace to follow; empty means all.
        keep: called with each new object. It returns a slimmed object, or None to drop it. The
            metadata must keep name, namespace, uid and resourceVersion. If a cached object is
            dropped, it is reported as deleted.
        indexes: by index name, the values that an object is found under.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        clock: Clock,
        *,
        namespace: str = "",
        keep: Callable[[T], T | None] | None = None,
        indexes: Mapping[str, Indexer[T]] | None = None,
        rng: Random | None = None,
    ) -> None:
        self.resource = resource
        self.trouble: KubeError | None = None
        """Why the cache is not being updated now; None while it is."""
        self._position = WatchPosition()
        self.probes = WatchProbes(
            client, resource, namespace, clock, self._position, self._report_broken
        )
        """They find out whether the cache has reached a version."""
        self._client = client
        self._clock = clock
        self._namespace = namespace
        self._rng = rng or Random()
        self._handlers: list[Callable[[Change[T]], None]] = []
        self._on_connect: list[Callable[[], None]] = []
        self._on_list: list[Callable[[str, str], None]] = []
        self._on_unread: list[Callable[[Unreadable, bool], None]] = []
        self._cache = Cache(
            Index(indexes or {}),
            UnreadObjects(resource, clock, client.telemetry),
            keep or (lambda item: item),
            self._report,
            self._report_unread,
        )
        self._synced = asyncio.Event()
        self._begin = ""
        self._failures = Failures(_BACKOFF, _AWAY)
        self._page_size = _FIRST_PAGE

    @property
    def version(self) -> str:
        """The version that the cache has reached; '' while it is being listed."""
        return self._position.version

    @property
    def synced(self) -> bool:
        """Whether a complete list has arrived since the start."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    def begin_at(self, version: str) -> None:
        """List the objects as they were at ``version`` first, and watch from there on.

        If the server does not have that version any more, or not yet, list them as they are. (A
        watch from a version that the server has not reached would be silent.) Only before ``run``.
        """
        self._begin = version

    def subscribe(self, handler: Callable[[Change[T]], None]) -> None:
        """Call ``handler`` with every change, after the cache has it. Only before ``run``.

        If a handler raises an exception, the others are called all the same, and the object counts
        as unreadable until its next change.
        """
        self._handlers.append(handler)

    def on_connect(self, handler: Callable[[], None]) -> None:
        """Call ``handler`` whenever a watch was opened: the server's version may have changed."""
        self._on_connect.append(handler)

    def on_list(self, handler: Callable[[str, str], None]) -> None:
        """Call ``handler`` after each list: changes may be missed between two versions.

        The arguments are the version that the cache had reached before, '' if none, and the
        version of the list.
        """
        self._on_list.append(handler)

    def on_unread(self, handler: Callable[[Unreadable, bool], None]) -> None:
        """Call ``handler`` when an object becomes unreadable, and when it no longer is.

        The second argument is True if the unreadable object was deleted.
        """
        self._on_unread.append(handler)

    def get(self, name: str, namespace: str = "") -> T | None:
        return self._cache.index.get((namespace, name))

    def unread(self) -> tuple[Unreadable, ...]:
        """The objects that exist and whose present version cannot be read."""
        return self._cache.unread.all()

    def unreadable_for(self, name: str, namespace: str = "") -> Unreadable | None:
        """The unreadable object that is, or may be, the object of this name; else None."""
        return self._cache.unread.about((namespace, name))

    def items(self) -> Iterable[T]:
        """All objects. Do not iterate across an await."""
        return self._cache.index.items()

    def __len__(self) -> int:
        return len(self._cache.index)

    def by_index(self, index: str, value: Hashable) -> tuple[T, ...]:
        """The objects under ``value`` of an index, in the order in which they were added."""
        return self._cache.index.under(index, value)

    async def run(self) -> None:
        """Follow the server until cancelled. After an error, pause and try again.

        An exception that is raised for one object makes that object unreadable, and no more. Any
        other exception is a bug; the objects are listed again then, as after a lost event.
        """
        try:
            await self._follow()
        finally:
            self.probes.cancel()

    async def _follow(self) -> None:
        while True:
            try:
                if not self._position.version:
                    await self._list()
                await self._watch()
            except Gone as error:
                # the version of the watch or a page token expired; in the latter case, the next
                # list is read in one piece, without tokens
                self._page_size = _FIRST_PAGE if self._position.version else 0
                self._position.version = ""
                await self._pause(error)
            except LostEvent as error:
                self._position.version = ""
                await self._pause(error)
            except KubeError as error:
                await self._pause(error)
            except Exception as error:
                path = self.resource.path(self._namespace)
                log.exception("watch failed by a bug", resource=self.resource.plural)
                self._position.version = ""
                await self._pause(LostEvent("GET", path, message=repr(error)))

    async def _list(self) -> None:
        begin, self._begin = self._begin, ""
        if begin:
            try:
                return await self._list_at(begin)
            except KubeError as error:
                what = self.resource.plural
                log.info("not listed at the checkpoint", resource=what, error=str(error))
        return await self._list_at("")

    async def _list_at(self, begin: str) -> None:
        """List all objects, as they were at ``begin`` if given."""
        relist, version = Relist(self._cache), ""
        self._position.lists += 1
        client = self._client.without_retries(_BEGIN_SECONDS) if begin else self._client
        pages = client.pages(self.resource, self._namespace, limit=self._page_size, version=begin)
        async with aclosing(pages):
            async for page in pages:
                relist.add(page)
                version = page.resource_version
                del page  # or else it would be in memory beside the next one
        relist.end()
        self._report_bytes()
        self._position.version = version
        self._page_size = _FIRST_PAGE
        for handler in self._on_list:
            handler(self._position.reached, version)
        self._position.reached = version
        self._synced.set()

    async def _watch(self) -> None:
        """Follow one stream to its end. An early end without an event counts as a failure."""
        began = self._clock.monotonic()
        stream = self._client.watch(
            self.resource,
            self._namespace,
            resource_version=self._position.version,
            timeout_seconds=self._rng.randint(300, 600),
            opened=self._note_opening,
        )
        try:
            async with aclosing(stream):
                async for event in stream:
                    self._failures.clear()
                    self._cache.apply(event)
                    self._report_bytes()
                    self._position.advance(event.resource_version or self._position.version)
        finally:
            # also after an error: the pauses of a kind without events must not grow each time
            lived = self._position.following and self._clock.monotonic() - began >= _HEALTHY_SECONDS
            self._position.following = False
            if lived:
                self._failures.clear()
        if self._cache.unread.nameless:
            # only a new list shows whether such an object is gone or has become readable
            self._position.version = ""
        if not lived:
            await self._pause(None)

    def _note_opening(self) -> None:
        if self.trouble is not None:
            log.info("watch works again", resource=self.resource.plural)
        self.trouble = None
        self._position.following = True
        self._report_broken(0)
        for handler in self._on_connect:
            handler()

    async def _pause(self, error: KubeError | None) -> None:
        seconds = self._failures.delay(error, self._rng)
        if error is not None and not isinstance(error, Gone):
            if self.trouble is None:
                log.warning("watch failed", resource=self.resource.plural, error=str(error))
            self.trouble = error
            self._report_broken(1)
        await self._clock.sleep(seconds)

    def _report_broken(self, value: int) -> None:
        labels = {"resource": self.resource.plural}
        self._client.telemetry.gauge(Metric.WATCH_BROKEN, value, labels)

    def _report_bytes(self) -> None:
        labels = {"resource": self.resource.plural}
        self._client.telemetry.gauge(Metric.CACHE_BYTES, self._cache.index.bytes, labels)

    def _report(self, key: Key, old: T | None, new: T | None, relist: bool) -> None:
        change = Change(self.resource, *key, old, new, relist)
        failure: Exception | None = None
        for handler in self._handlers:
            try:
                handler(change)
            except Exception as error:
                failure = error
        last = new if new is not None else old
        if failure is not None and last is not None:
            self._cache.fail(last, failure, gone=new is None)

    def _report_unread(self, unread: Unreadable, gone: bool) -> None:
        for handler in self._on_unread:
            try:
                handler(unread, gone)
            except Exception as error:
                self._cache.unread.log(unread, error)
