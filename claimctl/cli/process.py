"""A controller process: connection, telemetry, health server, signals."""

from __future__ import annotations

import asyncio
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from claimctl import __version__
from claimctl.cli.access import Access
from claimctl.controller.manager import Manager
from claimctl.controller.settings import Settings
from claimctl.kube.clock import LoopClock
from claimctl.kube.transport import HttpTransport
from claimctl.login.connect import load_connection
from claimctl.telemetry.face import LateLogger
from claimctl.telemetry.health import Certificate, HealthServer, Probes
from claimctl.telemetry.otel import OtelTelemetry
from claimctl.telemetry.settings import TelemetrySettings

log = LateLogger(__name__)


def who_am_i(pod_uid: str = "") -> str:
    """A unique identity: the host name (in a cluster, the pod's name) and a random part."""
    begin = container_of(pod_uid) or f"{socket.gethostname()}_"
    return f"{begin}{secrets.token_hex(4)}"


def container_of(pod_uid: str) -> str:
    """How the identities of all processes of this container begin; '' without the pod's UID."""
    return f"{socket.gethostname()}_{pod_uid}_" if pod_uid else ""


def changed(settings: Settings) -> dict[str, object]:
    """The settings that differ from the defaults, for the first line of the log."""
    values = settings.model_dump(
        mode="json", exclude_defaults=True, exclude={"identity", "container"}
    )
    return {key: values[key] for key in sorted(values)}


async def serve(
    access: Access,
    settings: Settings,
    exports: TelemetrySettings,
    bind_address: str = "",
    certificate: tuple[Path, Path] | None = None,
) -> signal.Signals | None:
    """Run a controller until a signal; returns the signal.

    Args:
        bind_address: of the health server; with "" there is none.
        certificate: the files with its certificate and key; None means plain HTTP.

    Raises:
        ConfigError, HealthServerError: bad input.
        NotReady, NotSynced, DialectUnknown, LeadershipLost, KubeError: see ``Manager.run``.
    """
    connection = load_connection(access.kubeconfig, access.context, access.as_user)
    async with AsyncExitStack() as stack:
        telemetry = stack.enter_context(exporting(exports))
        transport = await stack.enter_async_context(HttpTransport(connection))
        manager = Manager(settings, transport, LoopClock(), telemetry)
        probes = Probes(
            live={"manager": lambda: manager.healthy},
            ready={"caches": lambda: manager.ready},
            metrics=telemetry.registry,
        )
        await stack.enter_async_context(health_server(bind_address, probes, certificate))
        # bad input has ended the process by now, with one line
        known = changed(settings)
        log.info("starting", version=__version__, server=connection.server, **known)
        stop = Stop()
        stop.listen()
        try:
            await manager.run(stop.event)
        finally:
            stop.ignore()
    return stop.received


class Stop:
    """The first SIGTERM or SIGINT stops the process in order; a second one kills it at once."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.received: signal.Signals | None = None

    def listen(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._receive, number)

    def ignore(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

    def _receive(self, number: signal.Signals) -> None:
        log.info("stopping", signal=number.name)
        self.received = number
        self.event.set()
        self.ignore()


@contextmanager
def exporting(settings: TelemetrySettings) -> Iterator[OtelTelemetry]:
    """Metrics and traces, which are flushed at the end."""
    telemetry = OtelTelemetry(settings)
    try:
        yield telemetry
    finally:
        telemetry.shutdown()


@asynccontextmanager
async def health_server(
    bind_address: str, probes: Probes, files: tuple[Path, Path] | None = None
) -> AsyncIterator[None]:
    """Serve health and metrics by HTTPS, or by HTTP without the files of a certificate and its key;
    nothing with the address ''."""
    if not bind_address:
        yield
        return
    certificate = Certificate(*files) if files else None
    async with HealthServer(probes, bind_address, certificate) as server:
        log.info("serving health and metrics", url=server.url)
        yield
