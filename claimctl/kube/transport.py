"""Send HTTP requests to an API server through one aiohttp session."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

from multidict import CIMultiDict
from yarl import URL

from claimctl.kube.aiohttp_alone import HttpProcessingError, aiohttp
from claimctl.kube.connection import Connection, Credentials
from claimctl.kube.errors import (
    BadAnswer,
    ConfigError,
    KubeError,
    RequestTimeout,
    Unauthorized,
    Unreachable,
)
from claimctl.wire.seams import Query, Response

TRANSPORT_ERRORS = (aiohttp.ClientError, HttpProcessingError, OSError, EOFError)
"""All exceptions of sending a request or reading an answer. SSL errors are OSErrors."""

_CONNECT_SECONDS = 10.0
_NEVER_SENT = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientHttpProxyError,
    aiohttp.InvalidURL,
    ssl.SSLCertVerificationError,
)


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An answer of an API server, see ``seams.Response``."""

    status: int
    headers: Mapping[str, str]
    body: AsyncIterator[bytes]
    close: Callable[[], Awaitable[None]]


class HttpTransport:
    """The transport to a real API server: ``async with HttpTransport(connection) as transport``.

    After a 401, fresh credentials are fetched and the request is sent once more. This is safe also
    for a write, because the server has not applied it.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._proxy = connection.proxy or _environment_proxy(connection.server)
        self._session: aiohttp.ClientSession | None = None
        self._tls: tuple[Credentials, ssl.SSLContext] | None = None

    async def __aenter__(self) -> HttpTransport:
        """Open the session, and run the credential plugin if there is one.

        Raises:
            ConfigError: there are no credentials.
        """
        await self._connection.auth.credentials()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
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
        """Send one request; raises ``Unreachable`` or ``RequestTimeout`` if there is no answer."""
        encoded = f"?{urlencode(query)}" if query else ""
        url = URL(f"{self._connection.server}{path}{encoded}", encoded=True)
        credentials = await self._credentials(method, path, None)
        answer = await self._request(method, path, url, self._options(headers, body, credentials))
        if answer.status == 401:
            fresh = await self._credentials(method, path, credentials)
            if fresh != credentials:
                answer.close()
                options = self._options(headers, body, fresh)
                answer = await self._request(method, path, url, options)
        return self._response(method, path, answer)

    async def _credentials(
        self, method: str, path: str, rejected: Credentials | None
    ) -> Credentials:
        try:
            return await self._connection.auth.credentials(rejected)
        except ConfigError as error:
            raise Unauthorized(method, path, message=str(error)) from error

    async def _request(
        self, method: str, path: str, url: URL, options: Mapping[str, Any]
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("the transport is not open")
        try:
            return await self._session.request(method, url, allow_redirects=False, **options)
        except TRANSPORT_ERRORS as error:
            raise map_error(method, path, self._connection.server, error) from error

    def _options(
        self, headers: Mapping[str, str], body: bytes | None, credentials: Credentials
    ) -> dict[str, Any]:
        merged = CIMultiDict(headers)
        for name, value in self._connection.headers:
            merged.add(name, value)
        if credentials.authorization:
            merged["authorization"] = credentials.authorization
        options: dict[str, Any] = {"headers": merged, "data": body}
        if "https" in (urlsplit(url).scheme for url in (self._connection.server, self._proxy)):
            options["ssl"] = self._context(credentials)
            options["server_hostname"] = self._connection.server_name or None
        if self._proxy:
            options["proxy"] = self._proxy
        return options

    def _context(self, credentials: Credentials) -> ssl.SSLContext:
        """The TLS context. It changes only with the credentials, as the pool's key includes it."""
        if self._tls is None or self._tls[0] != credentials:
            tls = self._connection.tls
            if credentials.certificate is not None:
                tls = replace(tls, certificate=credentials.certificate, key=credentials.key)
            self._tls = credentials, tls.context()
        return self._tls[1]

    def _response(self, method: str, path: str, answer: aiohttp.ClientResponse) -> HttpResponse:
        async def close() -> None:
            # no effect on a connection that is back in the pool after the end of the body
            answer.close()

        return HttpResponse(answer.status, answer.headers, self._body(method, path, answer), close)

    async def _body(
        self, method: str, path: str, answer: aiohttp.ClientResponse
    ) -> AsyncIterator[bytes]:
        try:
            async for chunk in answer.content.iter_any():
                yield chunk
        except TRANSPORT_ERRORS as error:
            answer.close()
            raise map_error(method, path, self._connection.server, error) from error


def map_error(method: str, path: str, server: str, error: BaseException) -> KubeError:
    """The KubeError for one of ``TRANSPORT_ERRORS``."""
    reason = _reason(error)
    if isinstance(error, _NEVER_SENT):
        return Unreachable(method, path, f"cannot reach {server}: {reason}", delivered=False)
    if isinstance(error, TimeoutError):
        return RequestTimeout(method, path, message=f"no answer from {server} in time")
    if isinstance(error, (aiohttp.ClientResponseError, HttpProcessingError)):
        return BadAnswer(method, path, message=f"{server} does not speak HTTP: {reason}")
    return Unreachable(method, path, f"connection to {server} lost: {reason}")


def _reason(error: BaseException) -> str:
    """The cause of an error as text, without addresses of objects and error numbers."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        inner = error.certificate_error
        return f"its certificate is not trusted: {getattr(inner, 'verify_message', '') or inner}"
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, OSError) and not isinstance(cause, (ssl.SSLError, socket.gaierror)):
        # asyncio puts the address into strerror; name lookup and TLS have their own error numbers
        return os.strerror(cause.errno) if cause.errno else str(cause) or type(cause).__name__
    return getattr(cause, "strerror", "") or str(cause) or type(cause).__name__


def _environment_proxy(server: str) -> str:
    """The proxy by HTTPS_PROXY, HTTP_PROXY and NO_PROXY, as kubectl does."""
    parts = urlsplit(server)
    if proxy_bypass(parts.netloc):
        return ""
    return getproxies().get(parts.scheme, "")
