"""The objects of an informer: by name and by further indexes, and those that cannot be read.

An object cannot be read if it cannot be decoded, or if an exception is raised where it is kept,
indexed or handled. The cache keeps its last readable version and reports the object as unreadable.
The other objects are not affected. An unreadable object never counts as gone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from claimctl.kube.codec import Listing, WatchEvent
from claimctl.telemetry.face import LateLogger, Metric, Telemetry
from claimctl.wire.base import encode
from claimctl.wire.meta import HasMetadata
from claimctl.wire.resources import Resource
from claimctl.wire.seams import Clock
from claimctl.wire.unreadable import Unreadable

log = LateLogger(__name__)

MOST_LINES = 20
"""Log lines for one kind in one minute: one object may change a hundred times a second."""
MINUTE = 60.0

Key = tuple[str, str]
"""Namespace and name."""


T = TypeVar("T", bound=HasMetadata)
Indexer = Callable[[T], Iterable[Hashable]]
Values = Mapping[str, Mapping[Hashable, None]]
"""By index: the values that an object is found under, in order."""


def key_of(item: HasMetadata) -> Key:
    return item.metadata.key


class Index(Generic[T]):
    """A store of objects with any number of indexes. An index maps a value to objects.

    Objects are returned in the order in which they were added (to the store, or under the value).
    So equal histories give equal results.
    """

    def __init__(self, indexers: Mapping[str, Indexer[T]]) -> None:
        self._objects: dict[Key, T] = {}
        self._indexers = dict(indexers)
        # by index, value and key
        self._under: dict[str, dict[Hashable, dict[Key, T]]] = {name: {} for name in indexers}
        self.bytes = 0
        """The length of all objects as JSON. In memory they have two to four times as many."""

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: Key) -> T | None:
        return self._objects.get(key)

    def keys(self) -> Iterator[Key]:
        return iter(self._objects)

    def items(self) -> Iterable[T]:
        return self._objects.values()

    def under(self, index: str, value: Hashable) -> tuple[T, ...]:
        """The objects under ``value``; KeyError if the index does not exist."""
        items = self._under[index].get(value)
        return tuple(items.values()) if items is not None else ()

    def values(self, item: T | None) -> Values:
        """The values of an object in each index, in order; none without an object.

        The exceptions of indexers come from here, and so before anything is changed.
        """
        return {
            name: dict.fromkeys(indexer(item)) if item is not None else {}
            for name, indexer in self._indexers.items()
        }

    def put(self, item: T, values: Values) -> T | None:
        """Add or replace an object under its ``values``; return the old one."""
        key = key_of(item)
        old = self._objects.get(key)
        before = self.values(old)
        self.bytes += len(encode(item)) - self._size(old)
        self._objects[key] = item
        for name, now in values.items():
            self._remove(name, key, [value for value in before[name] if value not in now])
            for value in now:
                self._under[name].setdefault(value, {})[key] = item
        return old

    def pop(self, key: Key) -> T | None:
        """Remove an object and return it."""
        old = self._objects.pop(key, None)
        self.bytes -= self._size(old)
        for name, values in self.values(old).items():
            self._remove(name, key, values)
        return old

    def _size(self, old: T | None) -> int:
        # encoded again: to remember the lengths would take more memory than many objects
        return len(encode(old)) if old is not None else 0

    def _remove(self, name: str, key: Key, values: Iterable[Hashable]) -> None:
        by_value = self._under[name]
        for value in values:
            keys = by_value.get(value, {})
            keys.pop(key, None)
            if not keys:
                by_value.pop(value, None)


class UnreadObjects:
    """The objects of one kind that cannot be read: by name, and those without a readable name.

    Each is logged once and counted.
    """

    def __init__(self, resource: Resource[Any], clock: Clock, telemetry: Telemetry) -> None:
        self.resource = resource
        self._clock = clock
        self._telemetry = telemetry
        self._known: dict[Key, Unreadable] = {}
        self._lines: deque[float] = deque(maxlen=MOST_LINES)
        self._not_logged = 0
        self.nameless: tuple[Unreadable, ...] = ()
        """Objects whose metadata cannot be read."""

    def all(self) -> tuple[Unreadable, ...]:
        return (*self._known.values(), *self.nameless)

    def keys(self) -> set[Key]:
        return set(self._known)

    def get(self, key: Key) -> Unreadable | None:
        return self._known.get(key)

    def about(self, key: Key) -> Unreadable | None:
        """The unreadable object of this name, or one without a name that may be this object."""
        return self._known.get(key) or next(
            (unread for unread in self.nameless if unread.may_be_in(key[0])), None
        )

    def may_be_nameless(self, key: Key) -> bool:
        return any(unread.may_be_in(key[0]) for unread in self.nameless)

    def note(self, unread: Unreadable, error: Exception | None = None) -> bool:
        """Add an unreadable object; return whether it is new or has changed.

        Args:
            error: the exception that was raised for it. Its traceback is logged.
        """
        key = (unread.namespace, unread.name)
        if self._known.get(key) == unread:
            return False
        self._known[key] = unread
        self.log(unread, error)
        self.publish()
        return True

    def forget(self, key: Key) -> Unreadable | None:
        """Remove an object that can be read again or is gone; return it."""
        unread = self._known.pop(key, None)
        if unread is not None:
            self.publish()
        return unread

    def replace_nameless(self, nameless: Sequence[Unreadable]) -> tuple[Unreadable, ...]:
        """Replace the nameless objects; return those that are new and those that are gone."""
        before, self.nameless = self.nameless, tuple(dict.fromkeys(nameless))
        added = tuple(unread for unread in self.nameless if unread not in before)
        for unread in added:
            self.log(unread)
        if before != self.nameless:
            self.publish()
        return (*added, *(unread for unread in before if unread not in self.nameless))

    def publish(self) -> None:
        labels = {"resource": self.resource.plural}
        count = len(self._known) + len(self.nameless)
        self._telemetry.gauge(Metric.UNREADABLE_OBJECTS, count, labels)

    def log(self, unread: Unreadable, error: Exception | None = None) -> None:
        """Log an unreadable object, with the traceback of the exception that was raised for it."""
        now = self._clock.monotonic()
        full = len(self._lines) == MOST_LINES
        if full and now - self._lines[0] < MINUTE:
            self._not_logged += 1
            return
        self._lines.append(now)
        more: dict[str, Any] = {"not_logged_before": self._not_logged} if self._not_logged else {}
        if error is not None:
            more["exc_info"] = error
        self._not_logged = 0
        log.warning(
            "an object cannot be read, no decision is made about claims that it concerns",
            object=str(unread),
            version=unread.resource_version,
            problem=unread.problem,
            **more,
        )


@dataclass(frozen=True, slots=True)
class Cache(Generic[T]):
    """Takes in what lists and watches show, and reports what it changes.

    Attributes:
        keep: returns the object as it is stored, or None to drop it.
        report: called with the key, the old and the new object, and whether versions between them
            may have been missed.
        report_unread: called when an object becomes unreadable, and when it no longer is; the
            second argument is True if the unreadable object was deleted.
    """

    index: Index[T]
    unread: UnreadObjects
    keep: Callable[[T], T | None]
    report: Callable[[Key, T | None, T | None, bool], None]
    report_unread: Callable[[Unreadable, bool], None]

    def apply(self, event: WatchEvent[T]) -> None:
        """Take in one event of a watch."""
        if event.unreadable is not None:
            self._apply_unreadable(event.unreadable, gone=event.type == "DELETED")
        elif event.object is not None and event.type == "DELETED":
            self.remove(key_of(event.object), event.object, relist=False)
        elif event.object is not None:
            self.put(event.object, relist=False)

    def _apply_unreadable(self, unread: Unreadable, *, gone: bool) -> None:
        if not unread.identified:
            self.replace_nameless([*self.unread.nameless, unread])
        elif gone:
            self.remove((unread.namespace, unread.name), None, relist=True, unread=unread)
        else:
            self.note_unreadable(unread)

    def put(self, item: T, *, relist: bool) -> None:
        """Add or replace an object."""
        key = key_of(item)
        old, before = self.index.get(key), self.unread.get(key)
        if old is not None and before is None:
            meta, known = item.metadata, old.metadata
            if (meta.uid, meta.resource_version) == (known.uid, known.resource_version):
                return
        try:
            kept = self.keep(item)
            values = self.index.values(kept)
        except Exception as error:
            self.fail(item, error)
            return
        relist = relist or before is not None or self.unread.may_be_nameless(key)
        self.unread.forget(key)
        if old is not None and (kept is None or old.metadata.uid != item.metadata.uid):
            self.remove(key, None, relist=relist)
            old = None
        if kept is not None:
            self.index.put(kept, values)
            self.report(key, old, kept, relist)
        if before is not None:
            self.report_unread(before, before.uid != item.metadata.uid)

    def fail(self, item: T, error: Exception, *, gone: bool = False) -> None:
        """Note an object as unreadable, because an exception was raised for it.

        Args:
            gone: whether the object was deleted. Then it counts as one that was unreadable when it
                was deleted, and is not kept.
        """
        unread = Unreadable.failed(self.unread.resource, item, error)
        # a fault of the object, and not one of ours whose place somebody has to find
        bug = None if isinstance(error, msgspec.ValidationError) else error
        if gone:
            self.unread.log(unread, bug)
            self.report_unread(unread, True)
        else:
            self.note_unreadable(unread, bug)

    def remove(
        self, key: Key, last: T | None, *, relist: bool, unread: Unreadable | None = None
    ) -> None:
        """Remove an object.

        Args:
            last: its last version, if an event showed that.
            unread: its last version, if that cannot be decoded.
        """
        before = unread or self.unread.get(key)
        self.unread.forget(key)
        old = self.index.pop(key)
        known = before is not None or old is not None
        if known and last is not None and (old is None or last.metadata.uid == old.metadata.uid):
            try:
                old = self.keep(last) or old
            except Exception as error:
                self.fail(last, error, gone=True)
        if old is not None:
            self.report(key, old, None, relist)
        if before is not None:
            self.report_unread(before, last is None)

    def note_unreadable(self, unread: Unreadable, error: Exception | None = None) -> None:
        """Keep the last readable version of an object whose present version cannot be read."""
        key = (unread.namespace, unread.name)
        old, before = self.index.get(key), self.unread.get(key)
        uid = old.metadata.uid if old is not None else before.uid if before else unread.uid
        if uid != unread.uid:
            self.remove(key, None, relist=True)
        if self.unread.note(unread, error):
            self.report_unread(unread, False)

    def replace_nameless(self, nameless: Sequence[Unreadable]) -> None:
        """Replace the unreadable objects without names, and report which came and went."""
        for unread in self.unread.replace_nameless(nameless):
            self.report_unread(unread, False)


class Relist(Generic[T]):
    """Puts the pages of one list into a cache, and then removes what the list lacks."""

    def __init__(self, cache: Cache[T]) -> None:
        self._cache = cache
        # the keys that the list has not shown yet; to keep the keys of all listed objects instead
        # would cost as much memory as the cache when most objects are dropped
        self._missing = dict.fromkeys((*cache.index.keys(), *cache.unread.keys()))
        self._nameless: list[Unreadable] = []

    def add(self, page: Listing[T]) -> None:
        for item in page.items:
            if self._missing:
                self._missing.pop(key_of(item), None)
            self._cache.put(item, relist=True)
        for unread in page.unreadable:
            if unread.identified:
                self._missing.pop((unread.namespace, unread.name), None)
                self._cache.note_unreadable(unread)
            else:
                self._nameless.append(unread)

    def end(self) -> None:
        """Report objects that the list lacks as deleted.

        An object may be one that the list has without a readable name. It is then not reported.
        """
        self._cache.replace_nameless(self._nameless)
        for key in self._missing:
            if not self._cache.unread.may_be_nameless(key):
                self._cache.remove(key, None, relist=True)
        self._cache.unread.publish()
