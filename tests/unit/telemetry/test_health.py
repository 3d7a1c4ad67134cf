"""The health server, asked over a real socket."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Gauge

from claimctl.telemetry.health import HealthServer, HealthServerError, Probes, split_address

LOCAL = "127.0.0.1:0"


async def ask(url: str) -> tuple[int, str, str]:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, answer.headers["Content-Type"], await answer.text()


def answers(probes: Probes, path: str) -> tuple[int, str, str]:
    async def run() -> tuple[int, str, str]:
        async with asyncio.timeout(10), HealthServer(probes, LOCAL) as server:
            return await ask(server.url + path)

    return asyncio.run(run())


TEXT = "text/plain; charset=utf-8"


def test_it_is_healthy_while_it_answers() -> None:
    assert answers(Probes(), "/healthz") == (200, TEXT, "ok\n")


def test_it_is_ready_when_every_check_holds() -> None:
    probes = Probes(ready={"synced": lambda: True, "leases": lambda: True})
    assert answers(probes, "/readyz") == (200, TEXT, "[+]synced ok\n[+]leases ok\nok\n")


def test_the_check_that_fails_is_named() -> None:
    probes = Probes(ready={"synced": lambda: False, "leases": lambda: True})
    assert answers(probes, "/readyz") == (
        503,
        TEXT,
        "[-]synced failed\n[+]leases ok\nfailed\n",
    )


@pytest.mark.real_time(10)
async def test_checks_are_asked_anew_for_each_request() -> None:
    synced = False
    async with HealthServer(Probes(ready={"synced": lambda: synced}), LOCAL) as server:
        before = await ask(f"{server.url}/readyz")
        synced = True
        after = await ask(f"{server.url}/readyz")
    assert (before[0], after[0]) == (503, 200)


@pytest.mark.real_time(10)
@pytest.mark.parametrize(
    ("accept", "kind", "end"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8", "claimctl_leader 1.0\n"),
        ("text/plain;version=0.0.4", "text/plain; version=0.0.4; charset=utf-8", "leader 1.0\n"),
        ("application/openmetrics-text;version=1.0.0", "application/openmetrics-text", "# EOF\n"),
    ],
)
async def test_a_scraper_chooses_the_format(accept: str, kind: str, end: str) -> None:
    registry = CollectorRegistry()
    Gauge("claimctl_leader", "1 while this process leads.", registry=registry).set(1)
    async with HealthServer(Probes(metrics=registry), LOCAL) as server:
        url, headers = f"{server.url}/metrics", {"accept": accept} if accept else {}
        async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
            assert answer.status == 200
            assert answer.headers["Content-Type"].startswith(kind)
            assert (await answer.text()).endswith(end)


@pytest.mark.parametrize("path", ["/metrics", "/other"])
def test_what_is_not_there_is_not_found(path: str) -> None:
    assert answers(Probes(), path)[0] == 404


@pytest.mark.real_time(10)
async def test_an_address_in_use_is_named() -> None:
    async with HealthServer(Probes(), LOCAL) as first:
        address = first.url.removeprefix("http://")
        with pytest.raises(
            HealthServerError, match=f"--bind-address: cannot listen on {address}: .*in use"
        ):
            async with HealthServer(Probes(), address):
                pass


@pytest.mark.real_time(10)
async def test_the_address_is_free_again_afterwards() -> None:
    async with HealthServer(Probes(), LOCAL) as first:
        address = first.url.removeprefix("http://")
    async with HealthServer(Probes(), address) as second:
        assert second.url == f"http://{address}"


@pytest.mark.parametrize(
    ("address", "parts"),
    [("0.0.0.0:8080", ("0.0.0.0", 8080)), (":0", ("", 0)), ("[::1]:9", ("::1", 9))],
)
def test_addresses_are_host_and_port(address: str, parts: tuple[str, int]) -> None:
    assert split_address(address) == parts


@pytest.mark.parametrize("address", ["8080", "host:", "host:http", "host:70000", ""])
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(HealthServerError, match="give HOST:PORT or :PORT"):
        split_address(address)
