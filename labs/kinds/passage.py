"""The way of claimctl to the API server, on which a kind or a right may vanish."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping

from kube_in_process.seams import HttpResponse, Query, Response, Transport


class Passage:
    """Answers for an API group as if it were not served, and for resources as if they were
    forbidden. A change breaks the streams that it concerns."""

    def __init__(self, inner: Transport, group: str) -> None:
        self._inner, self._group = inner, group
        self._unserved, self._forbidden = False, frozenset[str]()
        self._changed = asyncio.Event()

    def set(self, *, unserved: bool, forbidden: frozenset[str]) -> None:
        """From now on the group is served or not, and these resources may not be read."""
        if (unserved, forbidden) == (self._unserved, self._forbidden):
            return
        self._unserved, self._forbidden = unserved, forbidden
        self._changed.set()
        self._changed = asyncio.Event()

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        """Serve one request (the protocol ``Transport``)."""
        parts = path.split("/")
        mine = path.startswith(f"/apis/{self._group}/")
        if mine and self._unserved:
            return _answer(404, "NotFound")
        if method == "GET" and self._forbidden.intersection(parts):
            return _answer(403, "Forbidden")
        if body is not None and path.endswith("/selfsubjectaccessreviews"):
            asked = json.loads(body)["spec"].get("resourceAttributes", {}).get("resource")
            if asked in self._forbidden:
                return _document(201, json.loads(body) | {"status": {"allowed": False}})
        response = await self._inner.send(method, path, query, headers, body)
        if path == "/apis" and self._unserved and method == "GET":
            listed = json.loads(b"".join([part async for part in response.body]))
            left = [each for each in listed["groups"] if each["name"] != self._group]
            return _document(200, listed | {"groups": left})
        if ("watch", "true") in query and (mine or path.endswith("/jobs")):
            return HttpResponse.around(response, self._stream(response.body))
        return response

    async def _stream(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        changed = asyncio.ensure_future(self._changed.wait())
        try:
            while True:
                part = asyncio.ensure_future(anext(body, None))
                await asyncio.wait((part, changed), return_when=asyncio.FIRST_COMPLETED)
                if not part.done():
                    part.cancel()
                    await asyncio.wait((part,))
                    raise ConnectionResetError("the stream is broken")
                line = part.result()
                if line is None:
                    return
                yield line
        finally:
            changed.cancel()


def _answer(code: int, reason: str) -> Response:
    return _document(code, {"kind": "Status", "status": "Failure", "code": code, "reason": reason})


def _document(code: int, body: object) -> Response:
    async def parts() -> AsyncIterator[bytes]:
        yield json.dumps(body).encode()

    return HttpResponse(code, {"content-type": "application/json"}, parts())
