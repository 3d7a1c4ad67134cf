"""Every query of the dashboard and of the alerts, against a scrape of a working controller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from kube_in_process.real.servers.process import free_port

from claimctl.telemetry.metrics import MEANINGS, Sort
from tests.monitoring.panels import EXPRESSIONS, PANELS
from tests.monitoring.rules import ALERTS, PROMETHEUS, needs_prometheus, write_rules
from tests.monitoring.selectors import selectors, series
from tests.monitoring.working import Working, working

LATER = {
    # conflicts and refusals are chance; a scrape of a fine controller need not have them
    "claimctl_write_conflicts_total",
    # pods are listed ahead only where several wait at once
    "claimctl_pods_listed_ahead_total",
    # no claim is near its limit, and no reconcile has failed
    "claimctl_claims_near_limit",
    "claimctl_reconcile_duration_seconds_count",
    # a release that needs no fence has no wait
    "claimctl_release_wait_seconds_bucket",
    # gauges that appear with their first trouble
    "claimctl_watch_broken",
    "claimctl_unreadable_objects",
}
"""Metrics without a series as long as nothing has happened that they count."""
ENDS = {Sort.COUNTER: ("",), Sort.GAUGE: ("",), Sort.HISTOGRAM: ("_bucket", "_count", "_sum")}
"""How the names of the series of a metric end."""
_SECONDS = 60.0
Json = dict[str, Any]


def test_no_two_panels_are_in_one_place() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in PANELS]
    assert len(set(places)) == len(places)
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)


def test_a_panel_asks_the_chosen_source_and_says_what_it_shows() -> None:
    shown = [panel for panel in PANELS if panel["type"] != "row"]
    assert {panel["datasource"]["uid"] for panel in shown} == {"${datasource}"}
    assert [panel["title"] for panel in shown if not panel["description"]] == []
    assert [panel["title"] for panel in shown if not panel["targets"]] == []


def test_every_metric_that_is_named_is_served() -> None:
    """Also those that a scrape of a fine controller does not have."""
    named = {
        selector.name
        for expression in (*EXPRESSIONS, *(each.expression for each in ALERTS))
        for selector in selectors(expression)
        if selector.name.startswith(("claimctl_", "rest_client_"))
    }
    served = {f"{metric}{end}" for metric, it in MEANINGS.items() for end in ENDS[it.sort]}
    assert named <= served
    assert named >= LATER


@pytest.mark.real_time(180)
async def test_every_query_finds_series_in_a_scrape(tmp_path: Path) -> None:
    async with working(tmp_path) as controller:
        end = asyncio.get_running_loop().time() + _SECONDS
        while missing := _missing(await controller.scrape()):
            assert asyncio.get_running_loop().time() < end, missing
            await asyncio.sleep(0.5)


@needs_prometheus
@pytest.mark.real_time(180)
async def test_prometheus_evaluates_every_query_and_every_alert(tmp_path: Path) -> None:
    async with working(tmp_path) as controller:
        await _check_with_prometheus(controller, tmp_path)


def _missing(scraped: str) -> set[str]:
    """The metrics of which a query finds no series, although something has happened to them."""
    found = series(scraped)
    return {
        selector.name
        for expression in (*EXPRESSIONS, *(each.expression for each in ALERTS))
        for selector in selectors(expression)
        if selector.name not in LATER
        if not any(selector.selects(name, labels) for name, labels in found)
    }


async def _check_with_prometheus(controller: Working, folder: Path) -> None:
    target = controller.url.removeprefix("http://")
    async with prometheus(target, folder) as url, aiohttp.ClientSession(url) as session:
        await _scraped_often(session)
        empty = []
        for expression in EXPRESSIONS:
            asked = expression.replace("$__rate_interval", "10s")
            found = await _get(session, "/api/v1/query", query=asked)
            if not found["result"]:
                empty.append(expression)
        assert {each.name for expression in empty for each in selectors(expression)} <= LATER
        rules = await _get(session, "/api/v1/rules")
        states = {
            rule["name"]: (rule["health"], rule["state"])
            for group in rules["groups"]
            for rule in group["rules"]
        }
        assert states == {alert.name: ("ok", "inactive") for alert in ALERTS}


async def _scraped_often(session: aiohttp.ClientSession) -> None:
    """Wait until rates can be calculated and the rules were evaluated."""
    asked = "count_over_time(claimctl_leader[1m]) >= 4"
    async with asyncio.timeout(_SECONDS):
        while True:
            found = await _get(session, "/api/v1/query", query=asked)
            rules = await _get(session, "/api/v1/rules")
            health = {rule["health"] for group in rules["groups"] for rule in group["rules"]}
            if found["result"] and health == {"ok"}:
                return
            await asyncio.sleep(0.5)


async def _get(session: aiohttp.ClientSession, path: str, **query: str) -> Json:
    async with session.get(path, params=query) as answer:
        body = await answer.json()
        assert body["status"] == "success", body
        return dict(body["data"])


@asynccontextmanager
async def prometheus(target: str, folder: Path) -> AsyncIterator[str]:
    """A Prometheus on the loopback that scrapes ``target`` once a second, with the alert rules."""
    write_rules(folder)
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [{"job_name": "claimctl", "static_configs": [{"targets": [target]}]}],
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        *(PROMETHEUS, f"--config.file={folder / 'prometheus.yaml'}"),
        *(f"--storage.tsdb.path={folder / 'tsdb'}", f"--web.listen-address=127.0.0.1:{port}"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        async with asyncio.timeout(_SECONDS), aiohttp.ClientSession(url) as session:
            while not await _ready(session):  # noqa: ASYNC110 - the process is asked, it does not tell
                await asyncio.sleep(0.2)
        yield url
    finally:
        process.terminate()
        await process.wait()


async def _ready(session: aiohttp.ClientSession) -> bool:
    try:
        async with session.get("/-/ready") as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        return False
