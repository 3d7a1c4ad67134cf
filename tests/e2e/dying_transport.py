"""A connection that breaks for good at a chosen write, as if its process were killed.

A process that is killed before a write leaves the same as one that is killed at the write before.
So it is enough to lose the answer of each write: these are all places to be killed at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from claimctl.wire.seams import Query, Response, Transport

WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


def matters(path: str) -> bool:
    """Whether a write there changes what other processes decide by."""
    return not any(part in path for part in ("/leases", "/events", "accessreviews"))


class DyingTransport:
    """Passes requests on until it dies; from then on it sends and answers nothing.

    Args:
        dies_at: the number of the write (from 1, counted once armed) at which it dies.
        delivered: whether that write still reaches the server; its answer is lost.
        concerned: whether a write to this path is counted.
    """

    def __init__(
        self,
        inner: Transport,
        dies_at: int,
        *,
        delivered: bool = True,
        concerned: Callable[[str], bool] = matters,
    ) -> None:
        self._inner = inner
        self._dies_at = dies_at
        self._delivered = delivered
        self._concerned = concerned
        self._armed = False
        self.writes = 0
        """How many were counted."""
        self.dead = asyncio.Event()

    def arm(self) -> None:
        """Begin to count writes."""
        self._armed = True

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if self.dead.is_set():
            raise ConnectionResetError("the process is gone")
        if not self._counts(method, path):
            return await self._inner.send(method, path, query, headers, body)
        self.writes += 1
        if self.writes < self._dies_at:
            return await self._inner.send(method, path, query, headers, body)
        self.dead.set()
        if self._delivered:
            await self._inner.send(method, path, query, headers, body)
        raise ConnectionResetError("the process is gone")

    def _counts(self, method: str, path: str) -> bool:
        return self._armed and method in WRITES and self._concerned(path)
