"""The memory of the cluster: a revision counter, encoded objects, and the history of revisions.

Objects are stored as JSON bytes under ``namespace/name``. Each read decodes them again, so a change
of a read object does not change the store.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kube_in_process.objects import Object

Objects = list[Object]
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(dict[str, Any])
_outline_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])

encode = _encoder.encode
decode = _decoder.decode
decode_any = msgspec.json.decode


def outline(data: bytes) -> Object:
    """An object whose fields stay encoded. ``encode`` writes them as they are."""
    return dict(_outline_decoder.decode(data))


class Revision(msgspec.Struct, frozen=True):
    """One write. ``data`` of a DELETED revision is the last state with the version of the deletion.

    ``group`` and ``plural`` are those of the storage (events of events.k8s.io are stored in the
    core group). ``at`` is in seconds of the store's clock. ``verb`` is create, update, patch, apply
    or delete.
    """

    number: int
    type: str
    group: str
    plural: str
    namespace: str
    name: str
    data: bytes
    previous: bytes | None
    actor: str
    verb: str
    at: float
    subresource: str = ""

    def object(self) -> Object:
        return decode(self.data)

    def previous_object(self) -> Object | None:
        return None if self.previous is None else decode(self.previous)


class Address(msgspec.Struct, frozen=True):
    """The storage address of an object."""

    group: str
    plural: str
    namespace: str
    name: str

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class Author(msgspec.Struct, frozen=True):
    """The user and the verb of a write, for the history."""

    user: str
    verb: str
    subresource: str = ""


Callback = Callable[[Revision], None]


@dataclass(slots=True)
class _Table:
    keys: list[str] = field(default_factory=list)
    data: dict[str, bytes] = field(default_factory=dict)
    log: deque[Revision] = field(default_factory=deque)
    callbacks: list[Callback] = field(default_factory=list)

    def span(self, namespace: str) -> tuple[int, int]:
        if not namespace:
            return 0, len(self.keys)
        return bisect_left(self.keys, f"{namespace}/"), bisect_left(self.keys, f"{namespace}0")

    def put(self, key: str, data: bytes) -> None:
        if key not in self.data:
            insort(self.keys, key)
        self.data[key] = data

    def drop(self, key: str) -> None:
        del self.data[key]
        del self.keys[bisect_left(self.keys, key)]


class Items(msgspec.Struct, frozen=True):
    """The objects of a list at one revision, to be read before the next write.

    A page of a long list costs what the page has, not what the list has.

    Attributes:
        keys: ``namespace/name`` of the objects, sorted.
    """

    keys: list[str]
    _present: Mapping[str, bytes]
    _earlier: Mapping[str, bytes | None] = msgspec.field(default_factory=dict)

    def data(self, key: str) -> bytes:
        """The encoded object of one of the keys."""
        return self._earlier.get(key) or self._present[key]

    def named(self, name: str) -> Items:
        """Only the objects of this name."""
        keys = [key for key in self.keys if key.rpartition("/")[2] == name]
        return Items(keys, self._present, self._earlier)

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[bytes]:
        return map(self.data, self.keys)


class Compacted(Exception):
    """The store no longer has the requested revision."""


class Store:
    """``limit`` is the number of revisions to keep (None: all). ``clock`` returns seconds."""

    def __init__(self, clock: Callable[[], float], limit: int | None = None) -> None:
        self.revision = 1
        self.compacted = 0
        self.begun = 0
        """The revision at which the API server was last started; it serves no watch from before."""
        self._clock = clock
        self._limit = limit
        self._tables: dict[tuple[str, str], _Table] = {}
        self._history: deque[Revision] = deque()
        self._callbacks: list[Callback] = []

    def get(self, address: Address) -> Object | None:
        data = self.get_bytes(address)
        return None if data is None else decode(data)

    def get_bytes(self, address: Address) -> bytes | None:
        table = self._tables.get((address.group, address.plural))
        return table.data.get(address.key) if table else None

    def list(self, group: str, plural: str, namespace: str = "") -> Objects:
        """Decoded objects in the order of their keys."""
        return [decode(data) for data in self.items(group, plural, namespace)]

    def items(self, group: str, plural: str, namespace: str = "") -> Items:
        """The objects as they are now."""
        table = self._tables.get((group, plural))
        if table is None:
            return Items([], {})
        start, end = table.span(namespace)
        return Items(table.keys[start:end], table.data)

    def counts(self) -> dict[str, int]:
        """How many objects of each resource there are, by ``plural`` or ``plural.group``."""
        return {
            f"{plural}.{group}" if group else plural: len(table.data)
            for (group, plural), table in self._tables.items()
        }

    def items_at(self, group: str, plural: str, namespace: str, revision: int) -> Items:
        """Like ``items``, at an earlier revision.

        Raises:
            Compacted: the revision is no longer there.
        """
        now = self.items(group, plural, namespace)
        if revision >= self.revision:
            return now
        self._check_kept(revision)
        table = self._table(group, plural)
        earlier: dict[str, bytes | None] = {}
        for change in reversed(table.log):
            if change.number <= revision:
                break
            if not namespace or change.namespace == namespace:
                earlier[f"{change.namespace}/{change.name}"] = change.previous
        for key, previous in earlier.items():
            if previous is None and key in table.data:
                del now.keys[bisect_left(now.keys, key)]
            elif previous is not None and key not in table.data:
                insort(now.keys, key)
        return Items(now.keys, table.data, earlier)

    def object_at(self, address: Address, revision: int) -> Object | None:
        """The object at a revision, even if that was compacted; None if it did not exist.

        Raises:
            Compacted: the bound on the history has dropped that revision.
        """
        if revision < self.first - 1:
            raise Compacted(revision)
        data = self.get_bytes(address)
        for change in reversed(self._table(address.group, address.plural).log):
            if change.number <= revision:
                break
            if (change.namespace, change.name) == (address.namespace, address.name):
                data = change.previous
        return None if data is None else decode(data)

    def put(self, address: Address, obj: Object, author: Author) -> Object:
        """Write an object under the next revision, and return it with that version."""
        obj["metadata"]["resourceVersion"] = str(self.revision + 1)
        self.put_bytes(address, encode(obj), author)
        return obj

    def put_bytes(self, address: Address, data: bytes, author: Author) -> None:
        """Write an encoded object, whose version is already the next revision."""
        table = self._table(address.group, address.plural)
        previous = table.data.get(address.key)
        table.put(address.key, data)
        change = "ADDED" if previous is None else "MODIFIED"
        self._commit(table, self._revision(change, address, author, data, previous))

    def delete(self, address: Address, author: Author, final: Object | None = None) -> Object:
        """Remove an object. ``final`` is its last state if that differs from the stored one."""
        table = self._table(address.group, address.plural)
        previous = table.data[address.key]
        obj = decode(previous) if final is None else dict(final)
        obj["metadata"] = {**obj["metadata"], "resourceVersion": str(self.revision + 1)}
        table.drop(address.key)
        self._commit(table, self._revision("DELETED", address, author, encode(obj), previous))
        return obj

    def _revision(
        self, change: str, address: Address, author: Author, data: bytes, previous: bytes | None
    ) -> Revision:
        return Revision(
            number=self.revision + 1,
            type=change,
            group=address.group,
            plural=address.plural,
            namespace=address.namespace,
            name=address.name,
            data=data,
            previous=previous,
            actor=author.user,
            verb=author.verb,
            at=self._clock(),
            subresource=author.subresource,
        )

    def _commit(self, table: _Table, revision: Revision) -> None:
        self.revision = revision.number
        self._history.append(revision)
        table.log.append(revision)
        if self._limit is not None and len(self._history) > self._limit:
            self._drop_oldest()
        for callback in (*table.callbacks, *self._callbacks):
            callback(revision)

    def _drop_oldest(self) -> None:
        oldest = self._history.popleft()
        self._table(oldest.group, oldest.plural).log.popleft()
        self.compacted = max(self.compacted, oldest.number)

    def _table(self, group: str, plural: str) -> _Table:
        return self._tables.setdefault((group, plural), _Table())

    def _check_kept(self, revision: int) -> None:
        if revision < self.compacted:
            raise Compacted(revision)

    def compact(self, revision: int | None = None) -> None:
        """Compact: from now on, serve nothing older than ``revision`` (None: the current one)."""
        self.compacted = max(self.compacted, self.revision if revision is None else revision)

    def begin(self) -> None:
        """Begin anew, as an API server does that is started on the same etcd."""
        self.begun = self.revision

    def restore(self, revision: int) -> None:
        """Put every object back as it was, with its version, and begin anew.

        Etcd does so when a backup is restored with ``--bump-revision``: the next revision is none
        of the lost history.
        """
        for (group, plural), table in list(self._tables.items()):
            earlier: dict[tuple[str, str], bytes | None] = {}
            for change in reversed(table.log):
                if change.number <= revision:
                    break
                earlier[change.namespace, change.name] = change.previous
            for (namespace, name), data in earlier.items():
                self._put_back(table, Address(group, plural, namespace, name), data)
        self.begin()

    def _put_back(self, table: _Table, address: Address, data: bytes | None) -> None:
        present, author = table.data.get(address.key), Author("etcd", "restore")
        if data is not None:
            change = "ADDED" if present is None else "MODIFIED"
            table.put(address.key, data)
            self._commit(table, self._revision(change, address, author, data, present))
        elif present is not None:
            table.drop(address.key)
            self._commit(table, self._revision("DELETED", address, author, present, present))

    def subscribe(
        self, callback: Callback, group: str | None = None, plural: str = ""
    ) -> Callable[[], None]:
        """Call ``callback`` after every write (to one storage, or all); return how to stop it."""
        callbacks = self._callbacks if group is None else self._table(group, plural).callbacks
        callbacks.append(callback)
        return lambda: callbacks.remove(callback) if callback in callbacks else None

    def since(self, group: str, plural: str, revision: int) -> Iterator[Revision]:
        """The revisions of one storage after ``revision``, oldest first.

        Raises:
            Compacted: some of them are no longer there, or the API server was started since.
        """
        if revision < max(self.compacted, self.begun):
            raise Compacted(revision)
        log = self._table(group, plural).log
        return iter(_after(log, revision))

    @property
    def first(self) -> int:
        """The oldest revision in the history."""
        return self._history[0].number if self._history else self.revision + 1

    def history(self, since: int = 0) -> Iterator[Revision]:
        """Yield every kept revision after ``since``, oldest first, also compacted ones."""
        skip = max(since + 1 - self.first, 0)
        for index in range(skip, len(self._history)):
            yield self._history[index]


def _after(log: deque[Revision], revision: int) -> list[Revision]:
    changes: list[Revision] = []
    for change in reversed(log):
        if change.number <= revision:
            break
        changes.append(change)
    changes.reverse()
    return changes
