"""Strangers hold connections to the health server, and it answers."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Gauge, Metric
from prometheus_client.registry import Collector
from trustme import CA

from claimctl.telemetry import connections, health
from claimctl.telemetry.connections import MOST_CONNECTIONS, Connections
from claimctl.telemetry.health import Certificate, HealthServer, Probes

LOCAL = "127.0.0.1:0"
MANY = 1_100


@pytest.fixture
def files() -> Iterator[None]:
    """As many files as the strangers need: they are in this process, too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = 4 * MANY if hard == resource.RLIM_INFINITY else min(hard, 4 * MANY)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, enough), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


async def ask(url: str, trusted: ssl.SSLContext | bool = True) -> int:
    async with aiohttp.ClientSession() as session, session.get(url, ssl=trusted) as answer:
        return answer.status


def address_of(server: HealthServer) -> tuple[str, int]:
    host, _, port = server.url.rpartition("//")[2].partition(":")
    return host, int(port)


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def connecting(
    probes: Probes,
) -> AsyncIterator[tuple[HealthServer, Callable[[], Awaitable[Streams]]]]:
    """A server, and a function that connects to it until the end."""
    writers: list[asyncio.StreamWriter] = []

    async def connect() -> Streams:
        reader, writer = await asyncio.open_connection(*address_of(server))
        writers.append(writer)
        return reader, writer

    async with HealthServer(probes, LOCAL) as server:
        try:
            yield server, connect
        finally:
            for writer in writers:
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()


async def occupy(server: HealthServer, count: int, stack: ExitStack) -> None:
    """Open connections that say nothing."""
    for number in range(count):
        idle = stack.enter_context(socket.socket())
        idle.setblocking(False)
        idle.connect_ex(address_of(server))
        if number % 25 == 0:
            # the server accepts them, before the kernel refuses more
            await asyncio.sleep(0)
            await asyncio.sleep(0)


@pytest.mark.real_time(30)
@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("secure", [False, True])
async def test_probes_are_answered_beside_any_number_of_idle_connections(
    secure: bool, tmp_path: Path
) -> None:
    authority, certificate = CA(), None
    if secure:
        issued = authority.issue_cert("127.0.0.1")
        issued.cert_chain_pems[0].write_to_path(tmp_path / "crt")
        issued.private_key_pem.write_to_path(tmp_path / "key")
        certificate = Certificate(tmp_path / "crt", tmp_path / "key")
    trust = ssl.create_default_context(cadata=authority.cert_pem.bytes().decode())
    trusted = trust if secure else True
    async with HealthServer(Probes(), LOCAL, certificate) as server:
        before = open_files()
        with ExitStack() as stack:
            await occupy(server, MANY, stack)
            assert await ask(f"{server.url}/healthz", trusted) == 200
            assert open_files() - before <= MANY + 64 + 5


@pytest.mark.real_time(30)
async def test_a_connection_without_a_request_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.05)
    async with connecting(Probes()) as (_, connect):
        silent, _ = await connect()
        begun, writer = await connect()
        writer.write(b"GET /healthz HTTP/1.1\r\nhost: x\r\n")
        assert await silent.read() == await begun.read() == b""


@pytest.mark.real_time(30)
async def test_the_connection_that_was_silent_for_longest_makes_way() -> None:
    async with connecting(Probes()) as (_, connect):
        opened = [await connect() for _ in range(MOST_CONNECTIONS)]
        first, second = opened[:2]
        await request(first)
        await connect()
        assert await second[0].read() == b""
        await request(first)


async def request(connection: Streams) -> None:
    reader, writer = connection
    writer.write(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
    assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
    await reader.readuntil(b"ok\n")


@pytest.mark.real_time(30)
async def test_who_does_not_read_the_metrics_does_not_delay_a_probe() -> None:
    registry = CollectorRegistry()
    Gauge("long", "x" * 10_000_000, registry=registry)
    async with connecting(Probes(metrics=registry)) as (server, connect):
        for _ in range(MOST_CONNECTIONS):
            _, writer = await connect()
            writer.write(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
        assert await ask(f"{server.url}/healthz") == 200


class Answering(asyncio.Protocol):
    """Answers the first bytes with more than the kernel takes."""

    def __init__(self, server: list[Connections]) -> None:
        self._server = server
        self.lost = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._server[0].asked(self)
        self._transport.write(b"x" * 50_000_000)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()


@pytest.mark.real_time(30)
async def test_who_does_not_read_an_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "ANSWER_SECONDS", 0.05)
    servers: list[Connections] = []
    inner = Answering(servers)
    servers.append(Connections(lambda: inner))
    server = await asyncio.get_running_loop().create_server(servers[0], "127.0.0.1", 0)
    async with server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"ask")
        await inner.lost.wait()
        assert len(servers[0]) == 0
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


@pytest.mark.real_time(30)
async def test_metrics_that_are_asked_for_without_end_are_made_once_in_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(health, "_FRESH_SECONDS", 1e9)
    pages: list[str] = []

    class CountingCollector(Collector):
        def collect(self) -> Iterator[Metric]:
            pages.append("page")
            return iter(())

    async with HealthServer(Probes(metrics=CountingCollector()), LOCAL) as server:
        assert [await ask(f"{server.url}/metrics") for _ in range(3)] == [200] * 3
    assert pages == ["page"]
