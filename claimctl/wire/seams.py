"""The two interfaces that are passed in everywhere: transport and clock.

In production the transport is an aiohttp session and the clock is the event loop's. In simulation
the transport calls a server in this process directly and the loop's clock is virtual.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol


class Response(Protocol):
    """An HTTP answer whose body has not been read yet.

    Ask ``headers`` for lower-case names. A reader that stops before the end of ``body`` must await
    ``close``. A second ``close``, or one after the end, does nothing.
    """

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def body(self) -> AsyncIterator[bytes]: ...

    @property
    def close(self) -> Callable[[], Awaitable[None]]: ...


Query = Sequence[tuple[str, str]]


class Transport(Protocol):
    """Sends HTTP requests to one API server. ``path`` begins with '/'; the query is not encoded."""

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response: ...


class Clock(Protocol):
    """The source of time. Durations are in seconds."""

    def now(self) -> datetime:
        """The wall clock in UTC; it may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back. Only differences are meaningful."""
        ...

    async def sleep(self, seconds: float) -> None: ...
