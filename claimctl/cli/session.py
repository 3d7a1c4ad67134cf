"""Builds the client of a command from its flags."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Concatenate, ParamSpec, TypeVar

from claimctl.cli.access import Access
from claimctl.cli.documents import by_names
from claimctl.cli.errors import Terminated
from claimctl.cli.printer import say
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.connection import Connection
from claimctl.kube.discovery import use_served_versions
from claimctl.kube.transport import HttpTransport
from claimctl.login.connect import load_connection
from claimctl.login.kubeconfig import Overrides
from claimctl.telemetry.face import LateLogs
from claimctl.wire.seams import Clock, Query, Response, Transport

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Session:
    """A client for one cluster, on ``transport``. ``namespace`` is the one that the command is
    about, "" for all."""

    client: Client
    clock: Clock
    namespace: str
    transport: Transport


@asynccontextmanager
async def connected(access: Access, namespace: str | None = None) -> AsyncIterator[Session]:
    """A client for the cluster that the flags and the environment name, or ConfigError. The
    namespace None means that of the kubeconfig's context."""
    LateLogs(_log_warnings).begin()
    connection = connection_of(access)
    clock = LoopClock()
    async with HttpTransport(connection) as http:
        transport = _Announcing(http, connection.server)
        client = Client(transport, clock, overall_seconds=access.request_timeout or None)
        await use_served_versions(
            client.within(access.request_timeout or access.first_timeout or None)
        )
        place = connection.namespace if namespace is None else namespace
        yield Session(client, clock, place, transport)


def _log_warnings() -> None:
    from claimctl.telemetry.logs import Level, configure

    configure(level=Level.WARNING)


def connection_of(access: Access) -> Connection:
    """How to connect, by the flags and the environment; ConfigError if that is not possible."""
    overrides = by_names(access, Overrides)
    return load_connection(access.kubeconfig, access.context, access.as_user, overrides)


@contextmanager
def if_interrupted(text: str) -> Iterator[None]:
    """Say on stderr at Ctrl-C or SIGTERM what becomes of the work within."""
    try:
        yield
    except asyncio.CancelledError:
        say(text)
        raise


PATIENCE_SECONDS = 3.0
"""After this time without an answer, a line on stderr says what the command waits for."""


class _Announcing:
    """A transport that says once, on stderr, that it waits for an answer."""

    def __init__(self, transport: Transport, server: str) -> None:
        self._transport = transport
        self._server = server
        self._told = False

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._tell)
        try:
            return await self._transport.send(method, path, query, headers, body)
        finally:
            timer.cancel()

    def _tell(self) -> None:
        if not self._told:
            self._told = True
            say(f"waiting for an answer from {self._server} ...")


def in_session(
    access: Access,
    work: Callable[Concatenate[Session, P], Awaitable[T]],
    namespace: str | None = None,
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Run ``work`` with a session (see ``connected``) and the arguments, on a new event loop.

    Ctrl-C and SIGTERM cancel the work; then KeyboardInterrupt or Terminated is raised.
    """

    async def run() -> T:
        with _cancelled_by_sigterm():
            async with connected(access, namespace) as session:
                return await work(session, *args, **kwargs)

    return asyncio.run(run())


@contextmanager
def _cancelled_by_sigterm() -> Iterator[None]:
    """Within the block, SIGTERM cancels the task, as asyncio lets SIGINT do. A second one ends the
    process at once."""
    usual = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    received = asyncio.Event()

    def receive() -> None:
        received.set()
        loop.remove_signal_handler(signal.SIGTERM)
        task.cancel()

    loop.add_signal_handler(signal.SIGTERM, receive)
    try:
        yield
    except asyncio.CancelledError:
        if received.is_set():
            raise Terminated from None
        raise
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
