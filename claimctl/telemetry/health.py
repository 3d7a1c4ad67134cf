"""The HTTP server for kubelets and Prometheus, /healthz, /readyz, /metrics, and its certificate."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from aiohttp import web
from aiohttp.typedefs import Handler
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from claimctl.telemetry.connections import Connections
from claimctl.telemetry.face import LateLogger
from claimctl.telemetry.settings import TelemetrySettingError

log = LateLogger(__name__)

Check = Callable[[], bool]

_FORMATS = ("text/plain;version=0.0.4", "application/openmetrics-text;version=1.0.0")
_FRESH_SECONDS = 1.0
"""For so long, the same page of metrics is served again: to make one takes time from the loop."""
_WAITING = 32
"""The connections that the kernel keeps before they are accepted."""


class HealthServerError(TelemetrySettingError):
    """The health server cannot listen on its address, or cannot use its certificate."""


@dataclass(frozen=True, slots=True)
class Probes:
    """The named checks, all of which must hold, and the metrics.

    A scraper chooses between the text format and OpenMetrics, which has exemplars.
    """

    live: Mapping[str, Check] = field(default_factory=dict)
    ready: Mapping[str, Check] = field(default_factory=dict)
    metrics: Collector | None = None


class Certificate:
    """A certificate with its key, in two PEM files.

    cert-manager and the kubelet replace such files. ``refresh`` takes the new ones for the
    connections that come then.

    Raises:
        HealthServerError: the files cannot be read, or do not belong together.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = (certificate, key)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._seen = self._versions()
        self._load()

    def refresh(self) -> None:
        """Load the files again if they have changed. Files that cannot be used change nothing."""
        try:
            versions = self._versions()
            if versions == self._seen:
                return
            self._seen = versions
            self._load()
        except HealthServerError as error:
            log.warning("the new certificate cannot be used", error=str(error))

    def _versions(self) -> list[tuple[int, int]]:
        try:
            stats = [file.stat() for file in self._files]
        except OSError as error:
            raise HealthServerError(f"cannot read {error.filename}: {error.strerror}") from None
        return [(stat.st_ino, stat.st_mtime_ns) for stat in stats]

    def _load(self) -> None:
        certificate, key = self._files
        try:
            # a new context first: a pair that does not fit must not replace one that does
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
            self.context.load_cert_chain(certificate, key)
        except (OSError, ssl.SSLError) as error:
            why = getattr(error, "reason", None) or error.strerror or error
            raise HealthServerError(f"cannot use {certificate} with {key}: {why}") from None


class HealthServer:
    """``async with HealthServer(probes, "0.0.0.0:8080")`` serves from entry to exit.

    Each request calls the checks in the event loop, so they must be quick. Port 0 means any free
    port; ``url`` has the actual one. With a certificate it speaks TLS. Connections are few and end
    soon, see ``Connections``.

    Raises:
        HealthServerError: on entry, if the address is in use, not local, or not an address.
    """

    def __init__(
        self, probes: Probes, bind_address: str, certificate: Certificate | None = None
    ) -> None:
        self._probes = probes
        self._bind = bind_address
        self._certificate = certificate
        self._runner: web.AppRunner | None = None
        self._connections: Connections | None = None
        self._listening: asyncio.Server | None = None
        self._pages: dict[str, tuple[float, bytes, str]] = {}
        self.url = ""

    async def __aenter__(self) -> Self:
        host, port = split_address(self._bind)
        self._runner = web.AppRunner(self._application(), access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        server = self._runner.server
        assert server is not None
        tls = self._certificate.context if self._certificate else None
        self._connections = Connections(server, tls)
        loop = asyncio.get_running_loop()
        try:
            self._listening = await loop.create_server(
                self._connections, host or None, port, backlog=_WAITING
            )
        except OSError as error:
            await self._runner.cleanup()
            raise HealthServerError(
                f"--bind-address: cannot listen on {self._bind}: {error.strerror}"
            ) from None
        bound = self._listening.sockets[0].getsockname()
        self.url = f"http{'s' if tls else ''}://{host or '127.0.0.1'}:{bound[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._listening is not None:
            self._listening.close()
        if self._runner is not None:
            await asyncio.shield(self._runner.cleanup())
        if self._connections is not None:
            self._connections.close()

    def _application(self) -> web.Application:
        application = web.Application(middlewares=[self._note])
        application.router.add_get("/healthz", self._healthz)
        application.router.add_get("/readyz", self._readyz)
        if self._probes.metrics is not None:
            application.router.add_get("/metrics", self._metrics)
        return application

    @web.middleware
    async def _note(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Look for a new certificate, too: the kubelet asks every few seconds."""
        if self._connections is not None:
            self._connections.asked(request.protocol)
        if self._certificate is not None:
            self._certificate.refresh()
        return await handler(request)

    async def _healthz(self, _request: web.Request) -> web.Response:
        return _verdict(self._probes.live)

    async def _readyz(self, _request: web.Request) -> web.Response:
        return _verdict(self._probes.ready)

    async def _metrics(self, request: web.Request) -> web.Response:
        """The metrics in the format that the scraper prefers."""
        assert self._probes.metrics is not None
        _, wanted = choose_encoder(",".join(request.headers.getall("Accept", ())))
        given = _FORMATS["openmetrics" in wanted]
        now = asyncio.get_running_loop().time()
        made, page, kind = self._pages.get(given, (-_FRESH_SECONDS, b"", ""))
        if now - made >= _FRESH_SECONDS:
            encode, kind = choose_encoder(given)
            page = encode(self._probes.metrics)
            self._pages[given] = now, page, kind
        response = web.Response(body=page, headers={"Content-Type": kind})
        response.enable_compression()
        return response


def _verdict(checks: Mapping[str, Check]) -> web.Response:
    """200 if all checks hold, else 503. The body has a line per check, as kube-apiserver's."""
    results = {name: check() for name, check in checks.items()}
    lines = [
        f"[{'+' if good else '-'}]{name} {'ok' if good else 'failed'}"
        for name, good in results.items()
    ]
    fine = all(results.values())
    lines.append("ok" if fine else "failed")
    return web.Response(text="\n".join(lines) + "\n", status=200 if fine else 503)


def split_address(address: str) -> tuple[str, int]:
    """Parse ``host:port``, ``:port`` or ``[v6]:port``.

    Raises:
        HealthServerError: it is anything else.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise HealthServerError(
            f"--bind-address: {address!r} is no address to listen on: give HOST:PORT or :PORT"
        )
    return host.strip("[]"), int(port)
