"""The transport over real sockets on the loopback, and how its errors are told."""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import Mock

import aiohttp
import pytest
from aiohttp import client_exceptions, http_exceptions, web

from claimctl.kube.connection import Connection, Credentials, Pem, StaticAuth, Tls
from claimctl.kube.errors import (
    BadAnswer,
    ConfigError,
    KubeError,
    RequestTimeout,
    Unauthorized,
    Unreachable,
)
from claimctl.kube.transport import TRANSPORT_ERRORS, HttpTransport, map_error
from claimctl.login.plugins import FetchedAuth
from claimctl.wire.seams import Response
from tests.support import pems

T = TypeVar("T")

pytestmark = pytest.mark.real_time(20)

AUTHORITY = Pem(pems.AUTHORITY.encode(), "ca")
CERTIFICATE = Pem(pems.CLIENT_CERTIFICATE.encode(), "certificate")
KEY = Pem(pems.CLIENT_KEY.encode(), "key")


@dataclass
class Web:
    """A web server for one test; every request is remembered."""

    answer: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
    seen: list[dict[str, Any]] = field(default_factory=list)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        peer = request.transport and request.transport.get_extra_info("peercert")
        self.seen.append(
            {
                "line": f"{request.method} {request.raw_path}",
                "headers": {key.lower(): value for key, value in request.headers.items()},
                "groups": request.headers.getall("Impersonate-Group", []),
                "body": await request.read(),
                "peer": dict(item[0] for item in peer["subject"]) if peer else {},
            }
        )
        return await self.answer(request)


