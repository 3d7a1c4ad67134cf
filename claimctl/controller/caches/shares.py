"""A memory of bounded size that namespaces share, so that none makes it forget what another
needs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class InNamespace(Protocol):
    """A key: a named tuple."""

    @property
    def namespace(self) -> str: ...

    def __hash__(self) -> int: ...


K = TypeVar("K", bound=InNamespace)
V = TypeVar("V")


class SharedMemory(Generic[K, V]):
    """Values by key. When it is full, the namespace that uses the most of it loses the value that
    it has not used for longest.

    Args:
        most: how large all values may be together.
        size: the size of a value, at least 1.
    """

    def __init__(self, most: int, size: Callable[[V], int] = lambda value: 1) -> None:
        self._most = most
        self._size = size
        self._values: dict[str, OrderedDict[K, V]] = {}
        self._sizes: dict[str, int] = {}
        self._total = 0

    def __contains__(self, key: K) -> bool:
        return key in self._values.get(key.namespace, ())

    def get(self, key: K, default: V) -> V:
        """The value of a key, which is then in use."""
        values = self._values.get(key.namespace)
        if values is None or key not in values:
            return default
        values.move_to_end(key)
        return values[key]

    def __setitem__(self, key: K, value: V) -> None:
        values = self._values.setdefault(key.namespace, OrderedDict())
        before = self._size(values.pop(key)) if key in values else 0
        values[key] = value
        self._grow(key.namespace, self._size(value) - before)
        while self._total > self._most:
            self._drop_from(max(self._sizes, key=self._sizes.__getitem__))

    def _drop_from(self, namespace: str) -> None:
        values = self._values[namespace]
        _, value = values.popitem(last=False)
        self._grow(namespace, -self._size(value))
        if not values:
            del self._values[namespace], self._sizes[namespace]

    def _grow(self, namespace: str, by: int) -> None:
        self._sizes[namespace] = self._sizes.get(namespace, 0) + by
        self._total += by
