"""The HTTP server for kubelets and Prometheus, /healthz, /readyz, /metrics, and its certificate."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler
from prometheus_client.aiohttp import make_aiohttp_handler
from prometheus_client.registry import Collector

from claimctl.telemetry.settings import BindError

log = structlog.get_logger(__name__)

Check = Callable[[], bool]


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
        BindError: the files cannot be read, or do not belong together.
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
        except BindError as error:
            log.warning("the new certificate cannot be used", error=str(error))

    def _versions(self) -> list[tuple[int, int]]:
        try:
            stats = [file.stat() for file in self._files]
        except OSError as error:
            raise BindError(f"cannot read {error.filename}: {error.strerror}") from None
        return [(stat.st_ino, stat.st_mtime_ns) for stat in stats]

    def _load(self) -> None:
        certificate, key = self._files
        try:
            # a new context first: a pair that does not fit must not replace one that does
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
            self.context.load_cert_chain(certificate, key)
        except (OSError, ssl.SSLError) as error:
            why = getattr(error, "reason", None) or error.strerror or error
            raise BindError(f"cannot use {certificate} with {key}: {why}") from None


class HealthServer:
    """``async with HealthServer(probes, "0.0.0.0:8080")`` serves from entry to exit.

    Each request calls the checks in the event loop, so they must be quick. Port 0 means any free
    port; ``url`` has the actual one. With a certificate it speaks TLS.

    Raises:
        BindError: on entry, if the address is in use, not local, or not an address.
    """

    def __init__(
        self, probes: Probes, bind_address: str, certificate: Certificate | None = None
    ) -> None:
        self._probes = probes
        self._bind = bind_address
        self._certificate = certificate
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def __aenter__(self) -> Self:
        host, port = split_address(self._bind)
        runner = web.AppRunner(self._application(), access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            tls = self._certificate.context if self._certificate else None
            await web.TCPSite(runner, host or None, port, ssl_context=tls).start()
        except OSError as error:
            await runner.cleanup()
            raise BindError(f"cannot listen on {self._bind}: {error.strerror}") from None
        self._runner = runner
        bound = runner.addresses[0]
        self.url = f"http{'s' if tls else ''}://{host or '127.0.0.1'}:{bound[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await asyncio.shield(self._runner.cleanup())

    def _application(self) -> web.Application:
        application = web.Application(middlewares=[self._fresh])
        application.router.add_get("/healthz", self._healthz)
        application.router.add_get("/readyz", self._readyz)
        if self._probes.metrics is not None:
            application.router.add_get("/metrics", make_aiohttp_handler(self._probes.metrics))
        return application

    @web.middleware
    async def _fresh(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Look for a new certificate: the kubelet asks every few seconds."""
        if self._certificate is not None:
            self._certificate.refresh()
        return await handler(request)

    async def _healthz(self, _request: web.Request) -> web.Response:
        return _verdict(self._probes.live)

    async def _readyz(self, _request: web.Request) -> web.Response:
        return _verdict(self._probes.ready)


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
    """Parse ``host:port``, ``:port`` or ``[v6]:port``; raises BindError for anything else."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise BindError(f"{address!r} is no address to listen on: give HOST:PORT or :PORT")
    return host.strip("[]"), int(port)