async def plain(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(text="hello", headers={"Retry-After": "3"})


@asynccontextmanager
async def serving(server: Web, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    runner = web.ServerRunner(web.Server(server.handle), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    address: tuple[str, int] = runner.addresses[0]
    try:
        yield f"{'https' if context else 'http'}://127.0.0.1:{address[1]}"
    finally:
        await runner.cleanup()


async def body(response: Response) -> bytes:
    return b"".join([chunk async for chunk in response.body])


async def talk(server: Web, connection: Connection, tls: ssl.SSLContext | None = None) -> Response:
    """One POST with a body; the answer's body is read."""
    query = [("a", "b c"), ("d", "=&")]
    async with (
        serving(server, tls) as url,
        HttpTransport(replace(connection, server=url)) as transport,
    ):
        response = await transport.send("POST", "/api/v1/x%2Fy", query, {"x-own": "1"}, b"{}")
        await body(response)
        await response.close()
        return response


def server_tls(tmp_path: Path, *, ask_client: bool = False) -> ssl.SSLContext:
    for name, text in (("crt", pems.SERVER_CERTIFICATE), ("key", pems.SERVER_KEY)):
        (tmp_path / name).write_text(text)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=pems.AUTHORITY)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    context.verify_mode = ssl.CERT_REQUIRED if ask_client else ssl.CERT_NONE
    return context


async def test_a_request_goes_out_as_it_was_given_with_credentials_and_impersonation() -> None:
    server = Web(plain)
    connection = Connection(
        server="",
        auth=StaticAuth(Credentials("Bearer t")),
        headers=(("Impersonate-User", "u"), ("Impersonate-Group", "g"), ("Impersonate-Group", "h")),
    )
    response = await talk(server, connection)
    assert (response.status, response.headers["retry-after"]) == (200, "3")
    seen = server.seen[0]
    assert seen["line"] == "POST /api/v1/x%2Fy?a=b+c&d=%3D%26"
    assert (seen["body"], seen["groups"]) == (b"{}", ["g", "h"])
    headers = {key: seen["headers"][key] for key in ("x-own", "authorization", "impersonate-user")}
    assert headers == {"x-own": "1", "authorization": "Bearer t", "impersonate-user": "u"}


async def test_tls_trusts_the_authority_and_the_name_of_the_kubeconfig(tmp_path: Path) -> None:
    server = Web(plain)
    tls = Tls(authority=AUTHORITY, certificate=CERTIFICATE, key=KEY)
    connection = Connection(server="", tls=tls, server_name="kube.test")
    await talk(server, connection, server_tls(tmp_path, ask_client=True))
    assert server.seen[0]["peer"] == {"commonName": "client"}


async def test_a_plugin_may_give_the_client_certificate(tmp_path: Path) -> None:
    server = Web(plain)
    connection = Connection(
        server="",
        auth=StaticAuth(Credentials("", CERTIFICATE, KEY)),
        tls=Tls(authority=AUTHORITY),
        server_name="kube.test",
    )
    await talk(server, connection, server_tls(tmp_path, ask_client=True))
    assert server.seen[0]["peer"] == {"commonName": "client"}


async def test_insecure_skip_tls_verify_takes_any_certificate(tmp_path: Path) -> None:
    response = await talk(Web(plain), Connection("", tls=Tls(verify=False)), server_tls(tmp_path))
    assert response.status == 200


@pytest.mark.parametrize(
    ("connection", "says"),
    [
        (Connection("", tls=Tls(authority=AUTHORITY)), "IP address mismatch"),
        (Connection("", server_name="kube.test"), "self-signed certificate in certificate chain"),
    ],
    ids=["another name", "another authority"],
)
async def test_a_certificate_that_is_not_trusted_is_said_so(
    tmp_path: Path, connection: Connection, says: str
) -> None:
    with pytest.raises(Unreachable, match=f"its certificate is not trusted: .*{says}") as caught:
        await talk(Web(plain), connection, server_tls(tmp_path))
    assert not caught.value.delivered


@pytest.mark.parametrize("encrypted", [False, True])
async def test_a_proxy_is_used_as_the_kubeconfig_says(encrypted: bool, tmp_path: Path) -> None:
    proxy = Web(plain)
    async with serving(proxy, server_tls(tmp_path) if encrypted else None) as url:
        connection = Connection("http://kube.test:1", proxy=url, tls=Tls(verify=False))
        async with HttpTransport(connection) as transport:
            await body(await transport.send("GET", "/api", (), {}, None))
    assert proxy.seen[0]["line"] == "GET http://kube.test:1/api"


async def test_a_stream_is_handed_on_as_it_comes() -> None:
    async def slowly(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first\n")
        await asyncio.Event().wait()
        return response

    async with serving(Web(slowly)) as url, HttpTransport(Connection(url)) as transport:
        response = await transport.send("GET", "/", (), {}, None)
        assert await anext(response.body) == b"first\n"
        await response.close()
        await response.close()


async def test_a_redirect_is_handed_on_and_takes_no_token_elsewhere() -> None:
    async def away(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": "/login"})

    server = Web(away)
    response = await talk(server, Connection("", auth=StaticAuth(Credentials("a"))))
    assert (response.status, response.headers["location"]) == (302, "/login")
    assert len(server.seen) == 1


async def test_a_401_has_the_credentials_fetched_anew_and_the_request_sent_once_more() -> None:
    tokens = iter("abc")

    async def fetch() -> tuple[Credentials, None]:
        return Credentials(next(tokens)), None

    async def only_b(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=200 if request.headers["authorization"] == "b" else 401)

    server = Web(only_b)
    assert (await talk(server, Connection("", auth=FetchedAuth(fetch)))).status == 200
    assert [seen["headers"]["authorization"] for seen in server.seen] == ["a", "b"]
    assert [seen["body"] for seen in server.seen] == [b"{}", b"{}"]


async def test_a_401_that_fresh_credentials_do_not_help_is_handed_on() -> None:
    async def never(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=401)

    server = Web(never)
    assert (await talk(server, Connection("", auth=StaticAuth(Credentials("a"))))).status == 401
    assert len(server.seen) == 1


async def test_a_plugin_that_fails_at_the_start_is_a_config_error_and_later_a_401() -> None:
    outcomes: list[Credentials | ConfigError] = [Credentials("a"), ConfigError("no plugin")]

    async def fetch() -> tuple[Credentials, None]:
        outcome = outcomes.pop(0)
        if isinstance(outcome, ConfigError):
            raise outcome
        return outcome, None

    async def never(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=401)

    with pytest.raises(Unauthorized, match="POST /api/v1/x%2Fy: no plugin"):
        await talk(Web(never), Connection("", auth=FetchedAuth(fetch)))
    outcomes.append(ConfigError("still none"))
    with pytest.raises(ConfigError, match="still none"):
        await talk(Web(never), Connection("", auth=FetchedAuth(fetch)))


async def test_a_refused_connection_is_unreachable_and_surely_not_delivered() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        server = f"http://127.0.0.1:{reserved.getsockname()[1]}"

        with pytest.raises(Unreachable) as caught:
            async with HttpTransport(Connection(server)) as transport:
                await transport.send("POST", "/api", (), {}, b"{}")
    assert str(caught.value) == f"POST /api: cannot reach {server}: Connection refused"
    assert not caught.value.delivered


def raw_server(data: bytes) -> Callable[[], Awaitable[Response]]:
    """What a client makes of exactly these bytes, with the connection closed after them."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(data)
        await writer.drain()
        writer.close()

    async def main() -> Response:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, HttpTransport(Connection(f"http://127.0.0.1:{port}")) as transport:
            response = await transport.send("POST", "/api", (), {}, None)
            await body(response)
            return response

    return main


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", Unreachable),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nonly this", Unreachable),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab", Unreachable),
        (b"SSH-2.0-OpenSSH_9.6\r\n", BadAnswer),
    ],
    ids=["closed", "cut short", "cut in a chunk", "not HTTP"],
)
async def test_an_answer_that_breaks_off_is_told_by_our_errors(
    data: bytes, expected: type[KubeError]
) -> None:
    with pytest.raises(expected) as caught:
        await raw_server(data)()
    assert str(caught.value).startswith("POST /api: ")


def subclasses(root: type) -> list[type]:
    children: list[type] = root.__subclasses__()
    found = [each for child in children for each in (child, *subclasses(child))]
    return [each for each in found if each.__module__.startswith(("aiohttp", "ssl", "builtins"))]


def instance(kind: type) -> BaseException:
    """One of ``kind``, however many arguments it wants."""
    known: dict[type, Callable[[], BaseException]] = {
        aiohttp.InvalidURL: lambda: aiohttp.InvalidURL("x"),
        aiohttp.ClientConnectorDNSError: lambda: aiohttp.ClientConnectorDNSError(
            Mock(), socket.gaierror(-2, "Name or service not known")
        ),
    }
    if kind in known:
        return known[kind]()
    if kind is http_exceptions.HttpProcessingError:
        return http_exceptions.HttpProcessingError(message="x")
    parents = kind.__mro__
    if aiohttp.ClientConnectorCertificateError in parents:
        return kind(Mock(), ssl.SSLCertVerificationError("bad"))  # type: ignore[no-any-return]
    if client_exceptions.UnixClientConnectorError in parents:
        return kind("/path", Mock(), OSError(111, "refused"))  # type: ignore[no-any-return]
    if aiohttp.ClientConnectorError in parents:
        return kind(Mock(), OSError(111, "refused"))  # type: ignore[no-any-return]
    if aiohttp.ClientResponseError in parents:
        return kind(Mock(real_url="u"), (), status=400)  # type: ignore[no-any-return]
    try:
        made = kind("text")
    except TypeError:
        made = kind(*(["x"] * (len(inspect.signature(kind).parameters))))
    assert isinstance(made, BaseException)
    return made


ROOTS = (aiohttp.ClientError, http_exceptions.HttpProcessingError, ssl.SSLError, OSError)
EVERY = sorted(
    {kind for root in ROOTS for kind in [root, *subclasses(root)]}, key=lambda kind: kind.__name__
)


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)
def test_every_error_of_aiohttp_ssl_and_the_system_is_mapped(kind: type) -> None:
    assert issubclass(kind, TRANSPORT_ERRORS)
    error = map_error("GET", "/api", "https://kube.test", instance(kind))
    assert isinstance(error, (Unreachable, RequestTimeout, BadAnswer))
    text = str(error)
    assert text.startswith("GET /api: ")
    assert "kube.test" in text
    assert "\n" not in text


def test_only_what_surely_was_not_sent_counts_as_undelivered() -> None:
    undelivered = []
    for kind in EVERY:
        error = map_error("GET", "/api", "s", instance(kind))
        if isinstance(error, Unreachable) and not error.delivered:
            undelivered.append(kind.__name__)
    assert undelivered == [
        "ClientConnectorCertificateError",
        "ClientConnectorDNSError",
        "ClientConnectorError",
        "ClientConnectorSSLError",
        "ClientHttpProxyError",
        "ClientProxyConnectionError",
        "ClientSSLError",
        "ConnectionTimeoutError",
        "InvalidURL",
        "InvalidUrlClientError",
        "InvalidUrlRedirectClientError",
        "SSLCertVerificationError",
        "UnixClientConnectorError",
    ]


async def test_the_environments_proxy_is_used_unless_it_is_told_not_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    server = Web(plain)

    async def ask(url: str) -> None:
        async with HttpTransport(Connection(url)) as transport:
            await body(await transport.send("GET", "/api", (), {}, None))

    async with serving(server) as url:
        monkeypatch.setenv("HTTP_PROXY", url)
        await ask("http://far.test:1")
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        await ask(url)
    assert [seen["line"] for seen in server.seen] == ["GET http://far.test:1/api", "GET /api"]
