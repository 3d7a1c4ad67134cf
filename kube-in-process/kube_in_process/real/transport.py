"""HTTP requests to one real API server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from kube_in_process.seams import HttpResponse, Query, Response
from kube_in_process.serving.kubeconfig import Access
from kube_in_process.serving.tls import client_context

_CONNECT_SECONDS = 10.0


class HttpTransport:
    """A ``Transport``: ``async with HttpTransport(plane.files.access) as transport``.

    ``send`` raises aiohttp.ClientError, OSError or TimeoutError if there is no answer.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> HttpTransport:
        context = client_context(self._access)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=context),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=2**18,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if self._session is None:
            raise RuntimeError("the transport is not open")
        encoded = f"?{urlencode(query)}" if query else ""
        url = URL(f"{self._access.url}{path}{encoded}", encoded=True)
        given = dict(headers)
        if self._access.token:
            given["authorization"] = f"Bearer {self._access.token}"
        answer = await self._session.request(
            method, url, headers=given, data=body, allow_redirects=False
        )
        return HttpResponse(
            answer.status, answer.headers, answer.content.iter_any(), _closing(answer)
        )


def _closing(answer: aiohttp.ClientResponse) -> Callable[[], Awaitable[None]]:
    async def close() -> None:
        # no effect on a connection that is back in the pool after the end of the body
        answer.close()

    return close
