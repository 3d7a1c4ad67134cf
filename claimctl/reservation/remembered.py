"""Results that are remembered within a number of bytes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from claimctl.wire.base import encode

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_OBJECTS_PER_JSON = 4
"""Structs and strings take about so many times the bytes of their JSON."""
_ENTRY_BYTES = 400
"""What an entry takes beside its key."""
_MOST_OF_ALL = 1 / 32
"""The part of the bytes that one entry may take. Users choose how long a key is."""


class Remembered(Generic[K, V]):
    """Calls a pure function once for equal arguments, as far as the results fit into memory.

    Whatever was not asked for lately is forgotten: when half of the bytes are used, everything that
    was not asked for since half of them were used the last time. A known result costs one look into
    a dict, unlike that of an LRU cache that counts bytes.

    Args:
        function: its results must not be None, and not be much larger than its argument.
        most_bytes: the memory of all entries, estimated by the length of their keys as JSON.
    """

    def __init__(self, function: Callable[[K], V], most_bytes: int) -> None:
        self._function = function
        self._most = most_bytes
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}
        self._young_bytes = 0

    def __call__(self, key: K) -> V:
        known = self._young.get(key)
        return self._older(key) if known is None else known

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def _older(self, key: K) -> V:
        known = self._old.pop(key, None)
        value = self._function(key) if known is None else known
        size = _ENTRY_BYTES + _OBJECTS_PER_JSON * len(encode(key))
        if size > self._most * _MOST_OF_ALL:
            return value
        if self._young_bytes + size > self._most / 2:
            self._old, self._young, self._young_bytes = self._young, {}, 0
        self._young[key] = value
        self._young_bytes += size
        return value
