"""Turns between tenants: the keys that are ready to be worked on, so that no tenant waits for the
many keys of another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
Tenant = Hashable
"""Whose key it is: its namespace."""


class Turns(Generic[K]):
    """The ready keys by tenant; a pure data structure.

    The tenant with the fewest keys in work has the next turn, and of several the one that has
    stood in its line for longest. So a tenant without a key in work waits for one turn of each
    other tenant at most, and slow keys of one tenant leave the others their share of the workers.
    The keys of one tenant are taken in the order in which they were added.
    """

    def __init__(self, tenant_of: Callable[[K], Tenant]) -> None:
        self._tenant_of = tenant_of
        self._keys: dict[Tenant, dict[K, float]] = {}
        self._in_work: Counter[Tenant] = Counter()
        # by the number of keys in work: the tenants with ready keys, in the order of their turns
        self._lines: dict[int, dict[Tenant, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        """The number of ready keys."""
        return self._count

    def __contains__(self, key: K) -> bool:
        return key in self._keys.get(self._tenant_of(key), ())

    def add(self, key: K, at: float) -> None:
        """Add a key that is not in here, with the time since which it is ready."""
        tenant = self._tenant_of(key)
        if tenant not in self._keys:
            self._keys[tenant] = {}
            self._join(tenant)
        self._keys[tenant][key] = at
        self._count += 1

    def take(self) -> tuple[K, float]:
        """Take the next key into work, with its time; IndexError if no key is ready."""
        if not self._count:
            raise IndexError("no key is ready")
        tenant = next(iter(self._lines[min(self._lines)]))
        keys = self._keys[tenant]
        key = next(iter(keys))
        at = keys.pop(key)
        self._count -= 1
        self._leave(tenant)
        self._in_work[tenant] += 1
        if keys:
            self._join(tenant)
        else:
            del self._keys[tenant]
        return key, at

    def end(self, key: K) -> None:
        """Note that a key that was taken is not in work any more."""
        tenant = self._tenant_of(key)
        waits = tenant in self._keys
        if waits:
            self._leave(tenant)
        self._in_work[tenant] -= 1
        if not self._in_work[tenant]:
            del self._in_work[tenant]
        if waits:
            self._join(tenant)

    def _join(self, tenant: Tenant) -> None:
        """Put a tenant at the end of its line."""
        self._lines.setdefault(self._in_work[tenant], {})[tenant] = None

    def _leave(self, tenant: Tenant) -> None:
        line = self._lines[self._in_work[tenant]]
        del line[tenant]
        if not line:
            del self._lines[self._in_work[tenant]]
