"""A connection that breaks for good at a chosen write, as if its process were killed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from claimctl.wire.seams import Query, Response, Transport

WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


def concerns_claims(path: str) -> bool:
    return "claim" in path and "/leases/" not in path


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
        delivered: bool,
        concerned: Callable[[str], bool] = concerns_claims,
    ) -> None:
        self._inner = inner
        self._dies_at = dies_at
        self._delivered = delivered
        self._armed = False
        self.writes = 0
        """How many were counted."""
        self._concerned = concerned
        self.dead = asyncio.Event()

    def arm(self) -> None:
        """Begin to count writes."""
        self._armed = True

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if self.dead.is_set():
            raise ConnectionResetError("the process is gone")
        if self._counts(method, path):
            self.writes += 1
        if self.writes < self._dies_at or not self._counts(method, path):
            return await self._inner.send(method, path, query, headers, body)
        self.dead.set()
        if self._delivered:
            await self._inner.send(method, path, query, headers, body)
        raise ConnectionResetError("the process is gone")

    def _counts(self, method: str, path: str) -> bool:
        return self._armed and method in WRITES and self._concerned(path)
