"""A controller as a process that has held and released a claim, and a receiver of its traces."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from claimctl.commands.install.apply import Installer
from claimctl.commands.install.components import Choice, chosen
from claimctl.kube.clock import LoopClock
from claimctl_demo.story import objects
from tests.chart.sites import TRAIN, ChartSite, site
from tests.e2e.commands import command_line

FLAGS = (
    "--bind-address=127.0.0.1:0",
    "--log-format=json",
    "--settle-seconds=0.2",
    "--binding-seconds=1",
)
OPENMETRICS = {"accept": "application/openmetrics-text; version=1.0.0"}
_SECONDS = 60.0


@dataclass
class Receiver:
    """An OTLP receiver on the loopback. ``spans`` has what arrived, with the service's name."""

    url: str = ""
    spans: list[Span] = field(default_factory=list)
    services: set[str] = field(default_factory=set)

    async def take(self, request: web.Request) -> web.Response:
        sent = ExportTraceServiceRequest.FromString(await request.read())
        for resource in sent.resource_spans:
            for attribute in resource.resource.attributes:
                if attribute.key == "service.name":
                    self.services.add(attribute.value.string_value)
            for scope in resource.scope_spans:
                self.spans += scope.spans
        body = ExportTraceServiceResponse().SerializeToString()
        return web.Response(body=body, content_type="application/x-protobuf")


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    application = web.Application()
    application.router.add_post("/v1/traces", receiver.take)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield receiver
    finally:
        await runner.cleanup()


@dataclass
class Working:
    """The process, its log so far, and the URL of its health server."""

    cluster: ChartSite
    process: asyncio.subprocess.Process
    url: str = ""
    log: list[dict[str, object]] = field(default_factory=list)

    async def scrape(self, headers: dict[str, str] | None = None) -> str:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{self.url}/metrics", headers=headers) as answer,
        ):
            assert answer.status == 200
            return await answer.text()

    async def read_log(self, ready: asyncio.Event) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            told = json.loads(line)
            self.log.append(told)
            if told["message"] == "serving health and metrics":
                self.url = str(told["url"])
                ready.set()


@asynccontextmanager
async def working(directory: Path, **environment: str) -> AsyncIterator[Working]:
    """A controller that has held a claim, has released it, and goes on.

    Args:
        environment: further variables of the process.
    """
    async with site("embedded", directory) as cluster:
        crds = chosen(Choice(("crds",)))
        await Installer(cluster.client.transport, LoopClock()).apply(crds)
        await cluster.client.create(objects.namespace("claimctl-system"))
        async with _process(cluster, environment) as made:
            # allocation times have whole seconds: this one must be later than the first lists
            await asyncio.sleep(2)
            await cluster.train()
            await cluster.until(lambda: _runs(cluster), "the claim is held, and its pods run")
            await cluster.client.delete(objects.DEPLOYMENT, "ml", TRAIN.name)
            await cluster.until(lambda: _free(cluster), "the claim is free")
            yield made


async def _runs(cluster: ChartSite) -> bool:
    return await cluster.held() and len(await cluster.pods()) == TRAIN.pods


async def _free(cluster: ChartSite) -> bool:
    claim = await cluster.client.get((cluster.resource_api, "ResourceClaim"), "ml", TRAIN.claim)
    return not claim.get("status", {}).get("allocation")


@asynccontextmanager
async def _process(cluster: ChartSite, environment: dict[str, str]) -> AsyncIterator[Working]:
    process = await asyncio.create_subprocess_exec(
        *command_line("controller", "--kubeconfig", str(cluster.kubeconfig), *FLAGS),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **environment},
    )
    made, ready = Working(cluster, process), asyncio.Event()
    reading = asyncio.create_task(made.read_log(ready), name="log")
    try:
        async with asyncio.timeout(_SECONDS):
            await ready.wait()
        yield made
    finally:
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(_SECONDS):
            await process.wait()
        await reading
