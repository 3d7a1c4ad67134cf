"""The two shapes that are handed in everywhere: transport and time.

In life the transport is an aiohttp session and time is the running loop's; in simulation the
transport goes straight into the embedded server's core and the loop's clock is virtual.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol


async def _nothing() -> None:
    return None


@dataclass(slots=True)
class Response:
    """An HTTP answer whose body is still to be read.

    ``headers`` has lower-case names. ``close`` must be awaited by whoever stops reading before
    the end of ``body``; awaiting it twice, or after the end, does nothing.
    """

    status: int
    headers: Mapping[str, str]
    body: AsyncIterator[bytes]
    close: Callable[[], Awaitable[None]] = field(default=_nothing)


Query = Sequence[tuple[str, str]]


class Transport(Protocol):
    """One HTTP request to one API server; ``path`` begins with '/', the query is not encoded."""

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response: ...


class Clock(Protocol):
    """Where time comes from. Durations are in seconds."""

    def now(self) -> datetime:
        """Wall clock, in UTC; it may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back; only differences mean anything."""
        ...

    async def sleep(self, seconds: float) -> None: ...
