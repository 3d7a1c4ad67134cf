"""A connection that can be cut, can refuse some kinds, and can delay watches."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping

from kube_in_process.seams import HttpResponse, Query, Response, Transport

_Said = tuple[float, bytes | ConnectionError | None]


class UnreliableTransport:
    """A transport. ``refused`` and ``late`` (seconds) are by plural and may change at any time."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self._streams: list[asyncio.Queue[_Said]] = []
        self.cut = False
        self.refused: frozenset[str] = frozenset()
        self.late: dict[str, float] = {}
        self._forgotten: set[str] = set()
        self.asked: list[tuple[float, str]] = []
        """The time of each list and watch, with a text such as ``list pods``."""

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        plural = path.rpartition("/")[2]
        if self.cut or (plural in self.refused and method == "GET"):
            raise ConnectionRefusedError("cut")
        watches = ("watch", "true") in query
        if method == "GET":
            self.asked.append((_now(), f"{'watch' if watches else 'list'} {plural}"))
        if watches and plural in self._forgotten:
            self._forgotten.discard(plural)
            return HttpResponse(200, {"content-type": "application/json"}, _expired())
        response = await self._inner.send(method, path, query, headers, body)
        if watches:
            return HttpResponse.around(response, self._stream(response.body, plural))
        return response

    def cut_off(self) -> None:
        """Cut the connection, also for open streams."""
        self.cut = True
        for stream in self._streams:
            stream.put_nowait((_now(), ConnectionResetError("cut")))

    def forget(self, kinds: Iterable[str] = ()) -> None:
        """Refuse the next watch of these kinds, or of every watched kind: its version is too old.

        A server does that after its history was compacted, or after a restart.
        """
        watched = (what for _, what in self.asked if what.startswith("watch "))
        self._forgotten = set(kinds) or {each.removeprefix("watch ") for each in watched}

    async def _stream(self, body: AsyncIterator[bytes], plural: str) -> AsyncIterator[bytes]:
        said: asyncio.Queue[_Said] = asyncio.Queue()
        self._streams.append(said)
        pump = asyncio.create_task(_pump(body, said))
        try:
            while True:
                at, what = await said.get()
                await asyncio.sleep(max(at + self.late.get(plural, 0.0) - _now(), 0.0))
                if isinstance(what, ConnectionError):
                    raise what
                if what is None:
                    return
                if self.cut:
                    raise ConnectionResetError("cut")
                yield what
        finally:
            self._streams.remove(said)
            pump.cancel()


async def _expired() -> AsyncIterator[bytes]:
    status = {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410}
    status["message"] = "too old resource version: 1 (2)"
    yield json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"


async def _pump(body: AsyncIterator[bytes], said: asyncio.Queue[_Said]) -> None:
    try:
        async for part in body:
            said.put_nowait((_now(), part))
        said.put_nowait((_now(), None))
    except ConnectionError as error:
        said.put_nowait((_now(), error))


def _now() -> float:
    return asyncio.get_running_loop().time()
