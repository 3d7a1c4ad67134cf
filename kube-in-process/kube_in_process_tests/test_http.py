"""The HTTP adapter and the kubeconfig that leads to it, over real sockets."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import yaml
from kube_in_process.http.listener import ServerHandle, serve
from kube_in_process.seams import HttpResponse, Query, Response
from kube_in_process.serving.kubeconfig import Access, write_kubeconfig


class Echo:
    """Answers /echo with what it was sent, and /watch with a stream that never ends."""

    def __init__(self) -> None:
        self.closed = 0

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if path == "/watch":
            return HttpResponse(200, {"content-type": "application/json"}, _endless(), self._close)
        text = f"{method} {path} {list(query)} {headers.get('x-name')} {body!r}".encode()
        return HttpResponse(
            201,
            {"content-type": "text/plain; charset=utf-8", "content-length": str(len(text))},
            _once(text),
            self._close,
        )

    async def _close(self) -> None:
        self.closed += 1


async def _once(text: bytes) -> AsyncIterator[bytes]:
    yield text


async def _endless() -> AsyncIterator[bytes]:
    yield b'{"type":"ADDED"}\n'
    await asyncio.Event().wait()


pytestmark = pytest.mark.real_time(20)
Serving = tuple[Echo, ServerHandle, aiohttp.ClientSession]


@pytest.fixture
@asynccontextmanager
async def served() -> AsyncIterator[Serving]:
    """An echo, its server, and somebody who talks to it."""
    echo = Echo()
    server = await serve(echo)
    try:
        async with aiohttp.ClientSession() as session:
            yield echo, server, session
    finally:
        await server.close()


async def test_method_path_query_headers_and_body_arrive_decoded(served: Serving) -> None:
    echo, server, session = served
    url = f"{server.url}/echo/a%3Ab?labelSelector=a%3Db&x=1"
    async with session.put(url, data=b"{}", headers={"X-Name": "n"}) as answer:
        assert answer.status == 201
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert await answer.text() == (
            "PUT /echo/a:b [('labelSelector', 'a=b'), ('x', '1')] n b'{}'"
        )
    await server.close()
    assert echo.closed == 1


async def test_the_first_part_of_a_stream_arrives_while_it_is_open(served: Serving) -> None:
    _, server, session = served
    async with session.get(f"{server.url}/watch") as answer:
        assert answer.headers["transfer-encoding"] == "chunked"
        assert await answer.content.readline() == b'{"type":"ADDED"}\n'


async def test_closing_the_server_ends_open_streams_properly(served: Serving) -> None:
    echo, server, session = served
    async with session.get(f"{server.url}/watch") as answer:
        await answer.content.readline()
        await server.close()
        assert await answer.content.read() == b""
    assert echo.closed == 1


async def test_a_client_that_leaves_an_idle_stream_is_noticed() -> None:
    left = asyncio.Event()

    class Noticing(Echo):
        async def _close(self) -> None:
            left.set()

    server = await serve(Noticing())
    async with asyncio.timeout(20):
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{server.url}/watch") as answer:
                await answer.content.readline()
                answer.close()
            await left.wait()
        await server.close()


class Breaking(Echo):
    """Breaks the connection: at once under /drop, in the middle of a stream elsewhere."""

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if path == "/drop":
            raise ConnectionResetError("injected fault")
        return HttpResponse(200, {}, _broken(), self._close)


async def _broken() -> AsyncIterator[bytes]:
    yield b"one\n"
    raise ConnectionResetError("injected fault")


@pytest.mark.parametrize("path", ["/drop", "/stream"])
async def test_a_connection_that_the_transport_breaks_is_broken_for_the_client(path: str) -> None:
    server = await serve(Breaking())
    async with asyncio.timeout(20), aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError):
            async with session.get(f"{server.url}{path}") as answer:
                await answer.read()
    await server.close()


def test_a_kubeconfig_is_written_whole_and_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("old")
    write_kubeconfig(path, Access("http://127.0.0.1:1", token="t", certificate="PEM"))
    document = yaml.safe_load(path.read_text())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert document["clusters"][0]["cluster"] == {
        "server": "http://127.0.0.1:1",
        "certificate-authority-data": "UEVN",
    }
    assert document["users"][0]["user"] == {"token": "t"}
    assert document["current-context"] == "embedded"
    assert [entry.name for entry in tmp_path.iterdir()] == ["config"]


def test_a_directory_that_does_not_exist_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nosuch"):
        write_kubeconfig(tmp_path / "nosuch" / "config", Access("http://127.0.0.1:1"))
