"""HTTP on a loopback port in front of a transport: a thin adapter over aiohttp's server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any

from aiohttp import web
from multidict import CIMultiDict

from kube_in_process.seams import Response, Transport

log = logging.getLogger(__name__)

BODY_LIMIT_BYTES = 3 * 1024 * 1024
"""The largest request body that a real API server accepts."""
_ENDING_SECONDS = 1.0


@dataclass
class ServerHandle:
    """A listening server; ``url`` has no slash at its end."""

    url: str
    _runner: web.AppRunner
    _adapter: _Adapter

    async def close(self) -> None:
        """Stop listening, and end all answers, also open watches."""
        self._adapter.end_streams()
        await self._runner.cleanup()


@dataclass(frozen=True, slots=True)
class Users:
    """TLS, and the transport for the user of a client's certificate.

    ``transport`` gets the certificate as ``ssl.SSLSocket.getpeercert`` returns it, and in DER.
    """

    context: SSLContext
    transport: Callable[[Mapping[str, Any], bytes], Transport]


@dataclass
class _Adapter:
    transport: Transport
    users: Users | None = None
    known: dict[str, Transport] = field(default_factory=dict)
    """The transports of users by the serial numbers of their certificates."""
    streams: set[asyncio.Task[Any]] = field(default_factory=set)
    closing: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request. If the transport breaks the connection, break the client's, too."""
        try:
            return await self._answer(request)
        except ConnectionResetError:
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=500)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read() if request.can_read_body else None
        headers = _lower(request.headers)
        transport = self._transport_of(request)
        if transport is not self.transport:
            # a server looks at the certificate first, and then at nothing else
            headers.pop("authorization", None)
        answer = await transport.send(
            request.method, request.path, list(request.query.items()), headers, body
        )
        try:
            if "content-length" in answer.headers:
                return await _whole(answer)
            return await self._stream(request, answer)
        finally:
            await answer.close()

    def _transport_of(self, request: web.Request) -> Transport:
        """The transport for the user of the connection's certificate, if it has one."""
        if self.users is None or request.transport is None:
            return self.transport
        certificate = request.transport.get_extra_info("peercert")
        if not certificate:
            return self.transport
        number = certificate["serialNumber"]
        if number not in self.known:
            encoded = request.transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
            self.known[number] = self.users.transport(certificate, encoded)
        return self.known[number]

    async def _stream(self, request: web.Request, answer: Response) -> web.StreamResponse:
        """Send parts as they come. A watch goes on until one side ends it."""
        response = web.StreamResponse(status=answer.status, headers=CIMultiDict(answer.headers))
        await response.prepare(request)
        task = asyncio.current_task()
        if self.closing.is_set() or task is None:
            return response
        self.streams.add(task)
        try:
            await _copy(answer, response)
        except asyncio.CancelledError:
            # cancelled by a client that left, or by end_streams: only the latter is an orderly end
            if not self.closing.is_set():
                raise
            task.uncancel()
        finally:
            self.streams.discard(task)
        return response

    def end_streams(self) -> None:
        self.closing.set()
        for stream in self.streams:
            stream.cancel()


async def _copy(answer: Response, response: web.StreamResponse) -> None:
    async for part in answer.body:
        try:
            await response.write(part)
        except (ConnectionError, TimeoutError):
            log.debug("client went away during a stream")
            return


async def _whole(answer: Response) -> web.Response:
    body = b"".join([part async for part in answer.body])
    return web.Response(status=answer.status, headers=CIMultiDict(answer.headers), body=body)


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    """Names in lower case. Repeated headers are joined by a comma."""
    lower: dict[str, str] = {}
    for name, value in headers.items():
        key = name.lower()
        lower[key] = f"{lower[key]}, {value}" if key in lower else value
    return lower


async def serve(
    transport: Transport,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    users: Users | None = None,
) -> ServerHandle:
    """Listen on ``host``; port 0 means any free port. Raises OSError if that fails.

    With ``users``, ``transport`` is for clients without a certificate.
    """
    adapter = _Adapter(transport, users)
    app = web.Application(client_max_size=BODY_LIMIT_BYTES)
    app.router.add_route("*", "/{path:.*}", adapter.handle)
    runner = web.AppRunner(
        app,
        access_log=None,
        handle_signals=False,
        handler_cancellation=True,
        shutdown_timeout=_ENDING_SECONDS,
    )
    await runner.setup()
    tls = None if users is None else users.context
    site = web.TCPSite(runner, host, port, ssl_context=tls)
    try:
        await site.start()
    except BaseException:
        await runner.cleanup()
        raise
    scheme = "https" if tls is not None else "http"
    _, port = runner.addresses[0][:2]
    return ServerHandle(f"{scheme}://{host}:{port}", runner, adapter)
