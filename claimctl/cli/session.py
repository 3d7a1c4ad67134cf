"""Builds the client of a command from its flags."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from claimctl.kube.client import Client
    from claimctl.wire.seams import Clock, Transport

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Access:
    """The flags that select the cluster and the user."""

    kubeconfig: str | None = None
    context: str | None = None
    as_user: str | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """A client for one cluster, on ``transport``. ``namespace`` is that of the kubeconfig's
    context."""

    client: Client
    clock: Clock
    namespace: str
    transport: Transport


@asynccontextmanager
async def connected(access: Access) -> AsyncIterator[Session]:
    """A client for the cluster that the flags and the environment name.

    Raises:
        ConfigError: there is no usable connection.
    """
    from claimctl.controller.dialect.api_versions import look
    from claimctl.kube.client import Client
    from claimctl.kube.clock import LoopClock
    from claimctl.kube.connection import load_connection
    from claimctl.kube.transport import HttpTransport
    from claimctl.telemetry.logs import Level, configure

    configure(level=Level.WARNING)
    connection = load_connection(access.kubeconfig, access.context, access.as_user)
    clock = LoopClock()
    async with HttpTransport(connection) as transport:
        client = Client(transport, clock)
        await look(client)
        yield Session(client, clock, connection.namespace, transport)


def in_session(access: Access, work: Callable[[Session], Awaitable[T]]) -> T:
    """Run ``work`` with a session, on a new event loop."""

    async def run() -> T:
        async with connected(access) as session:
            return await work(session)

    return asyncio.run(run())
