"""Objects by name, and by further indexes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar

from claimctl.wire.meta import ObjectMeta

Key = tuple[str, str]
"""Namespace and name."""


class HasMetadata(Protocol):
    @property
    def metadata(self) -> ObjectMeta: ...


T = TypeVar("T", bound=HasMetadata)
Indexer = Callable[[T], Iterable[str]]


def key_of(item: HasMetadata) -> Key:
    return item.metadata.namespace, item.metadata.name


class Index(Generic[T]):
    """A store of objects with any number of indexes. An index maps a value to objects.

    Objects are returned in the order in which they were added (to the store, or under the value).
    So equal histories give equal results.
    """

    def __init__(self, indexers: Mapping[str, Indexer[T]]) -> None:
        self._objects: dict[Key, T] = {}
        self._indexers = dict(indexers)
        # dicts stand in for sets: their order is that of insertion
        self._keys: dict[str, dict[str, dict[Key, None]]] = {name: {} for name in indexers}

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: Key) -> T | None:
        return self._objects.get(key)

    def keys(self) -> Iterator[Key]:
        return iter(self._objects)

    def items(self) -> Iterable[T]:
        return self._objects.values()

    def under(self, index: str, value: str) -> tuple[T, ...]:
        """The objects under ``value``; KeyError if the index does not exist."""
        return tuple(self._objects[key] for key in self._keys[index].get(value, ()))

    def put(self, item: T) -> T | None:
        """Add or replace an object; return the old one."""
        key = key_of(item)
        old = self._objects.get(key)
        self._objects[key] = item
        for name, indexer in self._indexers.items():
            values = dict.fromkeys(indexer(item))
            if old is not None:
                gone = [value for value in indexer(old) if value not in values]
                self._remove(name, key, gone)
            for value in values:
                self._keys[name].setdefault(value, {})[key] = None
        return old

    def pop(self, key: Key) -> T | None:
        """Remove an object and return it."""
        old = self._objects.pop(key, None)
        if old is not None:
            for name, indexer in self._indexers.items():
                self._remove(name, key, indexer(old))
        return old

    def _remove(self, name: str, key: Key, values: Iterable[str]) -> None:
        by_value = self._keys[name]
        for value in values:
            keys = by_value.get(value, {})
            keys.pop(key, None)
            if not keys:
                by_value.pop(value, None)
