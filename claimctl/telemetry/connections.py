"""The connections of a server that strangers reach: few, and none for long.

Any pod of a cluster may reach the port. Each connection takes a file of the process, and without
files the process cannot reach the API server. So a connection is closed when its time is over. If a
connection comes beyond ``MOST_CONNECTIONS``, the one that was silent for the longest time is
closed. So a client that holds connections open does not keep the kubelet out.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import cast

MOST_CONNECTIONS = 64
HEADER_SECONDS = 5.0
"""From the connection on, until a request with all its headers is there."""
ANSWER_SECONDS = 30.0
"""From a request on, until its answer is read and the next request is there."""


class Connections:
    """The open connections of a server. It is the ``protocol_factory`` of ``loop.create_server``.

    TLS begins in here, and not in the server: a connection counts also before its handshake.

    Args:
        make_protocol: makes the protocol that reads the requests of a connection and answers them.
    """

    def __init__(
        self, make_protocol: Callable[[], asyncio.Protocol], tls: ssl.SSLContext | None = None
    ) -> None:
        self._make_protocol = make_protocol
        self._tls = tls
        # in the order of the last sign of life
        self._open: dict[_Connection, None] = {}

    def __call__(self) -> asyncio.Protocol:
        return _Connection(self, self._make_protocol(), self._tls)

    def __len__(self) -> int:
        return len(self._open)

    def enter(self, connection: _Connection) -> None:
        """Count a new connection. If too many are open, close the one that was silent longest."""
        while len(self._open) >= MOST_CONNECTIONS:
            next(iter(self._open)).close()
        self._open[connection] = None

    def leave(self, connection: _Connection) -> None:
        self._open.pop(connection, None)

    def asked(self, protocol: asyncio.Protocol) -> None:
        """Note that a whole request has come to one of the made protocols."""
        for connection in self._open:
            if connection.protocol is protocol:
                del self._open[connection]
                self._open[connection] = None
                connection.wait(ANSWER_SECONDS)
                return

    def close(self) -> None:
        """Close all connections."""
        for connection in tuple(self._open):
            connection.close()


class _Connection(asyncio.Protocol):
    """One connection, which is closed when its time is over.

    Args:
        protocol: gets all that comes, without TLS.
    """

    def __init__(
        self, owner: Connections, protocol: asyncio.Protocol, tls: ssl.SSLContext | None
    ) -> None:
        self.protocol = protocol
        self._owner = owner
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._handshake: asyncio.Task[None] | None = None
        self._begun = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._owner.enter(self)
        self.wait(HEADER_SECONDS)
        if self._tls is None:
            self._begin()
        else:
            # what comes before the handshake has begun would be taken for a request
            self._transport.pause_reading()
            self._handshake = self._loop.create_task(self._shake_hands(self._tls))

    async def _shake_hands(self, tls: ssl.SSLContext) -> None:
        assert self._transport is not None
        try:
            self._transport = await self._loop.start_tls(
                self._transport,
                self,
                tls,
                server_side=True,
                ssl_handshake_timeout=HEADER_SECONDS,
            )
        except OSError:
            self.close()
        else:
            self._begin()

    def _begin(self) -> None:
        if self._transport is not None:
            self._begun = True
            self.protocol.connection_made(self._transport)

    def wait(self, seconds: float) -> None:
        """Close the connection after this time; this replaces an earlier one."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, self.close)

    def close(self) -> None:
        """Close the connection at once, whatever the other side has not read yet."""
        if self._transport is not None:
            self._transport.abort()
        self._end()

    def _end(self) -> None:
        self._owner.leave(self)
        if self._timer is not None:
            self._timer.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        if self._begun:
            self.protocol.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self.protocol.data_received(data)

    def eof_received(self) -> bool | None:
        return self.protocol.eof_received()

    def pause_writing(self) -> None:
        self.protocol.pause_writing()

    def resume_writing(self) -> None:
        self.protocol.resume_writing()
